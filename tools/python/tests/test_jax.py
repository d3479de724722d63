"""Arrays of JAX."""

import jax
import jax.numpy as jnp
import pytest

import attn_diag


def attention(q, k, v):
    s = jnp.einsum("bhid,bhjd->bhij", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    return (jax.nn.softmax(s, axis=-1).astype(v.dtype) @ v).astype(q.dtype), jax.nn.logsumexp(s, axis=-1)


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32"])
def test_arrays_and_functions_of_jax(dtype):
    q, k, v = attn_diag.inputs(dtype=dtype, seqlen=32, framework="jax")
    o, lse = jax.jit(attention)(q, k, v)
    right = attn_diag.compare(q, k, v, o, lse)
    assert right, str(right)
    assert attn_diag.check_function(jax.jit(attention), q, k, v)
    assert not attn_diag.compare(q, k, v, o.at[0, 1, 2, 3].add(1.0), lse)
    assert not attn_diag.properties(lambda q, k, v: attention(q, k[:, :, :-1], v[:, :, :-1]), q, k, v)
