#!/usr/bin/env python3
"""Which tests to run where evidence is sampled: all but those labelled `evidence`, and of these one group in N,
drawn by the hash of the commit. Tests that need one fixture are a group.

usage: sample_tests.py BUILD_FOLDER N
output: an argument for ctest -I
"""

import hashlib
import json
import subprocess
import sys


def properties(test):
    return {each["name"]: each["value"] for each in test.get("properties", [])}


def group(test):
    known = properties(test)
    return ",".join(known.get("FIXTURES_REQUIRED") or known.get("FIXTURES_SETUP") or [test["name"]])


def drawn(name, seed, one_in):
    return int(hashlib.sha256(f"{seed} {name}".encode()).hexdigest(), 16) % one_in == 0


def is_evidence(test):
    return any("evidence" in label.split() for label in properties(test).get("LABELS", []))


def chosen(tests, seed, one_in):
    """Numbers of the tests to run; CTest counts from 1."""
    return [number for number, test in enumerate(tests, 1)
            if not is_evidence(test) or drawn(group(test), seed, one_in)]


def main():
    if len(sys.argv) != 3 or not sys.argv[2].isdigit() or int(sys.argv[2]) < 1:
        sys.exit(__doc__)
    said = subprocess.run(["ctest", "--test-dir", sys.argv[1], "--show-only=json-v1"], check=True,
                          capture_output=True, text=True).stdout
    tests = json.loads(said)["tests"]
    seed = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    numbers = chosen(tests, seed, int(sys.argv[2]))
    print(f"evidence: one in {sys.argv[2]}, drawn by {seed or 'no commit'}: {len(numbers)} of {len(tests)} tests",
          file=sys.stderr)
    if not numbers:
        sys.exit("no tests to run")
    print(f"{numbers[0]},{numbers[0]},1," + ",".join(map(str, numbers)))


if __name__ == "__main__":
    main()
