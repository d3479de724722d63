#!/usr/bin/env python3
"""tools/gpu-check on a machine without a GPU, which every machine is for this test.

usage: gpu_check_test.py BUILD [unittest arguments]
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "gpu-check"
BUILD = ""


class WithoutGpu(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-check-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def call(self, *arguments, script=SCRIPT):
        return subprocess.run([str(script), *arguments], cwd=self.folder, text=True,
                              capture_output=True, timeout=300,
                              env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})

    def test_it_ends_with_2_and_both_files_say_why(self):
        result = self.call("--build", BUILD, "--out", "here")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("Nothing ran on a GPU.", result.stdout)
        report = json.loads((self.folder / "here" / "gpu-check.json").read_text())
        self.assertEqual((report["schema"], report["exit_code"]), ("attn-diag-gpu-check/1", 2))
        self.assertTrue(report["no_gpu"])
        sections = {section["name"]: section for section in report["sections"]}
        self.assertEqual(list(sections), ["doctor", "tests", "faults", "agreement", "fidelity", "wmma", "bench"])
        for name, section in sections.items():
            self.assertEqual(section["skipped"], None if name == "doctor" else "no usable GPU")
        text = (self.folder / "here" / "gpu-check.md").read_text()
        self.assertTrue(text.startswith("# gpu-check: could not run: there is no usable GPU"))
        self.assertIn(report["no_gpu"], text)

    def test_every_section_is_named_on_stderr(self):
        lines = self.call("--build", BUILD, "--quick", "--no-bench").stderr.splitlines()
        self.assertEqual(len(lines), 7)
        self.assertRegex(lines[1], r"^\[2/7, \d+ s\] tests: not run: no usable GPU$")

    def test_what_cannot_be_done_is_said_and_ends_with_2(self):
        for arguments, said in ((["--fast"], "unknown option '--fast'"), (["--out"], "--out needs"),
                                (["--build", "/nonexistent"], "holds no bin/gpu_check"),
                                (["--build", BUILD, "--out", "/proc/none"], "/proc/none")):
            result = self.call(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(said, result.stderr)

    def test_a_checkout_that_was_not_built_says_how_to_build(self):
        (self.folder / "tools").mkdir()
        script = shutil.copy(SCRIPT, self.folder / "tools")
        result = self.call(script=script)
        self.assertEqual(result.returncode, 2)
        self.assertIn("not built", result.stderr)

    def test_a_worker_names_the_kernel_it_cannot_load(self):
        result = subprocess.run([f"{BUILD}/bin/gpu_check", "--worker", "no_such_kernel"], text=True,
                                capture_output=True, timeout=60)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("no_such_kernel", result.stderr)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
