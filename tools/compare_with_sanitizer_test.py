#!/usr/bin/env python3
"""tools/compare_with_sanitizer with stand-ins for compute-sanitizer and attn-diag: what it reads and writes."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOOL = pathlib.Path(__file__).resolve().parent / "compare_with_sanitizer"
ROOT = TOOL.parent.parent


def load(path):
    sys.path.insert(0, str(path.parent))  # for what it imports
    loader = importlib.machinery.SourceFileLoader(path.name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(path.name, loader))
    loader.exec_module(module)
    return module


tool = load(TOOL)

# Says errors where the kernel's name has "broken", and warns in racecheck where it has "latent".
SANITIZER = """#!/bin/sh
[ "$1" = --version ] && { echo "Version 2025.3.1"; exit 0; }
echo "========= COMPUTE-SANITIZER"
case "$*" in
  *racecheck*latent*) echo "========= Warning: Race reported between Write access at k+0x10"
     echo "=========     and Read access at k+0x20"
     echo "========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)" ;;
  *racecheck*) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ;;
  *memcheck*broken*) echo "========= Invalid __global__ read of size 4 bytes"
     echo "========= ERROR SUMMARY: 2 errors" ;;
  *gone*) echo "Internal error" ;;
  *) echo "========= ERROR SUMMARY: 0 errors" ;;
esac
"""
ATTN_DIAG = """#!/bin/sh
case "$*" in
  check*right*) echo '{"findings": []}' ;;
  *thrower*) echo "attn-diag: the host code threw map::at" >&2; exit 2 ;;
  check*untold*) echo "attn-diag: --threads: a watched run has one worker" >&2; exit 2 ;;
  check*) echo '{"findings": [{"severity": "latent", "kind": "race", "message": "two lanes"}]}'; exit 1 ;;
  run*broken*) exit 1 ;;
esac
"""


class Comparing(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sanitizer-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in ("compute-sanitizer", SANITIZER), ("attn-diag", ATTN_DIAG):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def call(self, *arguments, sanitizer="compute-sanitizer"):
        return subprocess.run(
            [str(TOOL), "--attn-diag", str(self.folder / "attn-diag"), "--out", str(self.folder / "out"),
             *arguments], text=True, capture_output=True, timeout=60,
            env={**os.environ, "PATH": "/usr/bin:/bin", "COMPUTE_SANITIZER": str(self.folder / sanitizer)})

    def pairs(self, *names):
        entries = [{"name": name, "bug": "a bug" if "@" in name else "", "cases": ["--seqlen 8"], "host": "",
                    "cuda": "refused" if "refused" in name else ""} for name in names]
        (self.folder / "pairs.json").write_text(json.dumps(entries))
        return "--pairs", str(self.folder)

    def test_every_tool_and_check_are_read(self):
        done = self.call(*self.pairs("right", "a@broken", "b@latent", "c@refused"))
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads((self.folder / "out" / "sanitizer.json").read_text())
        rows = {row["name"]: row for row in report["kernels"]}
        verdicts = {name: [row[t] and row[t]["verdict"] for t in ("check", *tool.TOOLS)]
                    for name, row in rows.items()}
        self.assertEqual(verdicts["right"], ["silent"] * 5)
        self.assertEqual(verdicts["a@broken"], ["latent", "error", "silent", "silent", "silent"])
        self.assertEqual(verdicts["b@latent"], ["latent", "silent", "warning", "silent", "silent"])
        self.assertEqual(verdicts["c@refused"], ["latent", None, None, None, None])
        self.assertEqual(rows["a@broken"]["memcheck"]["messages"],
                         ["Invalid __global__ read of size 4 bytes"])
        self.assertEqual((rows["a@broken"]["run_host"], rows["right"]["run_cuda"]), ("diverges", "agrees"))
        text = (self.folder / "out" / "sanitizer.md").read_text()
        self.assertIn("| `a@broken` | a bug | diverges | diverges | *latent* race | **error** | - | - | - |", text)
        self.assertIn("| `right` | nothing | agrees | agrees | - | - | - | - | - |", text)

    def test_a_kernel_that_cannot_be_run_is_no_silence(self):
        done = self.call(*self.pairs("right", "gone"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be run or checked: gone", done.stderr)

    def test_a_kernel_that_does_not_come_to_run_is_told_from_a_tool_that_failed(self):
        done = self.call(*self.pairs("thrower@broken", "untold@broken"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be run or checked: untold@broken\n", done.stderr)
        rows = {row["name"]: row for row in json.loads((self.folder / "out" / "sanitizer.json").read_text())["kernels"]}
        self.assertEqual(rows["thrower@broken"]["check"],
                         {"verdict": "does not run", "messages": ["attn-diag: the host code threw map::at"]})
        self.assertEqual(rows["untold@broken"]["check"]["verdict"], "failed")
        text = (self.folder / "out" / "sanitizer.md").read_text()
        self.assertIn("| `thrower@broken` | a bug | does not complete | does not complete | does not run | **error** |", text)

    def test_cases_of_the_zoo_are_flags_that_every_command_and_backend_takes(self):
        run_all = load(ROOT / "fixtures" / "zoo" / "run_all")
        self.assertEqual(run_all.for_all_commands("--seqlen 40 --schedule reverse --threads 1"), "--seqlen 40")
        self.assertEqual(run_all.for_all_commands("--seqlen 3,4 --mask window:1,2"), "--seqlen 3 --mask window:1,2")
        with tempfile.TemporaryDirectory() as folder:
            for name in run_all.zoo.names():
                for member in run_all.pair_members(run_all.zoo.load(name), pathlib.Path(folder)):
                    for case in member[2]:
                        self.assertNotRegex(run_all.for_all_commands(case), "--(schedule|threads|step-limit)")

    def test_a_kernel_of_one_s_own(self):
        done = self.call("--kernel", "right.so", "--cuda-kernel", "right.cuda.so", "--case", "--seqlen 8",
                         "--tools", "memcheck")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("check: silent, memcheck: silent", done.stdout)

    def test_what_is_missing_is_said(self):
        self.assertIn("no pairs.json", self.call("--pairs", "/nowhere").stderr)
        self.assertEqual(self.call("--tools", "memchek").returncode, 2)
        if tool.find_sanitizer() is None:
            done = self.call(*self.pairs("right"), sanitizer="none")
            self.assertEqual(done.returncode, 2)
            self.assertIn("there is no compute-sanitizer here", done.stderr)


if __name__ == "__main__":
    unittest.main()
