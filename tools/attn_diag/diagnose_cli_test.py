#!/usr/bin/env python3
"""attn-diag diagnose as it is called: verdicts, exit codes, reports and what it refuses.

usage: diagnose_cli_test.py PATH_TO_ATTN_DIAG [unittest arguments]
"""

import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
CASE = "--kernel split_k@reduce-counts-l-twice --mask causal --no-history"


class Diagnose(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attn-diag-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.dump = cls.folder / "wrong.h5"
        made = subprocess.run([PROGRAM, *shlex.split(f"dump {CASE} -o {cls.dump}")], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        if made.returncode != 0:
            raise AssertionError(made.stderr)

    def call(self, line, code):
        result = subprocess.run([PROGRAM, *shlex.split(f"diagnose {line}")], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stderr if code == 2 else result.stdout

    def test_the_bug_of_a_kernel_is_named_with_its_evidence_and_its_line(self):
        text = self.call(CASE, 1)
        self.assertEqual(text.splitlines()[0], "NAMED: combine-counts-l-twice(form = in the sum of o)")
        flat = " ".join(text.split())
        self.assertIn("Stage reduce is wrong in 254 of 256 rows", flat)
        self.assertIn("It accounts for 256 of 256 rows (254 of the 254 wrong ones)", flat)
        self.assertIn("lse is right and o is wrong", flat)
        self.assertIn("split_k_kernels.cuh:", text)
        self.assertIn("Reproduce: ", text)
        self.assertIn("Confirm: ", text)

    def test_a_dump_gives_the_same_name_and_json_holds_what_the_text_says(self):
        report = json.loads(self.call(f"{self.dump} --json", 1))
        self.assertEqual(report["diagnosis_verdict"], "named")
        self.assertEqual([d["id"] for d in report["diagnosis"]], ["combine-counts-l-twice"])
        best = report["diagnosis"][0]
        self.assertEqual((best["rows"], best["rows_explained"], best["wrong_rows"]), (256, 256, 254))
        self.assertLessEqual(best["residual_over_bound"], 1)
        self.assertGreater(best["confidence"], 0.9)
        self.assertEqual(best["equivalent"], [])
        self.assertEqual(best["parameters"]["form"]["named"], "in the sum of o")
        self.assertGreater(len(report["ruled_out"]), 20)
        self.assertNotIn(best["id"], [r["id"] for r in report["ruled_out"]])

    def test_the_production_kernel_alone_is_enough(self):
        report = json.loads(self.call(f"{CASE} --stage full --inputs probe --json", 1))
        self.assertEqual(report["tensors"], ["lse", "o"])
        self.assertIn("combine-counts-l-twice", [d["id"] for d in report["diagnosis"]])

    def test_a_right_kernel_exits_0(self):
        text = self.call("--kernel split_k --no-history", 0)
        self.assertEqual(text.splitlines()[0],
                         "NOTHING WRONG: every row is within what rounding can explain")

    def test_why_not_shows_the_cell_and_refuses_names_that_are_not_there(self):
        text = " ".join(self.call(f"{self.dump} --why-not l-twice,combine-counts-l-twice", 1).split())
        self.assertIn("Worst: ", text)
        self.assertIn("it is not ruled out: combine-counts-l-twice", text)
        self.assertIn("Did you mean l-twice?", self.call(f"{self.dump} --why-not l-twic", 2))

    def test_active_says_what_the_wrong_rows_move_with(self):
        report = json.loads(self.call(f"{CASE} --active --json", 1))
        self.assertGreater(len(report["tile_trials"]["trials"]), 1)
        self.assertTrue(report["tile_trials"]["statements"])

    def test_what_it_cannot_do_is_refused(self):
        self.assertIn("needs --kernel or a file", self.call("", 2))
        self.assertIn("not both", self.call(f"{self.dump} --kernel split_k", 2))
        self.assertIn("--seed is about running a kernel", self.call(f"{self.dump} --seed 1", 2))
        self.assertIn("--active runs a kernel", self.call(f"{self.dump} --active", 2))


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
