"""Tests of tap_statements.py."""

import unittest

from tap_statements import delete_tap_statements


class DeleteTapStatements(unittest.TestCase):
    def check(self, text, expected, count):
        self.assertEqual(delete_tap_statements(text), (expected, count))

    def test_a_visit_on_one_line_is_deleted(self):
        self.check("a;\n  tap.template visit<Tensor::kS>(s, b);\nc;\n", "a;\n  \nc;\n", 1)

    def test_a_visit_over_two_lines_is_deleted_and_lines_keep_their_numbers(self):
        self.check("tap.visit(f(x;y),\n   z);\nc;\n", "\n\nc;\n", 1)

    def test_a_gate_with_one_statement_is_deleted_with_it(self):
        self.check("if (tap.ends_after(Stage::kQk)) continue;\nb;\n", "\nb;\n", 1)

    def test_a_gate_with_a_block_is_deleted_with_its_block_and_no_more(self):
        self.check("if constexpr (Tap::kEnabled) {\n  a;\n  tap.x();\n}\nb;\n", "\n\n\n\nb;\n", 1)

    def test_other_statements_stay(self):
        text = "if constexpr (kTap) x;\nmap.tap.y();\nf(tap);\n"
        self.check(text, text, 0)

    def test_a_gate_with_an_else_is_refused(self):
        with self.assertRaises(ValueError):
            delete_tap_statements("if constexpr (Tap::kEnabled) {\n} else {\n}\n")

    def test_a_statement_that_does_not_end_is_refused(self):
        with self.assertRaises(ValueError):
            delete_tap_statements("tap.visit(x)\n")


if __name__ == "__main__":
    unittest.main()
