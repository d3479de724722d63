#!/usr/bin/env python3
"""PyTorch: a function with a bug, found, named and made small.

usage: PYTHONPATH=<build>/python tools/python/examples/torch_attention.py
"""

import torch

import attn_diag

TILE = 64


def attention(q, k, v):
    """The online softmax in tiles of keys. A new tile's maximum rescales what was summed before: l is forgotten."""
    scale = q.shape[-1] ** -0.5
    m = torch.full(q.shape[:-1], -torch.inf)
    l, acc = torch.zeros_like(m), torch.zeros(*q.shape[:-1], v.shape[-1])
    for begin in range(0, k.shape[-2], TILE):
        k_tile, v_tile = k[..., begin:begin + TILE, :].float(), v[..., begin:begin + TILE, :].float()
        s = q.float() @ k_tile.mT * scale
        m_new = torch.maximum(m, s.amax(-1))
        alpha, p = torch.exp(m - m_new), torch.exp(s - m_new[..., None])
        l = l + p.sum(-1)                                       # l * alpha + ...
        acc = acc * alpha[..., None] + p @ v_tile
        m = m_new
    return (acc / l[..., None]).to(q.dtype), m + torch.log(l)


if __name__ == "__main__":
    q, k, v = attn_diag.inputs("randn", heads=4, seqlen=160, dtype="bf16", framework="torch")
    result = attn_diag.check_function(attention, q, k, v)
    print(result.headline)
    print(result.diagnosis.headline)
    print()
    print(attn_diag.sweep(attention, dict(seqlen_q=8, seqlen_k=[1, 64, 65, 128, 200]), dtypes="bf16", framework="torch"))
    print()
    shrunk = attn_diag.shrink(attention, q, k, v, hold=["head_dim"], seconds=600)
    print(str(shrunk).partition("  A test")[0].rstrip())
