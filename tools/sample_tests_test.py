#!/usr/bin/env python3
"""What sample_tests.py leaves out, and what it never does."""

import unittest

import sample_tests


def test(name, labels, **fixtures):
    values = {"LABELS": labels, **fixtures}
    return {"name": name, "properties": [{"name": k, "value": v} for k, v in values.items()]}


TESTS = [test("unit", ["harness"]), {"name": "bare"}]
for fault in range(40):
    TESTS += [test(f"build {fault}", ["fixtures", "evidence"], FIXTURES_SETUP=[f"f{fault}"]),
              test(f"trace {fault}", ["fixtures evidence"], FIXTURES_REQUIRED=[f"f{fault}"])]


class Sample(unittest.TestCase):
    def test_what_is_no_evidence_always_runs(self):
        for seed in "abcdef":
            self.assertEqual(sample_tests.chosen(TESTS, seed, 1000)[:2], [1, 2])

    def test_one_in_one_is_all(self):
        self.assertEqual(sample_tests.chosen(TESTS, "a", 1), list(range(1, len(TESTS) + 1)))

    def test_a_group_stays_together(self):
        for seed in "abcdef":
            numbers = set(sample_tests.chosen(TESTS, seed, 4))
            for first in range(3, len(TESTS), 2):
                self.assertEqual(first in numbers, first + 1 in numbers)

    def test_another_commit_draws_others_and_all_are_drawn_in_time(self):
        seen = [frozenset(sample_tests.chosen(TESTS, str(seed), 4)) for seed in range(60)]
        self.assertGreater(len(set(seen)), 50)
        self.assertEqual(frozenset.union(*seen), frozenset(range(1, len(TESTS) + 1)))
        mean = sum(len(s) - 2 for s in seen) / len(seen)
        self.assertTrue(14 < mean < 26, mean)  # a quarter of 80


if __name__ == "__main__":
    unittest.main()
