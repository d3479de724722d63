#!/usr/bin/env python3
"""attn-diag check as it is called: verdicts, exit codes, reports, suppressions and what it refuses.

usage: check_cli_test.py PATH_TO_ATTN_DIAG [unittest arguments]
"""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
SOURCE = pathlib.Path(__file__).resolve().parent / "testing" / "checked_rows.cu"
SCHEDULES = "forward", "reverse", "seed:1", "seed:2", "lockstep"


def call(folder, line):
    return subprocess.run([PROGRAM, *shlex.split(line)], cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=300,
                          env={**os.environ, "LC_ALL": "C.UTF-8", "ATTN_DIAG_HISTORY": "0"})


def line_of(mark):
    lines = SOURCE.read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"// [{mark}]"))


def place(mark):
    return f"checked_rows.cu:{line_of(mark)}"


def places_of(finding):
    """Where the accesses of a finding of the JSON report are."""
    accesses = [a for a in (finding["access"], finding["other"]) if a]
    return {f"{pathlib.Path(a['places'][0]['file']).name}:{a['places'][0]['line']}" for a in accesses}


class Check(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attn-diag-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        shutil.copy(SOURCE, cls.folder)
        built = call(cls.folder, f"build {SOURCE.name} -o mine.so --no-nvcc")
        if built.returncode != 0:
            raise AssertionError(built.stderr)

    def check(self, kernel, code, flags="", case="--dtype fp32 --heads 1 --seqlen 40 --head-dim 8"):
        result = call(self.folder, f"check --kernel {kernel} {case} {flags}")
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stderr if code == 2 else result.stdout

    def report(self, kernel, code, flags=""):
        return json.loads(self.check(f"./mine.so:{kernel}", code, "--json " + flags))

    def suppress(self, text):
        (self.folder / "known.txt").write_text(text)
        return "--suppressions known.txt"

    def test_a_clean_kernel_exits_0_and_the_summary_says_what_was_and_was_not_checked(self):
        text = self.check("./mine.so:whole", 0)
        self.assertEqual(text.splitlines()[0], "CLEAN: nothing found")
        self.assertIn("Checked: 1 launch and 40 blocks under schedule forward", text)
        self.assertIn("80 block barriers", text)  # two of each block
        self.assertIn("Not checked: problems of other sizes", text)
        report = self.report("whole", 0)
        self.assertEqual((report["verdict"], report["findings"]), ("clean", []))
        self.assertEqual((report["checked"]["launches"], report["checked"]["blocks"]), (1, 40))
        self.assertEqual(report["checked"]["block_barriers"], 80)
        self.assertGreater(report["checked"]["loads"], 40 * 40 * 8)

    def test_a_pointer_past_the_end_of_a_table_or_of_a_local_array_is_found(self):
        for kernel in ("c_table", "d_table", "d_const", "d_constexpr", "d_whole", "rSum", "rSum-later", "rRow",
                       "either", "either-turned"):
            with self.subTest(kernel):
                self.check(f"./mine.so:{kernel}", 0, case="--dtype fp32 --seqlen 4 --head-dim 8")
                text = self.check(f"./mine.so:{kernel}", 1, "--json", "--dtype fp32 --seqlen 6 --head-dim 8")
                line = "store of one of n" if kernel == "rRow" else "load of one of n"
                for found in json.loads(text)["findings"]:
                    self.assertEqual((found["severity"], found["kind"]), ("error", "out-of-bounds"), found)
                    self.assertEqual(found["array"], None if "either" in kernel else kernel.split("-")[0])
                    self.assertEqual(places_of(found), {place(line)})

    def test_nothing_past_the_end_of_a_local_array_is_touched(self):
        self.check("./mine.so:rFar", 0, case="--dtype fp32 --seqlen 4 --head-dim 8")
        report = json.loads(self.check("./mine.so:rFar", 1, "--json", "--dtype fp32 --seqlen 6 --head-dim 8"))
        for found in report["findings"]:  # the load and the store, and no crash
            self.assertEqual((found["kind"], found["array"]), ("out-of-bounds", "rFar"))
            self.assertEqual(places_of(found), {place("store far away")})
        self.assertEqual(report["checked"]["stores"], 8)  # all threads have gone on

    def test_a_store_to_an_input_is_named_with_its_line_and_one_of_what_is_there_is_benign(self):
        text = self.check("./mine.so:scales-k", 1)
        self.assertIn("error, input write", text)
        self.assertIn(place("store to k"), text)
        self.assertRegex(" ".join(text.split()), r"the kernel wrote k, an input: 1 of its elements, first "
                         r"k\(0, 0, 3, 5\), which was \S+ and is")
        finding = self.report("scales-k", 1)["findings"][0]
        self.assertEqual((finding["kind"], finding["severity"], finding["array"]), ("input-write", "error", "k"))
        finding = self.report("stores-q", 0)["findings"][0]
        self.assertEqual((finding["kind"], finding["severity"]), ("input-write", "benign"))

    def other(self, line, code):
        """Any command on this kernel; what it says on stdout, or of an error on stderr."""
        case = "--dtype fp32 --heads 1 --seqlen 40 --head-dim 8"
        result = call(self.folder, line.replace("CASE", case))
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout or result.stderr

    def test_a_kernel_that_writes_an_input_is_told_so_first_by_every_command(self):
        wrote = "the kernel wrote k, an input: 1 of its elements, first k(0, 0, 3, 5), which was "
        for command in "run", "trace", "xray", "diagnose":
            line = f"{command} --kernel ./mine.so:scales-k CASE"
            text = self.other(line, 1)
            self.assertTrue(text.startswith(f"DIVERGES: {wrote}"), text)
            self.assertNotIn("a race", text)
            report = json.loads(self.other(line + " --json", 1))
            self.assertEqual(report["verdict"], "diverges")
            self.assertEqual([(w["input"], w["cells"], w["first"]) for w in report["input_writes"]],
                             [("k", 1, [0, 0, 3, 5])])
        self.other("run --kernel ./mine.so:scales-k CASE --junit x.xml", 1)
        self.assertIn("q, k and v are as they were", (self.folder / "x.xml").read_text())
        self.assertIn(wrote, self.other("run --kernel ./mine.so:scales-k,./mine.so:whole CASE", 1))
        self.other("run --kernel ./mine.so:stores-q CASE", 0)

    def test_where_nothing_was_launched_or_nothing_ran_there_is_no_verdict(self):
        for command in "run", "trace", "diagnose":
            text = self.other(f"{command} --kernel ./mine.so:no-launch CASE", 2)
            self.assertIn("left no result: its host code launched no kernel", text)
            self.assertNotIn("DIVERGES", text)
        self.assertIn("launched no kernel: nothing was checked", self.check("./mine.so:no-launch", 2))
        self.assertIn("nothing was checked", self.check("./mine.so:all-return", 2))
        # What was launched and stored nothing where o is, is wrong.
        for kernel in "all-return", "no-stores":
            self.assertIn("never", self.other(f"run --kernel ./mine.so:{kernel} CASE", 1))

    def test_outputs_that_nobody_stores_are_an_error(self):
        found = [f for f in self.report("no-stores", 1)["findings"] if f["kind"] == "unwritten-output"]
        self.assertEqual([(f["kind"], f["severity"], f["array"]) for f in found],
                         [("unwritten-output", "error", "lse"), ("unwritten-output", "error", "o")])
        self.assertEqual(found[1]["message"], "320 elements of o were stored by nobody, the first (0, 0, 0, 0)")
        self.assertIn("error, unwritten output\n    320 elements of o", self.check("./mine.so:no-stores", 1))

    def test_a_race_exits_1_and_names_both_lines_threads_and_the_array(self):
        text = self.check("./mine.so:race", 1)
        self.assertEqual(text.splitlines()[0], "FOUND: 1 error, 0 latent, 0 benign")
        self.assertIn("1. error, race in rows<...>, sScores[32] (shared memory)", text)
        self.assertIn(f"write of 4 bytes at {place('store of a score')} in rows<...>\n"
                      "      thread (32,0,0), block (0,0,0), after 0 barriers", text)
        self.assertIn(f"read of 4 bytes at {place('load of a score')} in rows<...>\n"
                      "      thread (0,0,0), block (0,0,0), after 0 barriers", text)
        self.assertIn("Put __syncthreads() between", text)
        self.assertIn("Reproduce: " + PROGRAM + " check --kernel ./mine.so:race", text)

    def test_the_same_in_json(self):
        report = self.report("race", 1)
        self.assertEqual((report["verdict"], report["errors"], report["latent"], report["benign"]),
                         ("found", 1, 0, 0))
        (finding,) = report["findings"]
        self.assertEqual((finding["kind"], finding["severity"]), ("race", "error"))
        self.assertEqual((finding["space"], finding["array"], finding["offset"]),
                         ("shared", "sScores", 128))
        self.assertEqual((finding["element"], finding["byte_of_element"], finding["extents"]),
                         ("sScores[32]", 0, "[128]"))
        self.assertEqual((finding["access"]["write"], finding["other"]["write"]), (True, False))
        self.assertEqual(finding["access"]["thread"], [32, 0, 0])
        self.assertEqual(finding["access"]["barriers_passed"], 0)
        self.assertEqual(places_of(finding), {place("store of a score"), place("load of a score")})
        self.assertGreater(finding["further"], 0)

    def test_what_only_convergence_orders_is_latent_and_exits_1(self):
        report = self.report("warp", 1)
        self.assertEqual((report["errors"], report["latent"]), (0, 1))
        (finding,) = report["findings"]
        self.assertEqual((finding["kind"], finding["severity"]), ("race", "latent"))
        self.assertIn("__syncwarp()", finding["advice"])

    def test_a_shuffle_of_lanes_that_take_no_part_is_latent_and_benign_where_nobody_uses_it(self):
        (finding,) = self.report("absent", 1)["findings"]
        self.assertEqual((finding["kind"], finding["severity"], finding["space"]), ("uninitialised-read", "latent", None))
        self.assertEqual(places_of(finding), {place("shuffle past the mask")})
        self.assertIn("reads lane 16, which its mask 0xffff does not name", finding["message"])
        (finding,) = self.report("dropped", 0)["findings"]
        self.assertEqual(finding["severity"], "benign")
        self.assertIn("which reaches no output", finding["message"])

    def test_stores_of_equal_values_are_benign_and_exit_0(self):
        text = self.check("./mine.so:equal", 0)
        self.assertEqual(text.splitlines()[0], "CLEAN: 0 errors, 0 latent, 1 benign")
        (finding,) = self.report("equal", 0)["findings"]
        self.assertEqual((finding["severity"], finding["array"]), ("benign", "sSeen"))
        self.assertEqual(places_of(finding), {place("equal stores")})

    def test_schedules_find_the_same_lines_and_a_repetition_the_same_report(self):
        def found(kernel, schedule):
            report = self.report(kernel, 1, "--schedule " + schedule)
            self.assertEqual(report["schedule"], schedule)
            return sorted((f["kind"], f["severity"], f["array"], sorted(places_of(f)))
                          for f in report["findings"])
        for kernel in "race", "warp", "many":
            first = found(kernel, "forward")
            for schedule in SCHEDULES[1:]:
                with self.subTest(kernel=kernel, schedule=schedule):
                    self.assertEqual(found(kernel, schedule), first)
        self.assertEqual(self.check("./mine.so:many", 1), self.check("./mine.so:many", 1))

    def test_max_limits_what_is_kept_of_each_kind_and_says_what_was_dropped(self):
        kinds = lambda report: [f["kind"] for f in report["findings"]]  # noqa: E731
        report = self.report("many", 1)
        self.assertEqual(kinds(report), ["race", "uninitialised-read", "uninitialised-read"])
        self.assertEqual(report["checked"]["dropped"], 0)
        report = self.report("many", 1, "--max 1")
        self.assertEqual(kinds(report), ["race", "uninitialised-read"])
        self.assertGreater(report["checked"]["dropped"], 0)
        self.assertIn("raise --max", self.check("./mine.so:many", 1, "--max 1"))

    def test_a_suppressed_finding_is_listed_apart_and_not_counted(self):
        flags = self.suppress("# known\n\nrace sScores " + place("load of a score") + " # one row each\n")
        text = self.check("./mine.so:race", 0, flags)
        self.assertEqual(text.splitlines()[0], "CLEAN: nothing found, 1 suppressed")
        self.assertIn("suppressed by line 3 (one row each): race, sScores", text)
        report = self.report("race", 0, flags)
        self.assertEqual((report["verdict"], report["findings"]), ("clean", []))
        (suppressed,) = report["suppressed"]
        self.assertEqual((suppressed["reason"], suppressed["suppression_line"]), ("one row each", 3))
        report = self.report("many", 1, flags)  # the others stand
        self.assertEqual(report["errors"], 2)

    def test_a_suppression_that_names_nothing_is_said(self):
        line = place("second load of a score").replace("checked_rows", "other")
        flags = self.suppress(f"race sScores {line} # no such file\nrace * * # all races\n")
        self.assertIn(f"suppression not used: known.txt:1: race sScores {line}",
                      self.check("./mine.so:race", 0, flags))
        self.assertEqual(self.report("race", 0, flags)["unused_suppressions"],
                         [f"known.txt:1: race sScores {line}"])

    def test_suppressions_that_cannot_be_read_are_refused_with_their_line(self):
        for text, words in [
            ("race sScores # too few\n", "known.txt:1: expected three words and a reason"),
            ("# fine\nrace sScores * surplus # too many\n", "known.txt:2: expected three words"),
            ("rac sScores * # misspelt\n", "known.txt:1: there is no kind 'rac'"),
            ("race sScores *\n", "known.txt:1: the reason is missing"),
        ]:
            with self.subTest(text):
                self.assertIn(words, self.check("./mine.so:race", 2, self.suppress(text)))
        self.assertIn("nowhere.txt cannot be read",
                      self.check("./mine.so:race", 2, "--suppressions nowhere.txt"))

    def test_quiet_is_the_verdict_alone(self):
        self.assertEqual(self.check("./mine.so:race", 1, "--quiet"), "FOUND: 1 error, 0 latent, 0 benign\n")

    def test_the_instrumented_build_can_be_named_itself(self):
        self.assertIn("sScores", self.check("./mine.lockstep.so:race", 1))

    def test_a_library_without_instrumented_build_cannot_be_checked(self):
        shutil.copy(self.folder / "mine.so", self.folder / "alone.so")
        words = self.check("./alone.so:race", 2)
        self.assertIn("alone.lockstep.so", words)

    def test_bad_usage_is_refused_in_words(self):
        for flags, words in [
            ("--max 0", "--max takes"),
            ("--max many", "--max takes"),
            ("--schedule sideways", "sideways"),
            ("--mask causal --mask none", "--mask"),
            ("--stage qk", "--stage"),
            ("--supressions x", "--suppressions"),
        ]:
            with self.subTest(flags):
                self.assertIn(words, self.check("./mine.so:race", 2, flags))
        self.assertIn("fp16", self.check("./mine.so:race", 2, case="--dtype fp16"))
        self.assertIn("nothing", self.check("./mine.so:nothing", 2))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
