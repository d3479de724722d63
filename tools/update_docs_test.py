#!/usr/bin/env python3
"""What tools/update_docs takes for the same."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
PATH = pathlib.Path(__file__).resolve().parent / "update_docs"
LOADER = importlib.machinery.SourceFileLoader("update_docs", str(PATH))
update_docs = importlib.util.module_from_spec(importlib.util.spec_from_loader("update_docs", LOADER))
LOADER.exec_module(update_docs)


class Same(unittest.TestCase):
    def test_rounding_seconds_and_what_is_left_out_may_differ(self):
        for shown, made in (("a 1.50 b\n", "a  1.51 b\n"), ("3.4e+05x\n", "3.39e+05x\n"), ("in 3 s\n", "in 0.2 s\n"),
                            ("a 1.5\n...\nz 3\n", "a 1.5\nq 7.5\nr\nz 3\n"), ("a\n  ...\n", "a\nb\n"), ("a\n", "a\n")):
            self.assertTrue(update_docs.same(shown, made), (shown, made))

    def test_all_else_is_something_else(self):
        for shown, made in (("a 1.50 b\n", "a 1.60 b\n"), ("z 3\n", "z 4\n"), ("x.cu:54\n", "x.cu:55\n"), ("a\n", "a\nb\n"),
                            ("a\n...\nz 3.5\n", "a\nz 4.5\n"), ("1.5 x\n", "1.5 y\n"), ("nan\n", "1.5\n")):
            self.assertFalse(update_docs.same(shown, made), (shown, made))


if __name__ == "__main__":
    unittest.main()
