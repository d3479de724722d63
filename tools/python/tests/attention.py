"""Attention in numpy, right and wrong, for the tests. Nothing of it comes from attn-diag."""

import importlib.metadata
import os
import subprocess

import numpy as np

# pytest's arguments: the plugin by name where the package is only on the path; an installed one loads itself.
_INSTALLED = any(one.metadata["Name"] == "attn-diag" for one in importlib.metadata.distributions())
PLUGIN = [] if _INSTALLED else ["-p", "attn_diag._pytest"]


def attention(q, k, v, *, causal=False, scale=None, shift=0, softcap=0.0, bias=None, dtype=None, twice=False):
    """o and lse of arrays [..., S, D]. shift: query i sees keys up to i + shift; twice: o is divided by l twice."""
    dtype = dtype or q.dtype
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    group = q.shape[-3] // k.shape[-3] if q.ndim > 2 else 1
    if group > 1:
        k, v = np.repeat(k, group, -3), np.repeat(v, group, -3)
    s = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap:
        s = softcap * np.tanh(s / softcap)
    if bias is not None:
        s = s + bias
    if causal:
        i, j = np.ogrid[:s.shape[-2], :s.shape[-1]]
        s = np.where(j <= i + shift, s, -np.inf)
    m = s.max(-1, keepdims=True)
    p = np.exp(s - m)
    l = p.sum(-1, keepdims=True)
    o = p @ v / (l * l if twice else l)
    return o.astype(dtype), (m + np.log(l))[..., 0].astype(np.float32)


def forgets_beyond_64(q, k, v):
    """Keys beyond a multiple of 64, as a kernel without a last tile."""
    whole = max(k.shape[-2] // 64 * 64, min(k.shape[-2], 64))
    return attention(q, k[..., :whole, :], v[..., :whole, :])


def command(*words, code):
    """What the attn-diag command prints."""
    done = subprocess.run([os.environ["ATTN_DIAG"], *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=300, env={**os.environ, "NO_COLOR": "1", "LC_ALL": "C"})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout
