"""Tensors of a GPU. run.py skips this aloud where torch has none."""

import pytest
import torch

import attn_diag

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}


def causal(q, k, v):
    assert q.is_cuda and k.is_cuda and v.is_cuda
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def inputs(dtype="fp16", **said):
    return attn_diag.inputs(dtype=dtype, seqlen=96, framework="torch", device="cuda", **said)


@pytest.fixture(autouse=True)
def no_tf32():
    """fp32 products are of fp32, as the bounds take them."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_the_gpu_computed_is_judged(dtype):
    q, k, v = inputs(dtype)
    assert q.is_cuda and q.dtype == DTYPES[dtype]
    for ours, theirs in zip((q, k, v), attn_diag.inputs(dtype=dtype, seqlen=96, framework="torch")):
        assert torch.equal(ours.cpu(), theirs)
    o = causal(q, k, v)
    right = attn_diag.compare(q, k, v, o, mask="causal")
    assert right, str(right)
    o[0, 1, 3, 5] += 1
    wrong = attn_diag.compare(q.requires_grad_(), k, v, o, mask="causal")
    assert wrong.first["query"] == 3 and wrong.first["dim"] == 5


def test_strides_on_the_gpu_and_arrays_of_both_places():
    q, k, v = (x.transpose(1, 2) for x in inputs(layout="BSHD"))
    assert not q.is_contiguous()
    o = causal(q, k, v)
    assert attn_diag.compare(q, k.cpu(), v, o.cpu(), mask="causal")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_function_gets_tensors_of_the_gpu(dtype):
    q, k, v = inputs(dtype)
    assert attn_diag.check_function(causal, q, k, v, mask="causal")
    assert attn_diag.xray(causal, q, k, v, mask="causal")
    assert attn_diag.properties(causal, q, k, v, mask="causal")
    swept = attn_diag.sweep(causal, dict(seqlen=[1, 65]), dtypes=dtype, masks="causal", framework="torch", device="cuda")
    assert swept, str(swept)


def test_a_wrong_function_of_the_gpu_is_made_small():
    def forgets(q, k, v):
        assert q.is_cuda
        keys = max(k.shape[-2] // 64 * 64, min(k.shape[-2], 64))
        return torch.nn.functional.scaled_dot_product_attention(q, k[..., :keys, :], v[..., :keys, :])

    shrunk = attn_diag.shrink(forgets, *inputs(), hold=["head_dim"])
    assert shrunk.passes["seqlen_k"] == 64 and shrunk.problem["seqlen_k"] == 65, str(shrunk)
