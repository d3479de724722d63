#!/usr/bin/env python3
"""Rows here and there: --query sample:N of run and compare, and what is said before long work.

usage: rows_cli_test.py PATH_TO_ATTN_DIAG [unittest arguments]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy
except ImportError:
    numpy = None

PROGRAM = ""


class Rows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rows_cli_test.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def call(self, args, code=0):
        result = subprocess.run([PROGRAM, *args.split()], cwd=self.folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def save(self, wrong=None, by=1, n=300, heads=2, dim=16):
        """A causal case as another program leaves it; o is wrong at (head, query) `wrong`."""
        random = numpy.random.default_rng(1)
        q, k, v = (random.standard_normal((1, heads, n, dim)).astype(numpy.float16) for _ in range(3))
        s = numpy.einsum("bhqd,bhkd->bhqk", q.astype(float), k.astype(float)) / dim**0.5
        s[..., numpy.triu(numpy.ones((n, n), bool), 1)] = -numpy.inf
        p = numpy.exp(s - s.max(-1, keepdims=True))
        o = numpy.einsum("bhqk,bhkd->bhqd", p / p.sum(-1, keepdims=True), v.astype(float)).astype(numpy.float16)
        if wrong:
            o[0, wrong[0], wrong[1], 3] += by
        numpy.savez(self.folder / "case.npz", q=q, k=k, v=v, o=o)

    def test_a_run_judges_the_rows_it_was_told(self):
        report = json.loads(self.call("run --kernel fa1 --seqlen 300 --head-dim 32 --query sample:20 --json").stdout)
        self.assertEqual(report["judged"], 2 * 20 * (32 + 1))  # o and lse of two heads
        self.assertTrue(any("20 of 300 queries" in note for note in report["notes"]), report["notes"])
        one = json.loads(self.call("run --kernel fa1 --seqlen 300 --head-dim 32 --query sample:20 --head 1 --json").stdout)
        self.assertEqual(one["judged"], 20 * (32 + 1))

    def test_what_is_wrong_in_the_sample_can_be_hunted(self):
        fault = "split_k@reduce-counts-l-twice"
        text = self.call(f"run --kernel {fault} --seqlen 300 --num-splits 2 --head-dim 32 --query sample:20", 1).stdout
        self.assertIn("--query sample:20", [line for line in text.splitlines() if "Reproduce" in line][0])
        hunt = [line for line in text.splitlines() if "Find where" in line][0].split(": ", 1)[1]
        self.assertNotIn("sample", hunt)
        self.assertRegex(hunt, r"--query \d+")
        self.assertEqual(subprocess.run(hunt, shell=True, cwd=self.folder, capture_output=True).returncode, 1)

    def test_stages_of_rows_here_and_there_are_not_recorded(self):
        case = "--kernel fa1 --seqlen 300 --head-dim 32 --query sample:20"
        for command in ("trace", "dump -o x.h5"):
            self.assertIn("--query A:B", self.call(f"{command} {case}", 2).stderr)
        self.assertIn("--stage", self.call(f"run {case} --stage softmax", 2).stderr)
        self.call(f"run {case} --stage full")
        for wrong in ("sample:0", "sample:", "sample:x", "sample:-1"):
            self.assertIn("sample:64", self.call(f"run --kernel fa1 --query {wrong}", 2).stderr)

    @unittest.skipIf(numpy is None, "SKIP: no numpy")
    def test_rows_that_are_not_in_the_sample_break_an_invariant(self):
        self.save(wrong=(1, 77), by=100)
        case = "compare case.npz --mask causal"
        text = self.call(f"{case} --query sample:5", 1).stdout
        self.assertIn("DIVERGES", text)
        self.assertIn("others cannot be right: an invariant is broken there", text)
        self.assertIn("o(0, 1, 77, 3)", text)
        self.assertEqual(json.loads(self.call(f"{case} --query sample:5 --json", 1).stdout)["verdict"], "diverges")
        self.call(f"{case} --query sample:5 --atol 1 --rtol 1")  # which the invariants' limits are not
        self.call(f"{case} --query 78:100")                      # by name, and not as a sample

    @unittest.skipIf(numpy is None, "SKIP: no numpy")
    def test_of_a_file_the_rows_that_are_named_are_judged(self):
        case = "compare case.npz --mask causal"
        self.save(wrong=(1, 77))
        self.call(case, 1)
        text = self.call(f"{case} --query 77 --head 1", 1).stdout
        self.assertIn("query 77", text)
        self.assertIn("1 of 300 queries", text)
        self.call(f"{case} --query 78:100")
        self.call(f"{case} --query 77 --head 0")
        self.assertIn("AGREES", self.call(f"{case} --query sample:5 --head 0").stdout)
        self.assertIn("--head 2 is not within 0:2", self.call(f"{case} --head 2", 2).stderr)
        self.assertIn("whole", self.call("compare case.npz case.npz --query 3", 2).stderr)

    @unittest.skipIf(numpy is None, "SKIP: no numpy")
    def test_a_sample_of_a_wrong_kernel_sees_it(self):
        self.save()
        self.call("compare case.npz --mask causal --query sample:16")
        self.call("compare case.npz --mask none --query sample:16", 1)  # all but the last query are wrong then

    def test_long_work_says_so_before_it_begins(self):
        result = self.call("run --kernel fa1 --seqlen 1000000 --heads 1 --head-dim 16", 2)
        self.assertRegex(result.stderr, r"this will take about \S+ (s|min|h|days) on \d+ cores? .*--query sample:64 judges o and lse")
        self.assertIn("--query sample:64 takes", result.stderr)  # where the whole does not fit
        self.assertEqual(self.call("run --kernel fa1 --seqlen 100").stderr, "")
        self.assertEqual(self.call("run --kernel fa1 --seqlen 200 --threads 64").stderr, "")  # however many cores there are


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    import os
    os.environ["ATTN_DIAG_HISTORY"] = "0"
    unittest.main()
