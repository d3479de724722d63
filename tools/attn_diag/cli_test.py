#!/usr/bin/env python3
"""Drives the attn-diag command as a user does: verdicts, exit codes, files, and every kind of bad input.

usage: cli_test.py PATH_TO_ATTN_DIAG [unittest arguments: Class, Class.test_name, -v]
"""

import json
import os
import pathlib
import pty
import re
import resource
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

PROGRAM = ""

AGREES, DIVERGES, COULD_NOT, INTERNAL = 0, 1, 2, 3
SMALL = "--heads 1 --seqlen 5 --head-dim 8 --tile 2x2"
# No kernel is exact: under this rule a right one diverges.
IMPOSSIBLE = "--atol 0 --rtol 1e-12"


class CommandTest(unittest.TestCase):
    """Every test runs in a directory of its own."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="attn-diag-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def call(self, line, **more):
        """Runs `attn-diag LINE`; the result has out, err and code."""
        # Without a GPU in sight everything runs alike everywhere.
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "CUDA_VISIBLE_DEVICES": "",
                       "ATTN_DIAG_HISTORY": "0", **more.pop("env", {})}
        result = subprocess.run(
            [PROGRAM, *shlex.split(line)], cwd=self.folder, env=environment, text=True,
            stdout=more.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, timeout=600, **more)
        return result

    def expect(self, line, code, **more):
        result = self.call(line, **more)
        if code is not None:
            self.assertEqual(result.returncode, code, f"{line}\n{result.stdout}\n{result.stderr}")
        return result

    def refused(self, line, *said):
        """Exit code 2, nothing on stdout, one message on stderr that says all of `said`."""
        result = self.expect(line, COULD_NOT)
        self.assertEqual(result.stdout, "", line)
        self.assertTrue(result.stderr.startswith("attn-diag: error: "), result.stderr)
        for text in said:
            self.assertIn(text, result.stderr)
        return result.stderr

    def json_of(self, line, code):
        return json.loads(self.expect(line + " --json", code).stdout, parse_constant=self.fail)

    def dump(self, name="x.h5", flags=""):
        self.expect(f"dump --kernel fa1 {SMALL} {flags} -o {name}", AGREES)
        return self.folder / name


class Verdicts(CommandTest):
    def test_trace_with_nothing_but_a_kernel_agrees(self):
        for kernel in "fa1", "split_k":
            result = self.expect(f"trace --kernel {kernel}", AGREES)
            self.assertTrue(result.stdout.startswith("AGREES"), result.stdout)
            self.assertIn("An all-zeros o would have scored", result.stdout)

    def test_trace_json_of_a_right_kernel(self):
        report = self.json_of(f"trace --kernel split_k {SMALL} --mask causal", AGREES)
        self.assertEqual(report["verdict"], "agrees")
        self.assertIs(report["stale"], False)
        self.assertIsNone(report["first_divergence"])
        self.assertEqual([s["name"] for s in report["stages"]], ["qk", "softmax", "pv", "reduce"])
        for stage in report["stages"]:
            self.assertEqual(stage["verdict"], "agrees")
            self.assertEqual(stage["isolated_verdict"], "agrees")
            self.assertEqual(stage["mismatched"], 0)
            self.assertGreater(stage["compared"], 0)
            self.assertLess(stage["max_err_over_bound"], 1)
            self.assertIn("max_abs_err", stage)
            self.assertIn("max_ulp", stage)
        self.assertTrue(report["observer"]["identical"])
        self.assertGreater(report["zeros_err_over_bound"], 1)

    def test_trace_json_of_a_divergence_has_every_coordinate(self):
        report = self.json_of(f"trace --kernel fa1 {SMALL} {IMPOSSIBLE}", DIVERGES)
        self.assertEqual(report["verdict"], "diverges")
        first = report["first_divergence"]
        self.assertEqual(first["stage"], "qk")
        self.assertEqual(first["tensor"], "S")
        for key in "batch", "head", "query", "query_tile", "kv_tile", "expected", "actual", "bound":
            self.assertIn(key, first)
        self.assertEqual(first["query_tile"], first["query"] // 2)
        self.assertEqual(first["kv_tile"], first["key"] // 2)

    def test_trace_says_the_verdict_first(self):
        text = self.expect(f"trace --kernel fa1 {SMALL} {IMPOSSIBLE}", DIVERGES).stdout
        self.assertRegex(text.splitlines()[0],
                         r"^DIVERGES: qk diverges first, head 0, query \d+, query tile \d+, kv tile \d+")
        for said in "Mismatched elements:", "Greatest absolute difference:", "Reproduce:":
            self.assertIn(said, text)

    def test_quiet_prints_the_verdict_only(self):
        text = self.expect(f"trace --kernel fa1 {SMALL} --quiet", AGREES).stdout
        self.assertEqual(len(text.splitlines()), 1)

    def test_the_reproduce_line_gives_the_same_verdict(self):
        command = (f"trace --kernel split_k --heads 2 --kv-heads 1 --seqlen-q 3 --seqlen-k 7 --head-dim 8 "
                   f"--head-dim-v 5 --dtype bf16 --layout BSHD --mask window:2,1 --inputs ramp --seed 7 "
                   f"--input-scale 0.5 --softmax-scale 0.3 --num-splits 2 --tile 2x2 --schedule reverse "
                   f"--mma-order 7 --async-copies early --head 1 --query 1:3 {IMPOSSIBLE}")
        first = self.expect(command, DIVERGES).stdout
        line = first.split("Reproduce: ")[1].splitlines()[0]
        again = subprocess.run(line, shell=True, cwd=self.folder, text=True, capture_output=True,
                               env=dict(os.environ, LC_ALL="C.UTF-8"))
        self.assertEqual(again.returncode, DIVERGES, again.stderr)
        self.assertEqual(again.stdout, first)

    def test_list_shows_kernels_stages_and_backends(self):
        text = self.expect("list", AGREES).stdout
        for said in "fa1", "split_k", "partial_o", "full", "host", "cuda", "64x64", "rising":
            self.assertIn(said, text)
        kernels = {k["name"]: k for k in self.json_of("list", AGREES)["kernels"]}
        self.assertTrue(kernels["fa1"]["can_run"])
        self.assertFalse(kernels["fa1"]["takes_num_splits"])
        self.assertTrue(kernels["split_k"]["takes_num_splits"])

    def test_a_stage_limits_what_is_run_and_judged(self):
        stages = self.json_of(f"run --kernel fa1 {SMALL} --stage softmax", AGREES)["stages"]
        self.assertEqual([s["name"] for s in stages], ["qk", "softmax"])
        stages = self.json_of(f"run --kernel fa1 {SMALL} --gate full", AGREES)["stages"]
        self.assertEqual([t["name"] for s in stages for t in s["tensors"]], ["lse", "o"])

    def test_a_region_limits_what_is_compared(self):
        line = "run --kernel fa1 --heads 3 --seqlen 5 --head-dim 8 --tile 2x2 --stage qk"
        everything = self.json_of(line, AGREES)["stages"][0]["compared"]
        rows = self.json_of(line + " --head 1 --query 2:4", AGREES)["stages"][0]["compared"]
        self.assertEqual((everything, rows), (3 * 5 * 5, 2 * 5))

    def test_infinite_inputs_are_allowed_and_said(self):
        result = self.call(f"run --kernel fa1 {SMALL} --input-scale 1e6")
        self.assertEqual(result.returncode, COULD_NOT, result.stderr)  # no element of o has a bound
        self.assertIn("NaN or infinity", result.stdout)
        report = json.loads(self.call(f"run --kernel fa1 {SMALL} --input-scale 1e6 --json").stdout)
        self.assertTrue(report["nonfinite_inputs"])
        result = self.call(f"trace --kernel fa1 {SMALL} --input-scale 1e6")
        self.assertIn("NaN or infinity", result.stdout)

    def test_inputs_of_a_dump_are_taken_again(self):
        self.dump("x.h5", "--seed 5 --mask causal --layout BSHD")
        self.expect("dump --kernel fa1 --inputs x.h5 --tile 2x2 -o y.h5", AGREES)
        self.expect("compare x.h5 y.h5", AGREES)
        self.refused("trace --kernel fa1 --inputs x.h5 --seqlen 9", "--seqlen", "x.h5")


class Matrix(CommandTest):
    LINE = "run --kernel fa1,split_k --heads 1 --head-dim 8 --tile 2x2"

    def test_lists_multiply_into_one_table(self):
        text = self.expect(self.LINE + " --seqlen 1,2,3 --dtype fp16,bf16,fp32", AGREES).stdout
        self.assertEqual(text.splitlines()[0], "18 cases: 18 agree")
        self.assertEqual(len(re.findall(r"^  (?:fa1|split_k) .* agrees ", text, re.M)), 18)

    def test_one_divergence_decides_the_exit_code_and_is_shown_how_to_hunt(self):
        # One key: every sum has one term, and ln 1 = 0. Four: lse = m + ln 4 is rounded.
        text = self.expect(self.LINE + f" --seqlen 1,4 --inputs ones --softmax-scale 1 {IMPOSSIBLE}",
                           DIVERGES).stdout
        self.assertEqual(text.splitlines()[0], "4 cases: 2 diverge, 2 agree")
        self.assertRegex(text, r"fa1 +4 .*DIVERGES.* reduce, head 0, query 0, query tile 0 \(lse\)")
        self.assertIn(" trace --kernel fa1 ", text)

    def test_unsupported_rows_are_said_and_do_not_decide(self):
        text = self.expect("run --kernel fa1,split_k --heads 1 --seqlen 4 --head-dim 8 --num-splits 1,2",
                           AGREES).stdout
        self.assertIn("1 unsupported", text.splitlines()[0])
        self.assertIn("--num-splits", text)

    def test_a_kernel_left_without_a_case_that_ran_is_not_a_pass(self):
        line = "run --kernel fa1,split_k --heads 1 --seqlen 4,5 --head-dim 8 --num-splits 2"
        self.expect(line, COULD_NOT)
        self.assertEqual(self.json_of(line, COULD_NOT)["verdict"], "could_not_compare")

    def test_junit_has_a_case_a_row(self):
        self.expect(self.LINE + f" --seqlen 4 --num-splits 1,2 --inputs ones,randn {IMPOSSIBLE} "
                    "--junit r.xml", DIVERGES)
        root = ElementTree.parse(self.folder / "r.xml").getroot()
        cases = root.findall(".//testcase")
        self.assertEqual(len(cases), 8)
        self.assertEqual(int(root.get("failures")), len(root.findall(".//failure")))
        self.assertEqual(len(root.findall(".//skipped")), 2)
        self.assertGreater(len(root.findall(".//failure")), 0)

    def test_junit_of_one_case_has_a_case_a_stage(self):
        for command in "run", "trace":
            self.expect(f"{command} --kernel fa1 {SMALL} --junit r.xml", AGREES)
            names = [c.get("name").split()[0]
                     for c in ElementTree.parse(self.folder / "r.xml").findall(".//testcase")]
            stages = ["qk", "softmax", "pv", "reduce"]
            # A trace asks first whether there is one result.
            first = ["the", *stages] if command == "trace" else stages
            self.assertEqual(names[:len(first)], first)

    def test_only_run_takes_lists(self):
        self.refused("trace --kernel fa1,split_k", "run takes lists")
        self.refused("dump --kernel fa1 --seqlen 4,5 -o x.h5", "run takes lists")


class Judged(CommandTest):
    """What cannot be judged is not right, and not wrong."""
    CASE = "--kernel fa1 --heads 1 --seqlen 16 --head-dim 16"
    # fp32 sums that may overflow; scores whose rounding alone may change any weight.
    UNBOUNDED = "--dtype fp32 --inputs large --input-scale 1e20", "--softmax-scale 1e8"

    def no_verdict(self, line):
        text = self.expect(line, COULD_NOT).stdout
        self.assertTrue(text.startswith("COULD NOT COMPARE"), text)
        for wrong in "DIVERGES", "AGREES", "a race", "NOTHING WRONG":
            self.assertNotIn(wrong, text)
        self.assertEqual(self.json_of(line, COULD_NOT)["verdict"], "could_not_compare")
        return text

    def test_where_nothing_of_o_has_a_bound_every_command_says_that_it_could_not_compare(self):
        for flags in self.UNBOUNDED:
            for command in "run", "trace", "diagnose", "xray":
                text = self.no_verdict(f"{command} {self.CASE} {flags}")
                self.assertIn("overflow is possible, or scores are so large", text)
            self.expect(f"dump {self.CASE} {flags} -o x.h5 --force", AGREES)
            self.no_verdict("compare x.h5")
            self.no_verdict("show x.h5")
            self.no_verdict("diagnose x.h5")

    def test_so_do_the_reports_for_programs(self):
        line = f"{self.CASE} {self.UNBOUNDED[0]} --junit x.xml"
        for command in "run", "trace":
            self.expect(f"{command} {line}", COULD_NOT)
            suite = ElementTree.parse(self.folder / "x.xml").getroot()
            self.assertEqual((suite.get("failures"), suite.get("errors")), ("0", "1"))
        report = self.json_of(f"run {self.CASE} {self.UNBOUNDED[0]}", COULD_NOT)
        self.assertEqual(report["judged"], 0)
        self.assertGreater(report["cells"], 256)
        for stage in report["stages"]:
            self.assertEqual(stage["verdict"], "not_judged")

    def test_in_a_matrix_the_row_has_no_verdict_and_the_others_have(self):
        line = f"run {self.CASE} --dtype fp32 --inputs large --input-scale 1,1e20"
        text = self.expect(line, COULD_NOT).stdout
        self.assertIn("2 cases: 1 agrees, 1 not judged", text)
        report = self.json_of(line, COULD_NOT)
        self.assertEqual([c["verdict"] for c in report["cases"]], ["agrees", "could_not_compare"])

    def test_a_verdict_on_a_part_says_how_large_it_is(self):
        line = f"{self.CASE} --softmax-scale 5e4 --mask causal"  # some rows have large scores
        for command in "run", "trace":
            text = self.expect(f"{command} {line}", AGREES).stdout
            self.assertRegex(text, r"^AGREES: the [0-9,]+ of [0-9,]+ elements that can be judged are within")
            report = self.json_of(f"{command} {line}", AGREES)
            self.assertLess(report["judged"], report["cells"])
        text = self.expect(f"diagnose {line}", AGREES).stdout
        self.assertRegex(text, r"^NOTHING WRONG in the [0-9,]+ of [0-9,]+ elements that can be judged")
        self.expect(f"dump {line} -o x.h5", AGREES)
        self.assertIn("elements that can be judged", self.expect("compare x.h5", AGREES).stdout)
        rows = [self.call(f"show x.h5 --stage reduce --head 0 --query {i} --quiet") for i in range(16)]
        self.assertEqual({r.returncode for r in rows}, {AGREES, COULD_NOT})
        for row in rows:
            self.assertEqual(row.returncode == COULD_NOT, row.stdout.startswith("COULD NOT COMPARE"))

    def test_a_wrong_kernel_diverges_where_it_can_be_judged(self):
        text = self.expect(f"run {self.CASE} --softmax-scale 1e8 {IMPOSSIBLE}", DIVERGES).stdout
        self.assertIn("qk diverges first", text)

    def test_garbage_in_o_is_not_right_because_v_holds_nan(self):
        def npy(name, values, shape):
            header = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).ljust(117) + "\n"
            (self.folder / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
                                             header.encode() + struct.pack(f"<{len(values)}f", *values))
        cells = 8 * 4
        small = [0.01 * (i % 7) for i in range(cells)]
        npy("q.npy", small, (1, 1, 8, 4))
        npy("k.npy", small, (1, 1, 8, 4))
        npy("o.npy", [123.0] * cells, (1, 1, 8, 4))
        npy("v.npy", [float("nan") if 4 <= i < 8 else x for i, x in enumerate(small)], (1, 1, 8, 4))
        text = self.no_verdict("diagnose --q q.npy --k k.npy --v v.npy --o o.npy --layout BHSD --mask none")
        self.assertIn("NaN or infinity in q, k or v", text)


class Files(CommandTest):
    def test_dump_compare_and_show_agree(self):
        self.dump("x.h5", "--mask causal")
        self.expect("compare x.h5", AGREES)
        for stage in "qk", "softmax", "pv", "reduce":
            self.expect(f"show x.h5 --stage {stage} --head 0 --query 4 --kv-tile 1", AGREES)

    def test_show_marks_what_is_wrong_and_finds_it_unasked(self):
        self.dump()
        text = self.expect(f"show x.h5 {IMPOSSIBLE}", DIVERGES).stdout
        self.assertIn("(the first wrong row)", text)
        self.assertIn("WRONG", text)
        values = self.json_of("show x.h5 --stage reduce --head 0 --query 3", AGREES)
        tensors = {t["name"]: t for t in values["tensors"]}
        self.assertEqual(tensors["running_o"]["shape"], [3, 8])
        self.assertEqual(len(tensors["o"]["actual"]), 8)

    def test_a_dump_of_a_region_keeps_absolute_coordinates(self):
        self.expect("dump --kernel fa1 --batch 2 --heads 3 --seqlen 7 --head-dim 8 --tile 2x2 "
                    "--batch-index 1 --head 1:3 --query 3:5 -o x.h5", AGREES)
        self.expect("compare x.h5", AGREES)
        for head, query in (1, 3), (1, 4), (2, 4):
            self.expect(f"show x.h5 --batch-index 1 --head {head} --query {query}", AGREES)
        self.refused("show x.h5 --batch-index 0 --head 1 --query 3 --stage qk", "batch 0 was not recorded")
        self.refused("show x.h5 --batch-index 1 --head 1 --query 5 --stage qk", "query 5 was not recorded")
        first = self.json_of(f"show x.h5 {IMPOSSIBLE}", DIVERGES)
        self.assertEqual((first["batch"], first["head"], first["query"]), (1, 1, 3))

    def test_two_dumps_of_the_same_run_are_identical_and_of_others_are_not(self):
        self.dump("x.h5")
        self.dump("y.h5")
        self.dump("z.h5", "--seed 1")
        text = self.expect("compare x.h5 y.h5", AGREES).stdout
        self.assertIn("identical", text)
        self.assertIn("same binary", text)
        self.expect("compare x.h5 z.h5", DIVERGES)
        build_id = self.json_of("compare x.h5", AGREES)["provenance"]["build_id"].encode()
        data = (self.folder / "x.h5").read_bytes()
        self.assertIn(build_id, data)
        (self.folder / "other.h5").write_bytes(data.replace(build_id, b"0" * len(build_id)))
        self.assertIs(self.json_of("compare x.h5 y.h5", AGREES)["same_binary"], True)
        self.assertIs(self.json_of("compare x.h5 other.h5", AGREES)["same_binary"], False)
        self.assertIn("different binaries", self.expect("compare x.h5 other.h5", AGREES).stdout)
        self.expect("compare x.h5 z.h5 --atol 1e3", AGREES)

    def test_two_dumps_can_be_judged_by_a_stored_bound(self):
        self.dump("x.h5", "--with-reference")
        self.dump("y.h5", "--schedule reverse")
        self.expect("compare y.h5 x.h5 --bound", AGREES)

    def test_dumps_of_different_problems_cannot_be_compared(self):
        self.dump("x.h5")
        self.expect("dump --kernel fa1 --heads 1 --seqlen 6 --head-dim 8 --tile 2x2 -o y.h5", AGREES)
        self.refused("compare x.h5 y.h5")

    def test_trace_can_leave_a_dump(self):
        self.expect(f"trace --kernel fa1 {SMALL} -o t.h5", AGREES)
        self.expect("compare t.h5", AGREES)
        self.refused(f"trace --kernel fa1 {SMALL} --deflate 3", "-o")

    def test_an_existing_dump_is_kept_without_force(self):
        path = self.dump()
        before = path.read_bytes()
        self.refused(f"dump --kernel fa1 {SMALL} --seed 3 -o x.h5", "x.h5 exists", "--force")
        self.assertEqual(path.read_bytes(), before)
        self.expect(f"dump --kernel fa1 {SMALL} --seed 3 -o x.h5 --force", AGREES)
        self.assertNotEqual(path.read_bytes(), before)
        self.assertEqual(os.listdir(self.folder), ["x.h5"])

    def test_missing_truncated_foreign_and_newer_files_are_told_apart(self):
        good = self.dump().read_bytes()
        (self.folder / "half.h5").write_bytes(good[: len(good) // 2])
        (self.folder / "text.h5").write_bytes(b"not a dump at all\n" * 100)
        (self.folder / "empty.h5").write_bytes(b"")
        (self.folder / "newer.h5").write_bytes(good.replace(b"attn-diag/1", b"attn-diag/9"))
        (self.folder / "foreign.h5").write_bytes(good.replace(b"attn-diag/1", b"otherprog/1"))
        for command in "compare", "show":
            messages = {self.refused(f"{command} {name}", name)
                        for name in ("gone.h5", "half.h5", "text.h5", "empty.h5")}
            self.refused(f"{command} newer.h5", "newer.h5", "attn-diag/9", "attn-diag/1")
            # compare takes a file of any program, if it knows what is q.
            self.refused(f"{command} foreign.h5", "foreign.h5",
                         "Say which: --q NAME" if command == "compare" else "otherprog/1")
            self.assertEqual(len(messages), 4)
        self.refused("compare x.h5 half.h5", "half.h5")
        self.refused("trace --kernel fa1 --inputs half.h5", "half.h5")

    def test_targets_that_cannot_be_written(self):
        line = f"dump --kernel fa1 {SMALL} -o "
        self.refused(line + "/proc/x.h5", "x.h5 in /proc")
        self.refused(line + "no/such/folder/x.h5", "no/such/folder")
        self.refused(line + ".", "directory")
        self.refused(line + "/dev/full --force", "/dev/full", "not a regular file")
        self.refused(f"run --kernel fa1 {SMALL} --junit no/such/r.xml", "no/such/r.xml")
        self.refused(f"run --kernel fa1 {SMALL} --junit .", "directory")
        for command in "list", "run --kernel", "compare", "run --kernel fa1 --inputs":
            said = self.refused(f"{command} {'x' * 5000}", "x" * 100, "... (50")
            self.assertLess(len(said), 3000)
        self.refused(f"run --kernel fa1 {SMALL} --junit /dev/full", "/dev/full", "No space left")

    def test_a_disk_that_is_full_leaves_nothing_behind(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))

        result = self.expect("dump --kernel fa1 -o x.h5", COULD_NOT, preexec_fn=limit)
        self.assertIn("x.h5", result.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_dump_larger_than_memory_is_refused_with_its_size_and_what_cuts_it(self):
        message = self.refused("dump --kernel fa1 --seqlen 1000000 -o x.h5", "TiB")
        for flag in "--head", "--query", "--stage", "--seqlen":
            self.assertIn(flag, message)
        self.refused("run --kernel fa1 --seqlen 16777216 --batch 1000000", "free")
        # What the message advises helps: a region is small.
        self.expect("dump --kernel fa1 --seqlen 1000 --head 0 --query 3:5 -o x.h5", AGREES)
        self.assertLess(os.path.getsize(self.folder / "x.h5"), 2_000_000)


class BadInput(CommandTest):
    def test_unknown_names_get_the_nearest_known_one(self):
        self.refused("trace --kernel fa2", "no kernel 'fa2'", "fa1")
        self.refused("trace --kernel split-k", "split_k")
        self.refused("trace --kernel fa1@no-such-fault", "fa1@no-such-fault")
        self.refused("trace --kernel ./gone.so:x", "./gone.so")
        self.refused("trace --kernal fa1", "--kernal", "--kernel")
        self.refused("run --kernel fa1 --seqlne 4", "--seqlne", "--seqlen")
        self.refused("trase --kernel fa1", "trase", "trace")
        self.refused("run --kernel fa1 --stage reduc", "reduc", "reduce")
        self.refused("dump --kernel fa1 --stage softmx -o x.h5", "softmax")
        self.refused("run --kernel fa1 --dtype fp61", "fp16")
        self.refused("run --kernel fa1 --layout bhsd", "BHSD")
        self.refused("run --kernel fa1 --inputs rand", "randn")
        self.refused("run --kernel fa1 --mask casual", "causal")
        self.refused("run --kernel fa1 --backend gpu", "auto, host or cuda")
        self.refused("run --kernel fa1 --schedule backwards", "forward", "reverse", "lockstep")
        self.refused("run --kernel fa1 --mma-order first", "--mma-order", "first")
        self.refused("run --kernel fa1 --async-copies now", "--async-copies", "late or early")

    def test_a_library_that_is_no_kernel_is_refused(self):
        (self.folder / "text.so").write_text("no library")
        self.refused("trace --kernel ./text.so:x", "./text.so")

    def test_incomplete_command_lines(self):
        self.refused("", "No command given", "trace")
        self.refused("trace", "needs --kernel")
        self.refused("trace --kernel", "--kernel")
        self.refused("trace --kernel --json", "--kernel needs a value")
        self.refused("trace --kernel fa1 --seqlen ''", "--seqlen needs a value")
        self.refused("dump --kernel fa1", "-o")
        self.refused("compare", "one file or two")
        self.refused("compare a b c", "3")
        self.refused("show", "one file")
        self.refused("trace fa1", "fa1")
        self.refused("run --kernel fa1 --seqlen 4 --seqlen 5", "--seqlen")

    def test_numbers_that_are_none(self):
        for flag in "--batch", "--heads", "--kv-heads", "--seqlen", "--seqlen-q", "--seqlen-k", \
                "--head-dim", "--head-dim-v", "--num-splits", "--threads":
            for value in "0", "-1", "x", "1.5", "4x", "99999999999", "99999999999999999999", "1,,2":
                self.refused(f"run --kernel fa1 {flag} {value}", flag)
        for flag in "--atol", "--rtol":
            for value in "x", "-1", "nan", "inf", "1e":
                self.refused(f"run --kernel fa1 {flag} {value}", flag)
        for flag in "--input-scale", "--softmax-scale":
            for value in "x", "nan", "inf":
                self.refused(f"run --kernel fa1 {flag} {value}", flag)
        for value in "-1", "x", "18446744073709551616":
            self.refused(f"run --kernel fa1 --seed {value}", "--seed")
        for value in "64", "64x", "x64", "0x64", "64x-1", "axb", "64x64x64":
            self.refused(f"run --kernel fa1 --tile {value}", "--tile")
        for value in "0", "10", "x":
            self.refused(f"dump --kernel fa1 -o x.h5 --deflate {value}", "--deflate")
        for value in "-1", "3:2", "3:3", "x", "1:", "0:999", "128":
            self.refused(f"run --kernel fa1 --query {value}", "--query")
        self.refused("run --kernel fa1 --head 2", "--head")
        self.refused("run --kernel fa1 --batch-index 1", "--batch-index")

    def test_impossible_shapes(self):
        self.refused("run --kernel fa1 --head-dim 257", "--head-dim", "256")
        self.refused("run --kernel fa1 --head-dim-v 257", "--head-dim-v", "256")
        self.refused("run --kernel fa1 --heads 6 --kv-heads 4", "6", "4", "--kv-heads")
        self.refused("run --kernel fa1 --heads 2 --kv-heads 4", "--kv-heads")
        for value in "window:-1,0", "window:1", "window:,", "window:a,b", "window:1,2,3":
            self.refused(f"run --kernel fa1 --mask {value}", "--mask")

    def test_causal_needs_an_alignment_where_queries_and_keys_differ(self):
        line = "run --kernel fa1 --heads 1 --seqlen-q 3 --seqlen-k 5 --head-dim 8 --tile 2x2 --mask "
        self.refused(line + "causal", "causal:top_left", "causal:bottom_right")
        self.expect(line + "causal:top_left", AGREES)
        self.expect(line + "causal:bottom_right", AGREES)

    def test_what_the_kernel_was_not_built_for(self):
        self.refused("run --kernel fa1 --tile 3x3", "3x3", "64x64", "2x2")
        self.refused("trace --kernel fa1 --num-splits 2", "--num-splits")
        self.refused("run --kernel fa1 --schedule reverse --backend cuda", "--schedule", "host")
        self.refused("run --kernel fa1 --mma-order 3 --backend cuda", "--mma-order", "host")
        self.refused("run --kernel fa1 --async-copies late --backend cuda", "--async-copies", "host")

    def test_flags_that_contradict_each_other(self):
        self.refused("run --kernel fa1 --stage full --isolate", "--isolate")
        self.dump("x.h5")
        self.dump("y.h5")
        self.refused("compare x.h5 --bound", "--bound")
        self.refused("compare x.h5 y.h5 --bound --atol 1", "--bound")
        self.refused("show x.h5 --query 5", "--query")
        self.refused("show x.h5 --kv-tile 3", "--kv-tile")
        self.refused("show x.h5 --stage full", "--stage")


class Bench(CommandTest):
    """On every machine as if it had no GPU."""

    def call(self, line, **more):
        return super().call(line, env={"CUDA_VISIBLE_DEVICES": ""}, **more)

    def test_without_a_gpu_it_says_so_and_what_to_do(self):
        self.refused("bench", "There is no GPU to measure.")
        self.refused("bench --backend cuda --kernel fa1 --seqlen 128 --json", "There is no GPU")

    def test_it_measures_gpus_only(self):
        self.refused("bench --backend host", "--backend takes cuda", "'host'")

    def test_bad_values_are_refused_before_the_gpu_is_asked_for(self):
        self.refused("bench --seqlen 128,0", "--seqlen", "0")
        self.refused("bench --mask diagonal", "diagonal")
        self.refused("bench --inputs x.h5", "makes its own inputs", "x.h5")
        self.refused("bench --schedule forward", "bench has no flag --schedule")

    def test_the_file_of_pytorch_times_must_be_one(self):
        self.refused("bench --against no.json", "--against no.json", "cannot be read")
        (self.folder / "x.json").write_text('{"schema": "other"}')
        self.refused("bench --against x.json", "x.json", "attn-diag-pytorch/1")


class Streams(CommandTest):
    def test_json_stands_alone_on_stdout(self):
        for line, code in [("list", AGREES), (f"run --kernel fa1 {SMALL}", AGREES),
                           (f"run --kernel fa1 {SMALL} --dtype fp16,bf16", AGREES),
                           (f"dump --kernel fa1 {SMALL} -o x.h5", AGREES), ("compare x.h5", AGREES),
                           ("show x.h5", AGREES), (f"trace --kernel fa1 {SMALL}", AGREES),
                           (f"trace --kernel fa1 {SMALL} --input-scale 1e6", None)]:
            result = self.call(line + " --json")
            if code is not None:
                self.assertEqual(result.returncode, code, result.stderr)
            report = json.loads(result.stdout, parse_constant=self.fail)
            self.assertEqual(report["schema"], "attn-diag-report/1")
            self.assertEqual(report["command"], line.split()[0])

    def test_help_and_version(self):
        for line in "--help", "-h", "list --help", "run --help", "dump --help", "compare --help", \
                "trace --help", "show --help", "bench --help", "doctor --help":
            text = self.expect(line, AGREES).stdout
            self.assertIn("Examples:", text)
            self.assertIn("Exit codes:", text)
            self.assertLessEqual(max(map(len, text.splitlines())), 100, line)
        text = self.expect("--version", AGREES).stdout
        self.assertRegex(text, r"attn-diag \d+\.\d+\.\d+\nHDF5 1\.\d+\.\d+\n")

    def test_output_that_cannot_be_written_is_no_success(self):
        for line in "list", "--help", "--version", f"trace --kernel fa1 {SMALL}", \
                f"run --kernel fa1 {SMALL} --json":
            with open("/dev/full", "w") as full:
                result = self.expect(line, COULD_NOT, stdout=full)
                self.assertIn("No space left", result.stderr)
            reading, writing = os.pipe()
            os.close(reading)
            result = self.expect(line, COULD_NOT, stdout=writing)
            os.close(writing)
            self.assertIn("stdout", result.stderr)

    def test_a_closed_stdout_is_not_given_to_a_file(self):
        line = f"{shlex.quote(PROGRAM)} dump --kernel fa1 {SMALL} -o x.h5 >&-"
        result = subprocess.run(["sh", "-c", line], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(result.returncode, COULD_NOT, result.stderr)
        self.expect("compare x.h5", AGREES)

    def test_a_link_stays_a_link_to_what_is_written(self):
        folder = pathlib.Path(self.folder)
        (folder / "there").mkdir()
        for name in "r.xml", "x.h5":
            (folder / name).symlink_to(f"there/{name}")
        for _ in "the file is new", "it is replaced":
            self.expect(f"run --kernel fa1 {SMALL} --junit r.xml", AGREES)
            self.expect(f"dump --kernel fa1 {SMALL} -o x.h5 --force", AGREES)
        ElementTree.parse(folder / "there" / "r.xml")
        self.expect("compare there/x.h5", AGREES)
        self.assertTrue((folder / "r.xml").is_symlink() and (folder / "x.h5").is_symlink())

    def test_a_report_may_go_to_stdout_and_to_the_file_that_stdout_is(self):
        everything = pathlib.Path(self.folder) / "all"
        for name in "/proc/self/fd/1", "all":  # the former is /dev/stdout
            with open(everything, "w") as file:
                self.expect(f"run --kernel fa1 {SMALL} --junit {name}", AGREES, stdout=file)
            for text in "<testsuites", "AGREES":
                self.assertIn(text, everything.read_text(), name)

    def test_stderr_may_be_closed_too(self):
        line = f"{shlex.quote(PROGRAM)} trace --kernel nope >&- 2>&-"
        result = subprocess.run(["sh", "-c", line], cwd=self.folder)
        self.assertEqual(result.returncode, COULD_NOT)

    def test_colour_is_for_terminals_unless_forced_or_forbidden(self):
        line = f"trace --kernel fa1 {SMALL} {IMPOSSIBLE}"
        self.assertNotIn("\x1b", self.call(line).stdout)
        self.assertIn("\x1b[", self.call(line, env={"CLICOLOR_FORCE": "1"}).stdout)
        self.assertNotIn("\x1b", self.call(line, env={"CLICOLOR_FORCE": "0"}).stdout)
        self.assertNotIn("\x1b", self.call(line, env={"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}).stdout)
        self.assertIn("\x1b[", self.on_terminal(line))
        self.assertNotIn("\x1b", self.on_terminal(line, NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_terminal(line, TERM="dumb"))

    def on_terminal(self, line, **environment):
        try:
            main, worker = pty.openpty()
        except OSError as why:
            self.skipTest(f"no pseudo terminal to be had: {why}")
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE")}
        env.update(TERM="xterm", LC_ALL="C.UTF-8")
        env.update(environment)
        process = subprocess.Popen([PROGRAM, *shlex.split(line)], stdout=worker, cwd=self.folder, env=env)
        os.close(worker)
        text = b""
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            text += piece
        process.wait()
        os.close(main)
        return text.decode()

    def test_a_locale_without_utf8_gets_ascii(self):
        line = f"trace --kernel fa1 {SMALL} {IMPOSSIBLE}"
        self.assertTrue(self.call(line, env={"LC_ALL": "C"}).stdout.isascii())
        self.assertFalse(self.call(line, env={"LC_ALL": "C.UTF-8"}).stdout.isascii())

    def test_long_work_says_its_step_on_stderr_and_quiet_does_not(self):
        cases, seconds = 4, 0.0
        while seconds < 1.5:  # whatever the machine, until it is long
            cases *= 2
            seeds = ",".join(str(i) for i in range(cases))
            line = f"run --kernel fa1 --seqlen 256 --seed {seeds}"
            begin = time.monotonic()
            result = self.expect(line, AGREES)
            seconds = time.monotonic() - begin
        self.assertRegex(result.stderr, rf"^attn-diag: step \d+ of {cases}: ")
        self.assertEqual(self.expect(line + " --quiet", AGREES).stderr, "")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
