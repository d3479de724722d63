#!/usr/bin/env python3
"""The gdb commands for kernels on the host executor, in a gdb of this machine.

usage: gdb_test.py PATH_TO_ATTN_DIAG [unittest arguments]
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent / "attn_diag" / "testing" / "crashing_kernels.cu"


class Gdb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attn-diag-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.source = cls.folder / "mine.cu"
        shutil.copy(SOURCE, cls.source)
        subprocess.run([PROGRAM, "build", cls.source, "-o", "mine.so", "--no-nvcc", "--no-lockstep", "--", "-O0"],
                       cwd=cls.folder, check=True, stdout=subprocess.DEVNULL)

    def gdb(self, kernel, *commands):
        words = ["gdb", "-nx", "-batch", "-x", HERE / "attn_diag.py"]
        for command in commands:
            words += ["-ex", command]
        words += ["--args", PROGRAM, "run", "--kernel", f"./mine.so:{kernel}", "--dtype", "fp32", "--heads", "1",
                  "--seqlen", "7", "--head-dim", "8", "--stage", "full", "--no-history", "--no-sanity", "--in-process"]
        result = subprocess.run(words, cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=300)
        unable = "Couldn't write extended state status"  # of old gdb on some processors, for any program
        if unable in result.stdout:
            why = f"SKIP: gdb cannot call functions of a program on this machine: {unable}"
            print(why, flush=True)
            self.skipTest(why)
        return result.stdout

    def line_of(self, text):
        return next(i for i, line in enumerate(self.source.read_text().splitlines(), 1) if text in line)

    def test_break_thread_stops_in_that_thread_alone(self):
        line = self.line_of("lse[h * sq + i] = ")
        said = self.gdb("right", f"break-thread mine.cu:{line} 1,0,0 2", "run", "print $block()", "print $thread()",
                        "print i", "kernel-threads", "continue")
        self.assertIn('$1 = "(1, 0, 0)"', said)
        self.assertIn('$2 = "(2, 0, 0)"', said)
        self.assertIn("$3 = 6", said)  # 4 threads a block
        self.assertRegex(said, r"kernel attend.*, block \(1,0,0\), 4 threads")
        self.assertRegex(said, r"runs: +thread \(2,0,0\)")
        self.assertIn("AGREES", said)  # it went on to the end, and stopped nowhere else
        self.assertEqual(said.count(f"mine.cu:{line}"), 2)  # set, and reached once

    def test_kernel_threads_shows_who_waits_where(self):
        line = self.line_of("__syncthreads")  # in the block that faults later, so that no fault comes first
        said = self.gdb("writes-null", f"break mine.cu:{line} if $is_thread(\"1,0,0\", \"2,0,0\")", "run",
                        "kernel-threads")
        self.assertRegex(said, r"runs: +thread \(2,0,0\)")
        self.assertRegex(said, rf"waits: +threads \(0\.\.1,0,0\) at __syncthreads at .*mine.cu:{line}")
        self.assertIn("0 have ended", said)

    def test_what_is_no_thread_is_refused(self):
        self.assertIn("is no block or thread", self.gdb("right", "break-thread mine.cu:1 1,x 2"))
        self.assertIn("needs LOCATION BLOCK THREAD", self.gdb("right", "break-thread mine.cu:1"))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if shutil.which("gdb") is None:
        print("SKIP: gdb is not here (tools/setup --test installs it)")
        sys.exit(0)
    unittest.main()
