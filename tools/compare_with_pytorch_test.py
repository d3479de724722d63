#!/usr/bin/env python3
"""What compare_with_pytorch.py does without a GPU: its arithmetic, its options, and how it refuses."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import compare_with_pytorch as script  # noqa: E402

SCRIPT = pathlib.Path(script.__file__)


def run(folder, *arguments):
    """Runs the script with only the modules of `folder` before the standard ones."""
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], text=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": str(folder)}, timeout=60)


class Refusals(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def fake_torch(self, text):
        (pathlib.Path(self.folder.name) / "torch.py").write_text(text)

    def test_without_torch_it_says_so_and_ends_with_2(self):
        self.fake_torch("raise ImportError('no torch here')")
        result = run(self.folder.name)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stdout, "")
        self.assertIn("PyTorch is not installed", result.stderr)
        self.assertIn("no torch here", result.stderr)

    def test_without_a_gpu_it_says_so_and_ends_with_2(self):
        self.fake_torch("__version__ = '9.9'\nclass cuda:\n    is_available = lambda: False\n")
        result = run(self.folder.name)
        self.assertEqual(result.returncode, 2)
        self.assertIn("PyTorch 9.9 finds no usable GPU", result.stderr)

    def test_an_unknown_backend_or_mask_is_refused_before_anything_runs(self):
        for arguments in (["--backend", "default,fast"], ["--mask", "window"], ["--seqlen", "0"]):
            result = run(self.folder.name, *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(arguments[0], result.stderr)


class Arithmetic(unittest.TestCase):
    PROBLEM = {"batch": 1, "heads": 8, "kv_heads": 8, "seqlen_q": 512, "seqlen_k": 512,
               "head_dim": 64, "head_dim_v": 64, "dtype": "fp16", "mask": "none"}

    def test_the_sets_are_larger_than_twice_the_cache_and_not_by_more_than_one(self):
        one = 3 * 8 * 512 * 64 * 2
        for l2 in (50 * 2**20, 60 * 2**20, one, one + 1):
            sets = script.input_sets(self.PROBLEM, 2, l2)
            self.assertGreaterEqual(sets * one, 2 * l2)
            self.assertLess((sets - 1) * one, 2 * l2)
        self.assertEqual(script.input_sets(self.PROBLEM, 2, 1), 2)

    def test_order_statistics_are_those_of_attn_diag_bench(self):
        self.assertEqual(script.summarise([5, 1, 3, 2, 4]),
                         {"median": 3, "min": 1, "lower_quartile": 2, "upper_quartile": 4})
        self.assertEqual(script.summarise([2, 1])["median"], 1.5)
        self.assertEqual(script.summarise([7])["upper_quartile"], 7)

    def test_the_problems_are_every_combination(self):
        arguments = script.parse(["--seqlen", "128,512", "--heads", "4"])
        problems = script.problems_of(arguments)
        self.assertEqual([(p["seqlen_q"], p["mask"]) for p in problems],
                         [(128, "none"), (128, "causal"), (512, "none"), (512, "causal")])
        self.assertEqual({p["heads"] for p in problems}, {4})


class Dumps(unittest.TestCase):
    ATTRIBUTES = {"batch": 1, "heads": 2, "kv_heads": 2, "seqlen_q": 4, "seqlen_k": 4,
                  "head_dim": 8, "head_dim_v": 8, "dtype": "fp16", "layout": "BSHD",
                  "mask": "causal:bottom_right", "softmax_scale": 0.5}

    def test_a_square_causal_mask_is_taken_whatever_its_alignment(self):
        problem, layout, scale = script.problem_of_dump(self.ATTRIBUTES)
        self.assertEqual((problem["mask"], layout, scale), ("causal", "BSHD", 0.5))

    def test_masks_that_is_causal_does_not_have_are_refused(self):
        for change in ({"seqlen_k": 6}, {"mask": "window:1,0"}):
            with self.assertRaises(script.CannotRun):
                script.problem_of_dump({**self.ATTRIBUTES, **change})
        top_left = {**self.ATTRIBUTES, "seqlen_k": 6, "mask": "causal:top_left"}
        self.assertEqual(script.problem_of_dump(top_left)[0]["mask"], "causal")


if __name__ == "__main__":
    unittest.main()
