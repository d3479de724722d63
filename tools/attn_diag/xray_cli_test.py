#!/usr/bin/env python3
"""attn-diag xray as it is called: verdicts, exit codes, reports, dumps and what it refuses.

usage: xray_cli_test.py PATH_TO_ATTN_DIAG FLAWED_KERNELS.so [unittest arguments]
"""

import json
import subprocess
import unittest

from testing.command_test import CommandTest, paths

FLAWED = ""
CASE = "--heads 2 --seqlen-q 20 --seqlen-k 40 --head-dim 32 --dtype fp32 --mask causal:bottom_right"


class Xray(CommandTest):
    def report(self, kernel, code, flags=""):
        return json.loads(self.call(f"xray --kernel {kernel} {CASE} --json {flags}", code))

    def test_a_right_kernel_agrees_and_every_property_holds(self):
        text = self.call("xray --kernel fa1 --seqlen 70 --mask causal --properties", 0)
        self.assertTrue(text.startswith("AGREES: what can be seen of fa1"), text)
        self.assertEqual(text.count(" holds"), 10)
        self.assertIn("Seen in 2 launches", text)
        report = self.report("fa1", 0, "--properties")
        self.assertEqual(report["verdict"], "agrees")
        self.assertEqual({p["verdict"] for p in report["properties"]}, {"holds"})
        self.assertIsNone(self.report("fa1", 0)["properties"])

    def test_every_row_of_a_dump_that_agrees_agrees(self):
        self.call("xray --kernel fa1 --seqlen 40 --mask causal -o x.h5", 0)
        self.call("compare x.h5", 0)
        for stage in "qk", "softmax", "reduce":
            for query in 0, 3, 17, 39:
                shown = self.call(f"show x.h5 --stage {stage} --query {query}", 0)
                self.assertTrue(shown.startswith("AGREES"), shown)

    def test_a_masked_cell_is_named_and_the_dump_says_the_same(self):
        text = self.call(f"xray --kernel {FLAWED}:masked-cell {CASE} -o x.h5", 1)
        self.assertTrue(text.startswith("DIVERGES: S(0, 1, 5, 3) is -inf"), text)
        self.assertIn("Written: x.h5", text)
        compared = json.loads(self.call("compare x.h5 --json", 1))
        scores = compared["stages"][0]["tensors"][0]
        self.assertEqual((scores["name"], scores["mismatched"]), ("S", 1))
        self.assertIn("S(0, 1, 5, 3)", self.call("compare x.h5", 1))
        self.assertIn("exists", self.call(f"xray --kernel fa1 {CASE} -o x.h5", 2))
        self.call(f"xray --kernel fa1 {CASE} -o x.h5 --force", 0)
        self.call("compare x.h5", 0)

    def test_a_diagnosis_of_the_dump_names_the_bug_from_o(self):
        self.call(f"xray --kernel {FLAWED}:divides-twice {CASE} --inputs probe -o x.h5", 1)
        found = json.loads(self.call("diagnose x.h5 --json", 1))
        best = found["diagnosis"][0]
        names = [best["id"], *best["equivalent"]]
        self.assertIn("l-twice", names)
        self.assertEqual(best["rows_explained"], 40)

    def test_a_broken_property_says_where_and_what_it_means(self):
        report = self.report(f"{FLAWED}:head-zero", 1, "--properties")
        broken = [p for p in report["properties"] if p["verdict"] == "broken"]
        self.assertEqual([p["name"] for p in broken], ["other-heads"])
        self.assertEqual((broken[0]["first"]["head"], broken[0]["max_err_over_bound"]), (1, "inf"))
        self.assertIn("stride", broken[0]["meaning"])
        # 12 keys have no tail, twice as many do.
        text = self.call(f"xray --kernel {FLAWED}:drops-tail --seqlen 12 --dtype fp32 --properties", 1)
        self.assertIn("DIVERGES: a property of attention is broken, though the weights of this case are", text)
        self.assertIn("duplicated-keys  BROKEN", text)

    def test_what_a_wrong_lse_does_is_not_blamed_on_the_scores(self):
        report = self.report(f"{FLAWED}:no-lse", 1)
        self.assertEqual([s["verdict"] for s in report["stages"]], ["agrees", "agrees", "diverges"])
        self.assertGreater(report["xray"]["rows_without_lse"], 0)

    def test_the_printed_command_does_the_same_again(self):
        report = self.report(f"{FLAWED}:masked-cell", 1, "--properties")
        again = subprocess.run(report["reproduce"], shell=True, cwd=self.folder, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertIn("S(0, 1, 5, 3) is -inf", again.stdout)

    def test_what_cannot_be_looked_at_is_refused(self):
        self.assertIn("needs --kernel", self.call("xray", 2))
        self.assertIn("only fp32", self.call(f"xray --kernel {FLAWED}:right --dtype fp16", 2))
        self.assertIn("-o, which is not given", self.call("xray --kernel fa1 --force", 2))
        self.assertIn("NaN or infinity",
                      self.call("xray --kernel fa1 --input-scale 1e6 --properties", 2))


if __name__ == "__main__":
    FLAWED, = paths(__doc__, 2)
    unittest.main()
