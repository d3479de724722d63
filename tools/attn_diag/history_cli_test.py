#!/usr/bin/env python3
"""The run history of the attn-diag command: an edit that changed nothing is said before the verdict.

usage: history_cli_test.py PATH_TO_ATTN_DIAG PATH_TO_HASH_SOURCES [unittest arguments]
"""

import json
import os
import shutil
import stat
import unittest
import xml.etree.ElementTree as ElementTree

from testing.command_test import CommandTest, paths
from testing.host_library import HostLibrary

HASH_SOURCES = ""
CASE = "--dtype fp32 --heads 1 --seqlen 5 --head-dim 8 --stage full"
SAME = "output bit-identical to the run before your edit ("


class History(CommandTest):
    """Every test runs in a directory of its own, with a library of its own."""

    def setUp(self):
        super().setUp()
        self.mine = HostLibrary(self.folder, HASH_SOURCES)
        self.mine.build()

    def edit(self, old="1.5f", new="1.5f /* edited */"):
        text = self.mine.source.read_text()
        self.assertIn(old, text)
        self.mine.source.write_text(text.replace(old, new))

    def test_an_edit_without_a_build_is_said_first(self):
        for command in "run", "trace":
            with self.subTest(command):
                shutil.rmtree(self.folder / ".attn-diag", ignore_errors=True)
                line = f"{command} --kernel ./mine.so:wrong {CASE}"
                self.assertNotIn(SAME, self.call(line, 1))
                self.assertNotIn(SAME, self.call(line, 1))  # nothing was edited
                self.edit()
                text = self.call(line, 1)
                self.assertTrue(text.startswith("UNCHANGED: " + SAME), text)
                self.assertIn("changed: mine.cc)", " ".join(text.split()))
                self.assertIn("so it was not rebuilt", " ".join(text.split()))
                self.assertIn("STALE", text)
                self.assertIn(SAME, self.call(line, 1))  # nor does it help to ask again
                self.mine.build()
                self.edit("/* edited */", "")
                self.mine.build()

    def test_a_build_that_contains_the_edit_says_that_the_edit_is_elsewhere(self):
        line = f"run --kernel ./mine.so:wrong {CASE}"
        self.call(line, 1)
        self.edit()
        self.mine.build()
        text = " ".join(self.call(line, 1).split())
        self.assertTrue(text.startswith("UNCHANGED: " + SAME), text)
        self.assertIn("The edit does not touch this case: the binary was rebuilt", text)
        self.assertNotIn("STALE", text)

    def test_an_edit_that_changes_the_output_or_repairs_it_is_not_remarked(self):
        line = f"run --kernel ./mine.so:wrong {CASE}"
        self.call(line, 1)
        self.edit("1.5f", "1.6f")
        self.mine.build()
        self.assertNotIn(SAME, self.call(line, 1))
        line = f"run --kernel ./mine.so:right {CASE}"
        self.call(line, 0)
        self.edit("1.6f", "1.7f")
        self.mine.build()
        self.assertNotIn(SAME, self.call(line, 0))  # right: nobody wants its output to change

    def test_reports_for_programs_have_it_too(self):
        line = f"--kernel ./mine.so:wrong {CASE}"
        self.call("trace " + line, 1)
        self.edit()
        same = json.loads(self.call(f"trace {line} --json --junit t.xml", 1))["same_output"]
        self.assertEqual(same["why"], "not_rebuilt")
        self.assertEqual(same["changed"], [str(self.mine.source.resolve())])
        self.assertTrue(same["stale"])
        self.assertEqual(json.loads(self.call(f"run {line} --json --junit r.xml", 1))
                         ["same_output"]["why"], "not_rebuilt")
        for name in "t.xml", "r.xml":
            failures = [f.get("message") for f in ElementTree.parse(self.folder / name).iter("failure")]
            self.assertTrue(any(SAME in f for f in failures), failures)
        rows = json.loads(self.call(f"run --kernel ./mine.so:wrong,./mine.so:right {CASE} --json", 1))
        self.assertEqual([bool(row["same_output"]) for row in rows["cases"]], [True, False])

    def test_a_dump_remembers_how_these_bits_were_judged(self):
        for kernel, said in ("wrong", True), ("right", False):
            line = f"--kernel ./mine.so:{kernel} {CASE}"
            self.call("run " + line, 1 if said else 0)
            self.edit("1.5f", "1.5f ")
            self.assertEqual(SAME in self.call(f"dump {line} -o {kernel}.h5", 0), said)

    def test_history_lists_runs_and_is_bounded(self):
        self.assertIn("knows of no run", self.call("history", 0))
        for _ in range(3):
            self.call(f"run --kernel ./mine.so:wrong,./mine.so:right {CASE}", 1)
        self.assertIn("6 runs", self.call("history", 0))
        report = json.loads(self.call("history --json --kernel ./mine.so:right --limit 2", 0))
        self.assertEqual(report["found"], 3)
        self.assertEqual([(r["kernel"], r["verdict"]) for r in report["runs"]],
                         [("./mine.so:right", "agrees")] * 2)
        self.assertEqual((self.folder / ".attn-diag" / ".gitignore").read_text(), "*\n")
        file = self.folder / ".attn-diag" / "history"
        file.write_bytes(b"\x00broken\n" + file.read_bytes())
        self.assertIn("6 runs", self.call("history", 0))
        self.call("history --limit 0", 2)

    def test_history_can_be_turned_off(self):
        line = f"run --kernel ./mine.so:wrong {CASE}"
        self.call(line + " --no-history", 1)
        self.call(line, 1, ATTN_DIAG_HISTORY="0")
        self.assertFalse((self.folder / ".attn-diag").exists())
        self.call(line, 1)
        self.edit()
        self.assertNotIn(SAME, self.call(line + " --no-history", 1))

    @unittest.skipIf(os.geteuid() == 0, "root writes everywhere")
    def test_a_directory_that_cannot_be_written_is_no_error(self):
        self.folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
        self.addCleanup(self.folder.chmod, stat.S_IRWXU)
        self.call(f"run --kernel ./mine.so:right {CASE}", 0)

    def test_a_history_that_is_no_file_is_no_error(self):
        (self.folder / ".attn-diag").write_text("")
        self.call(f"run --kernel ./mine.so:right {CASE}", 0)


if __name__ == "__main__":
    HASH_SOURCES, = paths(__doc__, 2)
    unittest.main()
