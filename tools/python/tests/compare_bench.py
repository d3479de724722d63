#!/usr/bin/env python3
"""What compare() costs, against the command's compare of the same arrays in a file, and against what one writes without
it: torch's attention in fp64 and assert_close. In turns, medians; ratios hold on a busy machine.

usage: ATTN_DIAG=<build>/bin/attn-diag PYTHONPATH=<build>/python tools/python/tests/compare_bench.py [--rounds N] [--seqlen S] ...
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time

import torch

import attn_diag


def reference_and_assert_close(q, k, v, o):
    q, k, v = (x.double() for x in (q, k, v))
    weights = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, dim=-1)
    torch.testing.assert_close(o.double(), weights @ v, atol=2e-3, rtol=2e-3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    for flag, default in (("--rounds", 5), ("--heads", 8), ("--seqlen", 2048), ("--head-dim", 64)):
        parser.add_argument(flag, type=int, default=default)
    parser.add_argument("--dtype", default="fp16")
    a = parser.parse_args()
    q, k, v = attn_diag.inputs(heads=a.heads, seqlen=a.seqlen, head_dim=a.head_dim, dtype=a.dtype, framework="torch")
    o = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    said = {"mask": "none", "scale": a.head_dim ** -0.5, "layout": "BHSD"}
    result = attn_diag.compare(q, k, v, o, **said)
    assert result, result
    with tempfile.TemporaryDirectory() as folder:
        path = result.save(os.path.join(folder, "case.safetensors"))
        ways = {
            "compare()": lambda: attn_diag.compare(q, k, v, o, **said),
            "attn-diag compare": lambda: subprocess.run([os.environ["ATTN_DIAG"], "compare", path, "--quiet"],
                                                        check=True, stdout=subprocess.DEVNULL),
            "torch fp64 and assert_close": lambda: reference_and_assert_close(q, k, v, o),
        }
        seconds = {name: [] for name in ways}
        for _ in range(a.rounds):
            for name, way in ways.items():
                begin = time.monotonic()
                way()
                seconds[name].append(time.monotonic() - begin)
    print(f"B=1 H={a.heads} S={a.seqlen} D={a.head_dim} {a.dtype}, {a.rounds} rounds, {os.cpu_count()} cores, load "
          f"{os.getloadavg()[0]:.1f}")
    ours = seconds["compare()"]
    for name, all_of in seconds.items():
        ratio = statistics.median(mine / other for mine, other in zip(ours, all_of))
        print(f"{name:<28} {statistics.median(all_of):7.3f} s   compare() takes {ratio:.2f} of it")


if __name__ == "__main__":
    main()
