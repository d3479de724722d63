"""Tensors of torch: no copies, gradients, strides, functions."""

import numpy as np
import pytest
import torch

import attn_diag
from attn_diag._arrays import exported

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}


def sdpa(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scaled_dot_product_attention_agrees(dtype):
    q, k, v = attn_diag.inputs(dtype=dtype, seqlen=64, framework="torch", device="cpu")
    assert q.dtype == DTYPES[dtype] and tuple(q.shape) == (1, 2, 64, 64)
    o = sdpa(q, k, v)
    assert attn_diag.compare(q, k, v, o, mask="causal")
    assert attn_diag.check_function(sdpa, q, k, v, mask="causal")
    o[0, 1, 3, 5] += 1
    wrong = attn_diag.compare(q.requires_grad_(), k, v, o, mask="causal")
    assert wrong.first["query"] == 3 and wrong.first["dim"] == 5


def test_a_transposed_tensor_is_no_copy():
    x = torch.arange(24, dtype=torch.float32).reshape(1, 2, 3, 4).transpose(1, 2)
    capsule, is_bf16 = exported("q", x)
    assert "dltensor" in repr(capsule) and not is_bf16
    q, k, v = attn_diag.inputs(framework="torch", seqlen=48, layout="BSHD")
    bhsd = [x.transpose(1, 2) for x in (q, k, v)]
    assert attn_diag.compare(*bhsd, sdpa(*bhsd), mask="causal")


def test_the_numbers_are_numpy_s():
    for ours, theirs in zip(attn_diag.inputs(framework="torch"), attn_diag.inputs()):
        assert (ours.numpy() == theirs).all()
        assert isinstance(theirs, np.ndarray)


def test_a_wrong_function_is_seen_by_its_weights():
    def off_by_one(q, k, v):
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril(1)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    q, k, v = attn_diag.inputs("probe", seqlen=32, dtype="fp32", framework="torch")
    assert not attn_diag.xray(off_by_one, q, k, v, mask="causal")
    assert "masked-keys" in attn_diag.properties(off_by_one, q, k, v, mask="causal").broken
    named = attn_diag.diagnose(q, k, v, off_by_one(q, k, v), mask="causal").named
    assert named and named[0].startswith("mask-shift"), named


def test_no_gradient_is_recorded_of_what_fn_gets():
    def fn(q, k, v):
        assert not q.requires_grad
        return sdpa(q, k, v).requires_grad_()

    q, k, v = attn_diag.inputs(framework="torch", seqlen=16)
    assert attn_diag.check_function(fn, q.requires_grad_(), k, v, mask="causal")


def test_a_cuda_tensor_is_brought_to_the_host():
    class OnDevice:
        """As a tensor of a GPU answers."""
        dtype = torch.float32

        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self):
            raise BufferError("memory of a device")

        def cpu(self):
            return self.tensor

    q, k, v = attn_diag.inputs(framework="torch", seqlen=16)
    assert attn_diag.compare(*map(OnDevice, (q, k, v, sdpa(q, k, v))), mask="causal")
