#!/usr/bin/env python3
"""Drives what attn-diag says of backends on a machine where no GPU can be seen.

usage: backend_cli_test.py PATH_TO_ATTN_DIAG [unittest arguments]
"""

import pathlib
import shutil
import sys
import unittest

import cli_test
from cli_test import AGREES, COULD_NOT, SMALL, CommandTest


class Backends(CommandTest):
    def test_auto_falls_back_to_the_host_and_says_why(self):
        for flag in "", "--backend auto":
            report = self.json_of(f"run --kernel fa1 {SMALL} {flag}", AGREES)
            self.assertEqual(report["backend"], "host")
            self.assertIn("--backend host", report["reproduce"])
            why = [note for note in report["notes"] if note.startswith("Backend auto is host here")]
            self.assertEqual(len(why), 1, report["notes"])
        self.assertNotIn("Backend auto", self.expect(
            f"run --kernel fa1 {SMALL} --backend host", AGREES).stdout)

    def test_cuda_without_a_gpu_is_refused_with_the_reason(self):
        for command in "run", "trace", "dump -o x.h5":
            said = self.refused(f"{command} --kernel fa1 {SMALL} --backend cuda")
            self.assertRegex(said, "has no build for backend cuda|Backend cuda")
        self.assertFalse((self.folder / "x.h5").exists())

    def test_flags_of_the_host_executor_are_refused_on_cuda(self):
        for flag in "--schedule reverse", "--mma-order 1", "--async-copies early":
            self.refused(f"run --kernel fa1 {SMALL} --backend cuda {flag}", flag.split()[0],
                         "--backend host")
            self.expect(f"run --kernel fa1 {SMALL} {flag}", AGREES)

    def test_list_says_what_can_run(self):
        report = self.json_of("list", AGREES)
        state = {backend["name"]: backend for backend in report["backends"]}
        self.assertTrue(state["host"]["can_run"])
        self.assertFalse(state["cuda"]["can_run"])
        self.assertTrue(state["cuda"]["why_not"])
        for kernel in report["kernels"]:
            if kernel["backend"] == "cuda":
                self.assertFalse(kernel["can_run"])
                self.assertEqual(kernel["why_not"], state["cuda"]["why_not"])
                self.assertRegex(kernel["architectures"], r"sm_\d+")

    def test_doctor_tells_what_works_from_what_does_not(self):
        text = self.expect("doctor", AGREES).stdout
        self.assertRegex(text, r"host +works: \w+ ran and agrees with the reference")
        self.assertRegex(text, "cuda +cannot run: see below")
        self.assertIn("backend cuda: ", text)
        report = self.json_of("doctor", AGREES)
        self.assertEqual(report["command"], "doctor")
        self.assertEqual([backend["can_run"] for backend in report["backends"]], [True, False])
        self.assertIn("backend cuda", [lack["what"] for lack in report["lacks"]])
        self.assertTrue(report["libraries"])
        self.assertEqual(self.expect("doctor --quiet", AGREES).stdout,
                         "host works\ncuda cannot run\n")

    def test_doctor_without_kernels_ends_with_2(self):
        lonely = self.folder / "attn-diag"
        shutil.copy(cli_test.PROGRAM, lonely)
        cli_test.PROGRAM, program = str(lonely), cli_test.PROGRAM
        try:
            text = self.expect("doctor", COULD_NOT).stdout
        finally:
            cli_test.PROGRAM = program
        self.assertIn("none found", text)
        self.assertIn("No kernel built for backend host was found", " ".join(text.split()))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    cli_test.PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
