#!/usr/bin/env python3
"""Gate 0 of attn-diag run, trace and diagnose: does the result move, and what is said of one that does?

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
MOVING = pathlib.Path(__file__).resolve().parent / "testing" / "moving_rows.cu"


def call(folder, line):
    return subprocess.run([PROGRAM, *shlex.split(line)], cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**os.environ, "LC_ALL": "C.UTF-8"}, timeout=300)


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
                         "LATENT: the result depends on what was in the workspace before the run: an "
                         "uninitialised read; right with zeros in the workspace, and so most likely on a GPU "
                         "today, but not in memory that was used before")
        self.assertIn("Find the lines: " + PROGRAM + " check --kernel ./mine.so:reads-workspace", text)
        self.assertNotIn("Pattern of", text)  # no formula for what moves

    def test_reports_for_programs_have_it_too(self):
        report = json.loads(self.trace("reads-workspace", 1, "--json --junit x.xml"))
        self.assertEqual(report["sanity"]["finding"], "reads_unwritten")
        self.assertEqual([m["memory"] for m in report["sanity"]["memories"]], ["the workspace"])
        self.assertEqual((report["verdict"], report["sanity"]["on_gpu"]), ("latent", "right"))
        case = next(ElementTree.parse(self.folder / "x.xml").iter("testcase"))
        self.assertIn("the result does not move", case.get("name"))
        self.assertIn("the workspace", case.find("failure").get("message"))

    def test_a_kernel_that_holds_still_costs_three_runs(self):
        for kernel, code in ("right", 0), ("wrong", 1):
            report = json.loads(self.trace(kernel, code, "--json"))
            self.assertEqual((report["sanity"]["finding"], report["sanity"]["runs"]), ("steady", 3))

    def test_run_asks_the_cheap_part_of_it_and_finds_what_trace_finds(self):
        line = "run --stage full --kernel ./mine.so:{} " + CASE
        for kernel, verdict, finding, code in [("right", "agrees", "steady", 0),
                                               ("wrong", "diverges", "steady", 1),
                                               ("reads-workspace", "latent", "reads_unwritten", 1)]:
            done = call(self.folder, line.format(kernel) + " --json")
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            report = json.loads(done.stdout)
            self.assertEqual((report["verdict"], report["sanity"]["finding"]), (verdict, finding))
        self.assertEqual(json.loads(call(self.folder, line.format("right") + " --json").stdout)
                         ["sanity"]["runs"], 2)
        text = call(self.folder, line.format("right")).stdout
        self.assertRegex(text, r"That took [0-9.e+-]+x the time of the run; --no-sanity leaves it out")
        text = call(self.folder, line.format("reads-workspace")).stdout
        self.assertTrue(text.startswith("LATENT: the result depends on what was in the workspace"), text)
        off = json.loads(call(self.folder, line.format("reads-workspace") + " --no-sanity --json").stdout)
        self.assertEqual((off["verdict"], off["sanity"]["finding"]), ("diverges", "not_checked"))

    def test_a_matrix_says_what_running_again_cost_and_which_rows_are_latent(self):
        done = call(self.folder, "run --kernel ./mine.so:right,./mine.so:reads-workspace --stage full "
                    f"{CASE} --junit y.xml")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("2 cases: 1 latent, 1 agrees", done.stdout)
        self.assertRegex(" ".join(done.stdout.split()), r"2 cases were run again .* at [0-9.e+-]+x the time")
        failed = [c for c in ElementTree.parse(self.folder / "y.xml").iter("testcase")
                  if c.find("failure") is not None]
        self.assertEqual(len(failed), 1)
        self.assertIn("LATENT", failed[0].find("failure").get("message"))

    def test_the_number_of_runs_can_be_chosen(self):
        self.assertEqual(json.loads(self.trace("right", 0, "--sanity 6 --json"))["sanity"]["runs"], 6)
        report = json.loads(self.trace("reads-workspace", 1, "--no-sanity --json"))
        self.assertEqual(report["sanity"]["finding"], "not_checked")
        self.assertEqual(report["schedules"]["finding"], "not_checked")
        for bad in "--sanity 0", "--sanity x", "--sanity 3 --no-sanity":
            self.trace("right", 2, bad)


class Moving(unittest.TestCase):
    """Real kernels whose result moves with the order of threads."""

    CASE = "--dtype fp32 --heads 1 --seqlen 40 --head-dim 8"

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attn-diag-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        built = call(cls.folder, f"build {MOVING} -o mine.so --no-nvcc")
        if built.returncode != 0:
            raise AssertionError(built.stderr)

    def said(self, command, kernel, code, flags=""):
        done = call(self.folder, f"{command} --kernel ./mine.so:{kernel} {self.CASE} --no-history {flags}")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def report(self, command, kernel, code):
        return json.loads(self.said(command, kernel, code, "--json"))

    def test_sums_in_the_order_of_arrival_agree_in_every_command(self):
        for command in "run", "trace":
            self.assertIn("bits depend on the order of arrival, within rounding",
                          self.said(command, "atomics", 0).splitlines()[0])
            report = self.report(command, "atomics", 0)
            self.assertEqual((report["verdict"], report["sanity"]["within_bounds"]), ("agrees", True))
        self.assertEqual(self.report("diagnose", "atomics", 0)["diagnosis_verdict"], "nothing_wrong")
        self.said("check", "atomics", 0)

    def test_memory_that_an_adapter_allocates_is_like_a_workspace(self):
        for kernel in "in-workspace", "in-buffer":
            report = self.report("trace", kernel, 1)
            self.assertEqual((report["verdict"], report["sanity"]["finding"], report["sanity"]["within_bounds"]),
                             ("latent", "depends_on_order", False))

    def test_a_wrong_kernel_whose_bits_move_by_less_than_rounding_is_named(self):
        self.assertIn("reduce diverges first", self.said("trace", "atomics-unscaled", 1).splitlines()[0])
        for kernel in "unscaled", "atomics-unscaled":
            report = self.report("diagnose", kernel, 1)
            self.assertEqual(report["diagnosis_verdict"], "named", report)
            self.assertEqual(report["diagnosis"][0]["id"], "temperature")

    def test_a_missing_syncwarp_is_latent(self):
        for command in "run", "trace", "diagnose":
            first = self.said(command, "warp", 1).splitlines()[0]
            self.assertTrue(first.startswith("LATENT: the result depends on the order"), first)
            self.assertIn("right in lockstep, and so most likely on a GPU today", first)
            report = self.report(command, "warp", 1)
            self.assertEqual((report["verdict"], report["sanity"]["on_gpu"]), ("latent", "right"))
        self.assertIn("Nothing else is wrong: in lockstep every stage agrees", self.said("trace", "warp", 1))

    def test_a_latent_flaw_does_not_silence_the_bug_behind_it(self):
        text = self.said("trace", "warp-unscaled", 1)
        self.assertTrue(text.startswith("DIVERGES: the result depends on the order"), text)
        self.assertIn("in lockstep, where it holds still, reduce diverges first", text.splitlines()[0])
        self.assertEqual(self.report("trace", "warp-unscaled", 1)["shown"], "in lockstep")
        report = self.report("diagnose", "warp-unscaled", 1)
        self.assertEqual(report["diagnosis_verdict"], "named", report)
        self.assertEqual(report["diagnosis"][0]["id"], "temperature")
        self.assertIn(", in lockstep; beside that, the result depends on the order",
                      self.said("diagnose", "warp-unscaled", 1).splitlines()[0])

    def test_a_race_that_a_converged_warp_shows_is_wrong_today_and_no_formula(self):
        for command in "run", "trace":
            first = self.said(command, "race", 1).splitlines()[0]
            self.assertTrue(first.startswith("DIVERGES: the result depends on the order"), first)
            report = self.report(command, "race", 1)
            self.assertEqual((report["verdict"], report["sanity"]["on_gpu"]), ("diverges", "either"))
        self.assertEqual(self.report("diagnose", "race", 1)["diagnosis_verdict"], "not_a_formula")

    def test_what_is_right_only_while_warps_come_in_their_order_is_not_latent(self):
        for kernel in "race-of-the-last", "one-for-two":
            for command in "run", "trace":
                first = self.said(command, kernel, 1).splitlines()[0]
                self.assertTrue(first.startswith("DIVERGES: the result depends on the order"), first)
                self.assertIn("right in lockstep, but not if warps come in another order: a GPU may do either",
                              first)
                report = self.report(command, kernel, 1)
                self.assertEqual((report["verdict"], report["sanity"]["on_gpu"]), ("diverges", "either"))

    def test_what_a_copy_in_flight_overwrites_shows_though_copies_land_late(self):
        for kernel in "copied-over", "copied-beside":
            for command in "run", "trace":
                first = self.said(command, kernel, 1).splitlines()[0]
                self.assertTrue(first.startswith("DIVERGES: the result depends on when asynchronous copies land"), first)
                self.assertIn("asynchronous copies land", self.report(command, kernel, 1)["sanity"]["detail"])
            self.said("check", kernel, 1)
        # A wait would not help who should find what was there before.
        self.assertIn("issued by another thread since the last barrier. read of", " ".join(self.said("check", "copied-beside", 1, "--schedule reverse").split()))

    def test_the_check_that_a_report_asks_for_can_be_run_as_it_is(self):
        line = next(line for line in self.said("trace", "race", 1, "--async-copies late").splitlines()
                    if "Find the lines:" in line)
        words = shlex.split(line.split("Find the lines:")[1])
        done = call(self.folder, shlex.join(words[1:]))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("race", done.stdout)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    PROGRAM, HASH_SOURCES = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
    unittest.main()
