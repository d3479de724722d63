#!/usr/bin/env python3
"""What kv_lens cost in compare(): of a batch with all its keys, of one whose entries have a half of them on average, and of
neither. In turns, medians; ratios hold on a busy machine.

usage: PYTHONPATH=<build>/python tools/python/tests/kv_lens_bench.py [--rounds N] [--seqlen S]
"""

import argparse
import os
import statistics
import time

import torch

import attn_diag


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    for flag, default in (("--rounds", 5), ("--batch", 4), ("--heads", 4), ("--seqlen", 1024), ("--head-dim", 64)):
        parser.add_argument(flag, type=int, default=default)
    a = parser.parse_args()
    q, k, v = attn_diag.inputs(batch=a.batch, heads=a.heads, seqlen=a.seqlen, head_dim=a.head_dim, framework="torch")
    halves = [a.seqlen * (2 * i + 1) // (2 * a.batch) for i in range(a.batch)]
    attend = torch.nn.functional.scaled_dot_product_attention
    o = attend(q, k, v)
    o_of_halves = torch.cat([attend(q[b:b + 1], k[b:b + 1, :, :n], v[b:b + 1, :, :n]) for b, n in enumerate(halves)])
    ways = {"without": (o, None), "all keys": (o, [a.seqlen] * a.batch), "half of them": (o_of_halves, halves)}
    seconds = {name: [] for name in ways}
    for _ in range(a.rounds):
        for name, (output, lens) in ways.items():
            begin = time.monotonic()
            assert attn_diag.compare(q, k, v, output, kv_lens=lens)
            seconds[name].append(time.monotonic() - begin)
    print(f"B={a.batch} H={a.heads} S={a.seqlen} D={a.head_dim} fp16, {a.rounds} rounds, {os.cpu_count()} cores, load "
          f"{os.getloadavg()[0]:.1f}")
    for name, all_of in seconds.items():
        ratio = statistics.median(x / y for x, y in zip(all_of, seconds["without"]))
        print(f"{name:<14} {statistics.median(all_of):7.3f} s   {ratio:.2f} of without")


if __name__ == "__main__":
    main()
