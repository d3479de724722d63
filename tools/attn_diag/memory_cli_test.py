#!/usr/bin/env python3
"""Shared memory lies as on a GPU, whatever the run; what is outside an array harms nothing and is named.

usage: memory_cli_test.py PATH_TO_ATTN_DIAG [unittest arguments]
"""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

from testing.host_library import HERE

PROGRAM = ""
CASE = "--dtype fp32 --heads 2 --head-dim 8"
SOURCE = HERE / "shared_layout.cu"


def line_of(text):
    lines = [i for i, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line]
    assert len(lines) == 1, (text, lines)
    return f"shared_layout.cu:{lines[0]}"


class SharedMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attn-diag-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        subprocess.run([PROGRAM, "build", SOURCE, "-o", "mine.so", "--no-nvcc"], cwd=cls.folder, check=True,
                       stdout=subprocess.DEVNULL)

    def call(self, line, code):
        done = subprocess.run([PROGRAM, *shlex.split(line)], cwd=self.folder, text=True, capture_output=True,
                              timeout=300, env={**os.environ, "LC_ALL": "C.UTF-8"})
        self.assertEqual(done.returncode, code, f"{line}\n{done.stdout}\n{done.stderr}")
        return " ".join((done.stdout + done.stderr).split())

    def run_of(self, kernel, code, more="--seqlen 7"):
        return self.call(f"run --kernel ./mine.so:{kernel} {CASE} --stage full --no-history {more}", code)

    def check_of(self, kernel, code):
        return self.call(f"check --kernel ./mine.so:{kernel} {CASE} --seqlen 7", code)

    def test_alignment_is_that_of_the_declared_layout_in_every_run(self):
        for more in "--seqlen 5 --threads 1", "--seqlen 5 --threads 2", "--seqlen 40 --threads 2":
            said = self.run_of("aligned_16", 0, more)
            self.assertIn("latent: kernel aligned_16 passes load_matrix_sync a pointer at", said)
            self.assertIn("not 32-byte aligned, as CUDA asks for; sm_80 to sm_90 take 16", said)
            self.assertNotIn("latent", self.run_of("undeclared_first", 0, more))
            self.assertIn("passes load_matrix_sync a pointer that is 6 bytes past a multiple of 32",
                          self.run_of("undeclared_behind", 2, more))
        self.assertIn("latent: kernel aligned_16", self.check_of("aligned_16", 0))

    def test_what_nvcc_leaves_out_does_not_move_what_comes_behind(self):
        self.assertNotIn("latent", self.run_of("behind_unread", 0))
        said = self.run_of("behind_other_branch<false>", 0)
        self.assertIn("its alignment depends on the shared variables before it", said)
        self.assertNotIn("latent", self.run_of("of_a_function", 0))

    def test_a_misaligned_vector_is_named_with_its_line(self):
        said = self.run_of("misaligned", 2)
        self.assertIn("accesses a vector at the misaligned address 0x", said)
        self.assertNotIn("null", said)
        self.assertIn(line_of("reinterpret_cast<float4*>"), said)
        self.assertIn("8 bytes past a multiple of 16", self.check_of("misaligned", 1))

    def test_stores_beside_shared_arrays_are_named_and_harm_nothing(self):
        self.assertIn("outside a: to byte 140 of 128", self.run_of("past_end", 2))
        self.assertIn("outside p: to byte 720 of 720", self.run_of("past_end_by_little", 2))
        self.assertIn("outside none: to byte 0 of 0", self.run_of("zero_sized", 2))
        self.assertIn("outside dynamic shared memory: to byte 156 of 128", self.run_of("past_dynamic", 2))
        for kernel, array, line in (("zero_sized", "none", "none[threadIdx.x] = 0"),
                                    ("past_dynamic", "dynamic shared memory", "s[32 + sk] = 1")):
            said = self.check_of(kernel, 1)
            # Compilers that know the size say the index.
            self.assertRegex(said, rf"(past|behind) the end of ({array}|an array of type 'float\[0\]')")
            self.assertIn(line_of(line), said)

    def test_atomics_on_local_memory_are_found_without_check_too(self):
        for said in self.run_of("local_atomic", 2), self.check_of("local_atomic", 1):
            self.assertIn("makes an atomic operation on a variable of its own at", said)
            self.assertIn(line_of("atomicAdd(&count"), said)

    def test_a_null_pointer_is_a_finding_of_check_and_does_not_end_it(self):
        said = self.check_of("null_store", 1)
        self.assertIn("accesses a null pointer", said)
        self.assertIn(line_of("reinterpret_cast<float*>(threadIdx.x * 4)"), said)
        self.assertIn("1 launch and 14 blocks", said)

    def test_a_row_whose_kernel_crashes_leaves_the_others(self):
        kernels = ",".join(f"./mine.so:{k}" for k in ("undeclared_first", "null_store", "aligned_16"))
        said = self.call(f"run --kernel {kernels} {CASE} --seqlen 7 --stage full --no-history", 2)
        self.assertIn("3 cases: 1 failed, 2 agree", said)
        self.assertIn("null_store, block (1,0,0): thread (0,0,0) accesses a null pointer", said)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
