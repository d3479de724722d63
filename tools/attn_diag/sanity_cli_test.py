#!/usr/bin/env python3
"""Gate 0 of attn-diag trace: a result that moves is reported before anything else.

usage: sanity_cli_test.py PATH_TO_ATTN_DIAG PATH_TO_HASH_SOURCES [unittest arguments]
"""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from testing.host_library import HostLibrary

PROGRAM = HASH_SOURCES = ""
CASE = "--dtype fp32 --heads 1 --seqlen 5 --head-dim 8 --no-history"


class Sanity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attn-diag-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        HostLibrary(cls.folder, HASH_SOURCES).build()

    def trace(self, kernel, code, flags=""):
        result = subprocess.run(
            [PROGRAM, *shlex.split(f"trace --kernel ./mine.so:{kernel} {CASE} {flags}")],
            cwd=self.folder, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout

    def test_an_unwritten_workspace_is_the_verdict_and_check_the_next_step(self):
        text = self.trace("reads-workspace", 1)
        self.assertEqual(text.splitlines()[0],
                         "DIVERGES: the result depends on what was in the workspace before the run: an "
                         "uninitialised read")
        self.assertIn("Find the lines: " + PROGRAM + " check --kernel ./mine.so:reads-workspace", text)
        self.assertNotIn("Pattern of", text)  # no formula for what moves

    def test_reports_for_programs_have_it_too(self):
        report = json.loads(self.trace("reads-workspace", 1, "--json --junit x.xml"))
        self.assertEqual(report["sanity"]["finding"], "reads_unwritten")
        self.assertEqual([m["memory"] for m in report["sanity"]["memories"]], ["the workspace"])
        case = next(ElementTree.parse(self.folder / "x.xml").iter("testcase"))
        self.assertIn("the result does not move", case.get("name"))
        self.assertIn("the workspace", case.find("failure").get("message"))

    def test_a_kernel_that_holds_still_costs_three_runs(self):
        for kernel, code in ("right", 0), ("wrong", 1):
            report = json.loads(self.trace(kernel, code, "--json"))
            self.assertEqual((report["sanity"]["finding"], report["sanity"]["runs"]), ("steady", 3))

    def test_the_number_of_runs_can_be_chosen(self):
        self.assertEqual(json.loads(self.trace("right", 0, "--sanity 6 --json"))["sanity"]["runs"], 6)
        report = json.loads(self.trace("reads-workspace", 1, "--no-sanity --json"))
        self.assertEqual(report["sanity"]["finding"], "not_checked")
        self.assertEqual(report["schedules"]["finding"], "not_checked")
        for bad in "--sanity 0", "--sanity x", "--sanity 3 --no-sanity":
            self.trace("right", 2, bad)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    PROGRAM, HASH_SOURCES = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
    unittest.main()
