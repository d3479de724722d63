#!/usr/bin/env python3
"""JAX: a jitted function that reads the wrong KV head of grouped queries.

usage: PYTHONPATH=<build>/python tools/python/examples/jax_attention.py
"""

import jax
import jax.numpy as jnp

import attn_diag


@jax.jit
def attention(q, k, v):
    group = q.shape[1] // k.shape[1]
    k, v = (jnp.tile(x, (1, group, 1, 1)) for x in (k, v))      # jnp.repeat(x, group, axis=1)
    s = jnp.einsum("bhid,bhjd->bhij", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    p = jax.nn.softmax(s, axis=-1)
    return jnp.einsum("bhij,bhjd->bhid", p.astype(v.dtype), v), jax.nn.logsumexp(s, axis=-1)


if __name__ == "__main__":
    q, k, v = attn_diag.inputs("randn", heads=4, kv_heads=2, seqlen=48, dtype="bf16", framework="jax")
    result = attn_diag.check_function(attention, q, k, v)
    print(result.headline)
    for kind, sentence in result.pattern:
        print(" ", kind, sentence)
    print(result.diagnosis.headline)
    print(attn_diag.properties(attention, q, k, v).headline)
    print(attn_diag.sweep(attention, dict(heads=[2, 4, 8], kv_heads=[1, 2, 4], seqlen=32), dtypes="bf16", framework="jax"))
