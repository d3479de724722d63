#!/usr/bin/env python3
"""Right kernels are right in every command, whatever the inputs: a sample of kernels x inputs x dtypes.

usage: matrix_cli_test.py PATH_TO_ATTN_DIAG [--all] [unittest arguments]

--all tries every cell (many minutes); without it, every kernel, every kind of inputs and every dtype occurs.
"""
import itertools
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
SOURCES = pathlib.Path(__file__).resolve().parents[2] / "kernels"
# The types of each kernel: <kernel>/<kernel>_<type>.cu.
KERNELS = {kernel.parent.name: [t for t in ("fp16", "bf16", "fp32")
                                if (kernel.parent / f"{kernel.stem}_{t}.cu").exists()]
           for kernel in sorted(SOURCES.glob("*/*.cu")) if kernel.stem == kernel.parent.name}
INPUTS = ["large", "heavy", "cancel", "powers", "small", "probe", "randn"]
CASE = "--heads 2 --seqlen 70 --head-dim 64 --mask causal --no-history"


def cells(everything):
    whole = [(kernel, inputs, dtype) for kernel in KERNELS for inputs in INPUTS for dtype in KERNELS[kernel]]
    # A Latin square of them: each kernel with two kinds of inputs, each kind with a dtype in turn.
    return whole if everything else [
        (kernel, inputs, KERNELS[kernel][i % len(KERNELS[kernel])])
        for i, (kernel, inputs) in enumerate(zip(itertools.cycle(KERNELS), INPUTS + INPUTS[:1]))]


class Matrix(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="attn-diag-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def call(self, line):
        done = subprocess.run([PROGRAM, *shlex.split(line)], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={**os.environ, "LC_ALL": "C.UTF-8"}, timeout=600)
        self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout[:2000]}{done.stderr}")
        return done.stdout

    def try_cell(self, kernel, inputs, dtype):
        case = f"--kernel {kernel} --dtype {dtype} --inputs {inputs} {CASE}"
        answers = {"run": json.loads(self.call(f"run {case} --json"))["verdict"],
                   "trace": json.loads(self.call(f"trace {case} --json"))["verdict"],
                   "diagnose": json.loads(self.call(f"diagnose {case} --json"))["verdict"]}
        self.call(f"dump {case} --stage reduce -o cell.h5")
        answers["compare"] = json.loads(self.call("compare cell.h5 --json"))["verdict"]
        self.assertIn("o", self.call("show cell.h5 --stage reduce --head 1 --query 45"))
        seen = json.loads(self.call(f"xray {case} --properties --json"))
        answers["xray"] = seen["verdict"]
        self.assertEqual(set(answers.values()), {"agrees"}, answers)
        self.assertTrue(seen["properties"])
        self.assertEqual([p["name"] for p in seen["properties"] if p["broken"] > 0], [])


def main():
    global PROGRAM
    PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
    rest = sys.argv[2:]
    everything = "--all" in rest
    for kernel, inputs, dtype in cells(everything):
        setattr(Matrix, f"test_{kernel}_{inputs}_{dtype}",
                lambda self, cell=(kernel, inputs, dtype): self.try_cell(*cell))
    unittest.main(argv=[sys.argv[0], *(word for word in rest if word != "--all")])


if __name__ == "__main__":
    main()
