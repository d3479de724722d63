#!/usr/bin/env python3
"""What tracing to the line costs: each kernel of the zoo, right, on its first case at S = 128 and H = 2.

usage: tools/attn_diag/lines_bench.py ATTN_DIAG [KERNEL...]

Prints per kernel the seconds that --lines adds to a trace (the watch build is among them), those of the plain build of the same
sources, their ratio, the numbers looked at and the largest memory of a process.
"""
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "zoo"))
import zoo  # noqa: E402


def timed(folder, *words):
    begin = time.monotonic()
    out = subprocess.run([PROGRAM, *map(str, words)], cwd=folder, text=True, capture_output=True, check=False)
    return time.monotonic() - begin, out


def case_of(kernel):
    """Its own case, longer where it may be."""
    case = " ".join(word.split(",")[0] if not word.startswith("window") else word for word in kernel.cases[0].split())
    return re.sub(r"(--seqlen(?:-q|-k)?) \d+", lambda m: m[1] + " 128", case)


def main():
    rows = []
    print(f"{'kernel':24} {'build':>6} {'trace':>6} {'lines':>6} {'l/b':>5} {'numbers':>11} {'MiB':>6}")
    for name in sys.argv[2:] or zoo.names():
        kernel = zoo.load(name)
        if not kernel.builds_on_host:
            continue
        with tempfile.TemporaryDirectory() as folder:
            build, out = timed(folder, "build", *[kernel.folder / s for s in kernel.sources], "-o", "k.so",
                               *kernel.build_flags, "--no-nvcc", "--no-lockstep", "--quiet")
            if out.returncode:
                print(f"{name:24} does not build: {out.stderr.strip()[-80:]}")
                continue
            for case in (case_of(kernel), kernel.cases[0]):
                words = ["trace", "--kernel", "./k.so", *case.split(), "--json", "--no-history", "--quiet"]
                plain, out = timed(folder, *words, "--no-lines")
                if out.returncode in (0, 1):
                    break
            full, out = timed(folder, *words, "--lines")
            lines = json.loads(out.stdout)["line_divergence"]
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            rows.append((full - plain, build, peak))
            print(f"{name:24} {build:6.1f} {plain:6.1f} {full - plain:6.1f} {(full - plain) / build:5.1f} "
                  f"{lines['numbers']:11,} {peak:6.0f}  {lines['answer']}", flush=True)
    added = sorted(row[0] for row in rows)
    if added:
        print(f"{len(rows)} kernels: lines add {added[len(added) // 2]:.1f} s in the middle, {added[-1]:.1f} s at most; "
              f"largest memory so far of any process {max(row[2] for row in rows):.0f} MiB")


main()
