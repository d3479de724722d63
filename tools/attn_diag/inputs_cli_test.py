#!/usr/bin/env python3
"""attn-diag inputs as it is called: what inputs hide, as text and JSON.

usage: inputs_cli_test.py PATH_TO_ATTN_DIAG [unittest arguments]
"""

import json
import unittest

from testing.command_test import CommandTest, paths

CASE = "--kernel split_k --batch 2 --seqlen 100 --num-splits 2 --mask causal"


class Inputs(CommandTest):
    def test_every_kind_of_a_list_is_a_row_with_what_it_hides(self):
        text = self.call(f"inputs {CASE} --inputs ones,probe")
        rows = [line.split() for line in text.splitlines()[1:3]]
        self.assertEqual([row[0] for row in rows], ["ones", "probe"])
        self.assertGreater(int(rows[0][-3]), int(rows[1][-3]))
        self.assertIn("hidden   exp-linear (F17)", text)
        self.assertNotIn("hidden   exp-linear", text.split("\n  probe, ")[1])
        self.assertEqual(len(self.call(f"inputs {CASE} --inputs ones,probe --quiet").splitlines()), 3)

    def test_json_has_every_bug_with_its_ways(self):
        report = json.loads(self.call(f"inputs {CASE} --inputs ones --json"))
        case, = report["cases"]
        self.assertEqual((report["command"], case["inputs"]), ("inputs", "ones"))
        bugs = {bug["id"]: bug for bug in case["bugs"]}
        self.assertEqual(case["hidden"], sum(b["hidden"] == b["ways"] for b in bugs.values()))
        self.assertEqual(bugs["gain"]["hidden"], 0)
        self.assertIn("product-times-n", bugs["gain"]["alike"])

    def test_the_inputs_of_a_dump_are_looked_at_as_well(self):
        self.call("dump --kernel fa1 --seqlen 40 --inputs ones -o x.h5")
        text = self.call("inputs --kernel fa1 --inputs x.h5")
        self.assertIn("x.h5", text)
        self.assertIn("hidden   exp-linear", text)

    def test_what_makes_no_sense_is_refused(self):
        self.assertIn("needs --kernel", self.call("inputs", 2))
        self.assertIn("--inputs takes", self.call("inputs --kernel fa1 --inputs proble", 2))


if __name__ == "__main__":
    paths(__doc__, 1)
    unittest.main()
