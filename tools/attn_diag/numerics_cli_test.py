#!/usr/bin/env python3
"""attn-diag numerics as it is called: verdicts, exit codes, reports, baselines and what it refuses.

usage: numerics_cli_test.py PATH_TO_ATTN_DIAG FLAWED_KERNELS.so [unittest arguments]
"""

import json
import unittest

from testing.command_test import CommandTest, paths

FLAWED = ""
CASE = "--heads 2 --seqlen 80 --head-dim 32 --mask causal"
FAULT = "split_k@reduce-counts-l-twice"


class Numerics(CommandTest):
    def report(self, line, code):
        return json.loads(self.call(f"numerics {line} --json", code))

    def test_a_right_kernel_agrees_and_its_error_is_explained(self):
        text = self.call(f"numerics --kernel fa1 {CASE}", 0)
        self.assertTrue(text.startswith("AGREES: all "), text)
        for words in ("Error over bound of the cells", "in ULPs of fp16", "Where errors of o are",
                      "o rounded to fp16", "Explained: the error is", "Cancellation:", "Range:",
                      "No NaN, infinity", "sum-of-probs       holds", "Reproduce: "):
            self.assertIn(words, text)
        self.assertNotIn("BROKEN", text)
        report = self.report(f"--kernel fa1 {CASE}", 0)
        o = report["numerics"]["tensors"][-1]
        self.assertEqual((o["name"], o["storage"], o["mismatched"]), ("o", "fp16", 0))
        self.assertEqual(o["cells"], 2 * 80 * 32)
        self.assertEqual(sum(o["ulps"]["histogram"]), o["ulps"]["cells"])
        self.assertLessEqual(o["ulps"]["max"], 32)  # half of fp16's digits
        parts = report["numerics"]["contributions"]
        self.assertEqual(parts["parts"][0]["rounding"], "o rounded to fp16")
        self.assertAlmostEqual(sum(p["share"] for p in parts["parts"]), 1, 6)
        self.assertTrue(0.5 < parts["observed_over_together"] < 2, parts)
        self.assertLess(parts["left_over"], 0.1)  # the very errors, cell by cell
        self.assertEqual({i["verdict"] for i in report["invariants"]}, {"holds", "not_tried"})

    def test_a_dump_gives_the_same_numbers(self):
        self.call(f"dump --kernel split_k {CASE} --dtype bf16 -o x.h5", 0)
        of_dump = self.report("x.h5", 0)
        of_run = self.report(f"--kernel split_k {CASE} --dtype bf16", 0)
        self.assertEqual(of_dump["numerics"], of_run["numerics"])
        self.assertEqual(of_dump["invariants"], of_run["invariants"])
        self.assertEqual(of_dump["numerics"]["contributions"]["parts"][0]["rounding"], "o rounded to bf16")

    def test_a_wrong_kernel_diverges_and_is_not_explained_by_rounding(self):
        text = self.call(f"numerics --kernel {FAULT} {CASE}", 1)
        self.assertTrue(text.startswith("DIVERGES: "), text)
        self.assertIn("Not explained by declared arithmetic", text)
        self.assertLessEqual(text.count("BROKEN"), 2)  # one bug, not nine
        self.assertGreaterEqual(text.count("BROKEN"), 1)
        report = self.report(f"--kernel {FAULT} {CASE}", 1)
        self.assertFalse(report["numerics"]["contributions"]["explained"])
        broken = [i for i in report["invariants"] if i["verdict"] == "broken"]
        self.assertTrue(all(i["meaning"] and i["first"] for i in broken))

    def test_a_run_and_a_trace_tell_broken_invariants_and_nothing_of_right_kernels(self):
        for command in "run", "trace --no-lines":
            self.assertIn("Invariant ", self.call(f"{command} --kernel {FAULT} {CASE} --no-history", 1))
            self.assertNotIn("nvariant", self.call(f"{command} --kernel split_k {CASE} --no-history", 0))

    def test_invariants_alone_need_no_reference_and_run_the_kernel_again(self):
        report = self.report("--kernel split_k --heads 2 --seqlen 300 --head-dim 32 --mask causal --invariants", 0)
        self.assertIsNone(report["numerics"])
        self.assertEqual(report["judged"], 0)
        verdicts = {i["name"]: i["verdict"] for i in report["invariants"]}
        self.assertEqual(len(verdicts), 13)
        self.assertEqual({n for n, v in verdicts.items() if v != "holds"}, {"empty-rows"})
        text = self.call(f"numerics --kernel fa1 {CASE} --stage full --invariants", 0)
        self.assertTrue(text.startswith("AGREES: "), text)
        self.assertIn("not tried: the kernel takes no number of splits", text)
        report = self.report(f"--kernel {FLAWED}:divides-twice --heads 2 --seqlen 20 --head-dim 32 --dtype fp32 "
                             "--invariants --stage full", 1)
        broken = [i["name"] for i in report["invariants"] if i["verdict"] == "broken"]
        self.assertEqual(broken, ["constant-v"], report["headline"])

    def test_a_baseline_is_the_same_again_and_tells_what_drifted(self):
        case = f"--kernel fa1 {CASE}"
        self.assertIn("Written: base.json", self.call(f"numerics {case} --write-baseline base.json", 0))
        self.assertIn("every histogram is the same", self.call(f"numerics {case} --baseline base.json", 0))
        self.assertTrue(self.report(f"{case} --baseline base.json", 0)["drift"]["identical"])
        # As if errors had been four times smaller.
        baseline = json.loads((self.folder / "base.json").read_text())
        for tensor in baseline["tensors"]:
            bins = tensor["err_over_bound"]
            tensor["err_over_bound"] = [sum(bins[:33]), *bins[33:], *[0] * 32]
        (self.folder / "base.json").write_text(json.dumps(baseline))
        text = self.call(f"numerics {case} --baseline base.json", 1)
        self.assertTrue(text.startswith("DRIFTED: "), text)
        self.assertIn("larger errors", text)
        drift = self.report(f"{case} --baseline base.json", 1)
        self.assertEqual(drift["verdict"], "diverges")
        self.assertIn("o", [d["tensor"] for d in drift["drift"]["drifted"]])
        self.assertIn("another case", self.call(f"numerics --kernel fa1 {CASE} --seed 1 --baseline base.json", 2))

    def test_what_is_no_number_is_followed_to_where_it_was_made(self):
        # Scores of 1e60 do not fit into fp32: nothing can be judged, but where it begins can be told.
        line = "numerics --kernel fa1 --heads 1 --seqlen 8 --head-dim 32 --dtype fp32 --input-scale 1e30"
        text = self.call(line, 2)
        self.assertTrue(text.startswith("COULD NOT COMPARE"), text)
        self.assertIn("of o that are no numbers come from", text)
        origins = json.loads(self.call(line + " --json", 2))["numerics"]["origins"]
        of_o = [o for o in origins if o["steps"][0]["of"] == "o"]
        self.assertEqual(len(of_o), 1, origins)
        self.assertEqual(of_o[0]["steps"][-1]["of"], "S")
        self.assertIn("of finite q and k", of_o[0]["steps"][-1]["why"])

    def test_what_makes_no_sense_is_refused_in_words(self):
        for line, words in (("", "needs --kernel or a dump"),
                            ("x.h5 --kernel fa1", "not both"),
                            ("nothing.h5", "nothing.h5"),
                            ("--kernel fa1 --baseline nothing.json", "cannot be read"),
                            ("--kernel fa1 --invariants --write-baseline b.json", "leave one out"),
                            ("--kernel fa1 --seqlen 16,32", "one case")):
            self.assertIn(words, self.call(f"numerics {line}", 2), line)
        (self.folder / "bad.json").write_text("{}")
        self.assertIn("no baseline", self.call("numerics --kernel fa1 --baseline bad.json", 2))


if __name__ == "__main__":
    FLAWED, = paths(__doc__, 2)
    unittest.main(verbosity=2)
