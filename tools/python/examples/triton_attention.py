#!/usr/bin/env python3
"""Triton: a @triton.jit kernel, judged under Triton's interpreter on the CPU or on a GPU, whichever is there.

usage: TRITON_INTERPRET=1 PYTHONPATH=<build>/python tools/python/examples/triton_attention.py
"""

import torch
import triton
import triton.language as tl

import attn_diag

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # TRITON_INTERPRET=1 there


@triton.jit
def forward(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, seqlen_q, seqlen_k, scale, HEAD_DIM: tl.constexpr,
            BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    head = tl.program_id(1)
    dims = tl.arange(0, HEAD_DIM)
    q = tl.load(q_ptr + head * seqlen_q * HEAD_DIM + rows[:, None] * HEAD_DIM + dims[None, :],
                mask=rows[:, None] < seqlen_q, other=0.0)
    m = tl.full([BLOCK_M], -float("inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    for begin in range(0, seqlen_k, BLOCK_N):
        keys = begin + tl.arange(0, BLOCK_N)
        at = head * seqlen_k * HEAD_DIM + keys[:, None] * HEAD_DIM + dims[None, :]
        k = tl.load(k_ptr + at, mask=keys[:, None] < seqlen_k, other=0.0)
        v = tl.load(v_ptr + at, mask=keys[:, None] < seqlen_k, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale                      # no -inf for keys beyond seqlen_k
        m_new = tl.maximum(m, tl.max(s, 1))
        alpha = tl.exp(m - m_new)
        p = tl.exp(s - m_new[:, None])
        l = l * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        m = m_new
    tl.store(o_ptr + head * seqlen_q * HEAD_DIM + rows[:, None] * HEAD_DIM + dims[None, :],
             (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=rows[:, None] < seqlen_q)
    tl.store(lse_ptr + head * seqlen_q + rows, m + tl.log(l), mask=rows < seqlen_q)


def attention(q, k, v):
    batch, heads, seqlen_q, head_dim = q.shape
    if head_dim < 16 or head_dim & (head_dim - 1):
        raise NotImplementedError("head_dim has to be a power of 2 of at least 16")
    o = torch.empty_like(q)
    lse = torch.empty(batch, heads, seqlen_q, dtype=torch.float32, device=q.device)
    forward[(triton.cdiv(seqlen_q, 16), batch * heads)](q, k, v, o, lse, seqlen_q, k.shape[2], head_dim ** -0.5,
                                                        HEAD_DIM=head_dim, BLOCK_M=16, BLOCK_N=16)
    return o, lse


if __name__ == "__main__":
    q, k, v = attn_diag.inputs("probe", heads=2, seqlen=40, head_dim=32, framework="torch", device=DEVICE)
    result = attn_diag.check_function(attention, q, k, v)
    print(result.headline)
    print(result.diagnosis.headline)
    print()
    print(attn_diag.sweep(attention, dict(seqlen=[16, 17, 32], head_dim=[8, 32]), framework="torch", device=DEVICE))
    print()
    shrunk = attn_diag.shrink(attention, q, k, v, hold=["head_dim"], keep_values=True, seconds=600)
    print(str(shrunk).partition("  A test")[0].rstrip())
