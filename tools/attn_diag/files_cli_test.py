#!/usr/bin/env python3
"""attn-diag diagnose of files that numpy wrote: the bug is named, what is assumed is said.

usage: files_cli_test.py PATH_TO_ATTN_DIAG [unittest arguments]
"""

import json
import os
import sys
import unittest

from testing.command_test import CommandTest, paths

try:
    import numpy as np
except ImportError:
    system = "/usr/bin/python3"  # where Debian's python3-numpy is
    if sys.executable != system and os.path.exists(system):
        os.execv(system, [system, *sys.argv])
    print("SKIP: no numpy (apt install python3-numpy)")
    sys.exit(0)

BATCH, HEADS, LENGTH, DIMS = 1, 2, 80, 64


def draw():
    random = np.random.default_rng(0)
    return [random.standard_normal((BATCH, HEADS, LENGTH, DIMS)).astype(np.float16) for _ in "qkv"]


def attention(q, k, v, scale=DIMS ** -0.5, shift=None):
    """shift: query i sees keys up to i + shift."""
    s = np.einsum("bhid,bhjd->bhij", q.astype(float), k.astype(float)) * scale
    if shift is not None:
        i = np.arange(LENGTH)
        s = np.where(i[None, :] <= i[:, None] + shift, s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return ((p / p.sum(-1, keepdims=True)) @ v.astype(float)).astype(np.float16)


class Files(CommandTest):
    def save(self, name, o, **settings):
        q, k, v = draw()
        np.savez(self.folder / name, q=q, k=k, v=v, o=o, **settings)

    def test_a_right_output_is_right(self):
        self.save("x.npz", attention(*draw(), shift=0), causal=True)
        self.assertTrue(self.call("diagnose x.npz", 0).startswith("NOTHING WRONG"))

    def test_compare_judges_what_diagnose_names(self):
        self.save("x.npz", attention(*draw(), shift=0), causal=True)
        text = self.call("compare x.npz", 0)
        self.assertTrue(text.startswith("AGREES: x.npz with the reference in all 10,240 elements"), text)
        self.assertIn("Assumed: softmax_scale 0.125 (1/sqrt(head_dim)).", text)
        self.call("compare x.npz --mask none", 1)
        self.save("y.npz", attention(*draw(), scale=1 / DIMS))
        found = json.loads(self.call("compare y.npz --json", 1))
        self.assertEqual((found["verdict"], found["actual"], found["expected"]), ("diverges", "y.npz", None))
        self.assertIn("mask none", found["assumed"])
        self.call(f"compare y.npz --softmax-scale {1 / DIMS}", 0)
        self.assertIn("leave out what is about one of another program",
                      self.call("compare x.npz y.npz --mask causal", 2))

    def test_a_scale_that_is_applied_twice_is_named(self):
        self.save("x.npz", attention(*draw(), scale=1 / DIMS))
        text = self.call("diagnose x.npz", 1)
        self.assertTrue(text.startswith("NAMED: temperature"), text)
        self.assertIn("Assumed: softmax_scale 0.125 (1/sqrt(head_dim)).", text)
        # With the scale that was meant nothing is wrong.
        self.call(f"diagnose x.npz --softmax-scale {1 / DIMS}", 0)

    def test_a_mask_off_by_one_is_named_from_single_arrays(self):
        q, k, v = draw()
        arrays = {"q": q, "k": k, "v": v, "wrong": attention(q, k, v, shift=1)}
        for name, array in arrays.items():
            np.save(self.folder / f"{name}.npy", array)
        flags = "--q q.npy --k k.npy --v v.npy --o wrong.npy --mask causal"
        found = json.loads(self.call(f"diagnose {flags} --json", 1))
        self.assertEqual(found["diagnosis"][0]["id"], "mask-shift")
        self.assertEqual(found["diagnosis"][0]["equivalent"], [])
        others = found["diagnosis"][0]["other_parameters"]
        self.assertEqual(others, ["mask-shift(last = 1, loop = tiles with a visible key)"])
        self.assertIn("q.npy", self.call(f"diagnose {flags}", 1))

    def test_what_is_missing_or_contradicts_is_refused(self):
        q, k, v = draw()
        np.savez(self.folder / "x.npz", q=q, k=k, v=v)
        self.assertIn("No array is o", self.call("diagnose x.npz", 2))
        self.assertIn("not both", self.call("diagnose --q x.npz --kernel fa1", 2))
        self.assertIn("could not be opened", self.call("diagnose y.npz", 2))


if __name__ == "__main__":
    paths(__doc__, 1)
    unittest.main()
