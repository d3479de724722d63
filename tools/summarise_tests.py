#!/usr/bin/env python3
"""Reads CTest's JUnit file, names what was skipped or failed, repeats the end of what the first of the failed said (of a
long log often the end alone is kept), and ends with the line `N passed, N failed, N skipped`.

usage: summarise_tests.py RESULTS.xml CTEST_EXIT_CODE
exit code: 0 if something passed and nothing failed, else 1
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

SHOWN_TESTS = 3
SHOWN_LINES = 30  # of each


def outcome(case):
    """(passed|failed|skipped, reason). A test that CTest could not start has failed."""
    status = case.get("status", "")
    skipped = case.find("skipped")
    reason = skipped.get("message", "") if skipped is not None else ""
    if status == "run" and skipped is None and case.find("failure") is None:
        return "passed", ""
    if status == "disabled":
        return "skipped", "disabled"
    if status == "notrun" and reason.startswith("SKIP_"):
        said = re.search(r"SKIP: *(.+)", case.findtext("system-out") or "")
        return "skipped", said.group(1).strip() if said else reason
    failure = case.find("failure")
    return "failed", reason or (failure.get("message", "") if failure is not None else "")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    listed = {"failed": [], "skipped": []}
    said = []
    try:
        cases = ElementTree.parse(sys.argv[1]).getroot().iter("testcase")
        for case in cases:
            kind, reason = outcome(case)
            counts[kind] += 1
            if kind in listed:
                listed[kind].append((case.get("name", "?"), reason))
            if kind == "failed":
                said.append((case.get("name", "?"), (case.findtext("system-out") or "").splitlines()))
    except (OSError, ElementTree.ParseError) as error:
        print(f"no test results: {error}", file=sys.stderr)
    for kind, entries in sorted(listed.items(), reverse=True):
        if entries:
            print(f"\n{kind}:")
        for name, reason in entries:
            print(f"  {name}" + (f": {reason}" if reason else ""))
    for name, lines in said[:SHOWN_TESTS]:
        print(f"\n{name} said" + (" in the end:" if len(lines) > SHOWN_LINES else ":"))
        print("\n".join(f"  {line}" for line in lines[-SHOWN_LINES:]))
    good = counts["passed"] > 0 and counts["failed"] == 0
    if good and sys.argv[2] != "0":
        # Every test passed by its record, yet CTest itself is not content: never a silent green.
        print(f"\nctest ended with exit code {sys.argv[2]}", file=sys.stderr)
        good = False
    print("\n{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
