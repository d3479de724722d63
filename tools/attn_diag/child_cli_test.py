#!/usr/bin/env python3
"""Whatever a user's code does, attn-diag reports it and lives: crashes, exit(), hangs, wild accesses.

usage: child_cli_test.py PATH_TO_ATTN_DIAG PATH_TO_HASH_SOURCES [unittest arguments]
"""

import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

from testing.host_library import HERE, HostLibrary

PROGRAM = HASH_SOURCES = ""
CASE = "--dtype fp32 --heads 1 --seqlen 5 --head-dim 8 --no-history"


def line_of(source, text):
    """The number of the one line of a source that has the text."""
    lines = [i for i, line in enumerate(source.read_text().splitlines(), 1) if text in line]
    assert len(lines) == 1, (text, lines)
    return lines[0]


class CrashTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attn-diag-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.build()

    def setUp(self):
        self.before = set(os.listdir(self.folder))

    def start(self, line, prepare=None, **environment):
        return subprocess.Popen([PROGRAM, *shlex.split(line)], cwd=self.folder, text=True,
                                env={**os.environ, "LC_ALL": "C.UTF-8", **environment}, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, preexec_fn=prepare)

    def call(self, line, code, **environment):
        process = self.start(line, **environment)
        process.out, process.err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, code, f"{line}\n{process.out}\n{process.err}")
        return process

    def left(self):
        """Files that a command has left behind."""
        return sorted(set(os.listdir(self.folder)) - self.before)

    def crash(self, kernel, *said, flags=""):
        """Exit code 2, nothing on stdout, one report on stderr that says all of `said`."""
        result = self.call(f"run --kernel ./mine.so:{kernel} {CASE} {self.stage} {flags}", 2)
        self.assertEqual(result.out, "")
        # Before it there may be what step long work is at.
        self.assertRegex(result.err, r"\A(attn-diag: step .*\n)*attn-diag: error: ")
        self.assertEqual(result.err.count("attn-diag: error: "), 1)
        for text in said:
            self.assertIn(text, result.err)
        return result.err


class HostCode(CrashTest):
    stage = "--stage full"

    @classmethod
    def build(cls):
        cls.mine = HostLibrary(cls.folder, HASH_SOURCES)
        cls.mine.build("-g")

    def at(self, text):
        return f"(mine.cc:{line_of(self.mine.source, text)})".replace("(", f"({self.folder.resolve()}/")

    def test_a_segmentation_fault_names_signal_address_and_line(self):
        said = self.crash("segfaults", "in host code, before any kernel was launched: segmentation fault (SIGSEGV)",
                          "a null pointer", "--in-process")
        self.assertIn("At attn_diag::(anonymous namespace)::segfaults", said)
        self.assertIn(self.at("nowhere[r.problem.batch] = 1.0f"), said)

    def test_other_signals_are_named(self):
        self.crash("aborts", "SIGABRT", "std::abort")
        self.crash("divides-by-zero", "SIGFPE", "an integer division by zero")

    def test_exit_is_no_success(self):
        said = self.crash("exits", "ended the process by exit(0)")
        self.assertIn("Nothing was judged", said)

    def test_an_exception_is_an_ordinary_error(self):
        self.crash("throws", "./mine.so:throws", "its host code threw an exception: no such configuration")
        self.crash("throws-int", "an exception that is not a std::exception")

    def test_a_write_far_outside_names_the_buffer(self):
        self.crash("writes-far-behind-o", "399,999,840 bytes behind the end of o, which has 160 bytes")

    def test_what_does_not_end_is_stopped_where_it_is(self):
        begin = time.monotonic()
        said = self.crash("never-ends", "did not end within 0.5 s", flags="--timeout 0.5")
        self.assertLess(time.monotonic() - begin, 60)
        self.assertIn("never_ends", said)

    def test_a_timeout_that_is_not_reached_changes_nothing(self):
        self.assertIn("AGREES", self.call(f"run --kernel ./mine.so:right {CASE} {self.stage} --timeout 100", 0).out)
        self.call(f"run --kernel ./mine.so:right {CASE} --timeout 0", 2)

    def test_json_and_junit_are_written_for_a_crash_too(self):
        line = f"run --kernel ./mine.so:segfaults {CASE} {self.stage} --json --junit x.xml"
        report = json.loads(self.call(line, 2).out)
        self.assertEqual(report["verdict"], "could_not_compare")
        self.assertEqual(report["error"]["kind"], "signal")
        self.assertEqual(report["error"]["signal"], "SIGSEGV")
        self.assertIs(report["error"]["in_kernel"], False)
        self.assertEqual(self.left(), ["x.xml"])
        error = next(ElementTree.parse(self.folder / "x.xml").iter("error"))
        self.assertIn("SIGSEGV", error.get("message"))
        (self.folder / "x.xml").unlink()

    def test_rows_before_a_crash_are_reported_as_they_were(self):
        kernels = ",".join(f"./mine.so:{name}" for name in ("right", "segfaults", "wrong"))
        line = f"run --kernel {kernels} {CASE} {self.stage} --junit x.xml"
        result = self.call(line, 2)
        self.assertIn("1 case: 1 agrees", result.out)
        self.assertIn("While at step 2 of 3", result.err)
        self.assertIn("The steps before it are reported; those after it were not tried.", result.err)
        self.assertNotIn("Nothing was judged", result.err)
        cases = list(ElementTree.parse(self.folder / "x.xml").iter("testcase"))
        self.assertEqual([case.get("classname") for case in cases], ["attn-diag.run../mine.so:right", "attn-diag"])
        self.assertEqual([len(case) for case in cases], [0, 1])
        (self.folder / "x.xml").unlink()
        before = json.loads(self.call(line + " --json", 2).out)["before"]
        self.assertEqual([row["verdict"] for row in before["cases"]], ["agrees"])
        (self.folder / "x.xml").unlink()

    def test_every_command_that_runs_code_is_safe_and_leaves_no_file(self):
        for command in "run --stage full --junit x.xml", "trace -o x.h5", "dump --stage full -o x.h5":
            result = self.call(f"{command} --kernel ./mine.so:segfaults {CASE}", 2)
            self.assertIn("SIGSEGV", result.err)
            left = self.left()
            self.assertEqual([name for name in left if name != "x.xml"], [])
            (self.folder / "x.xml").unlink(missing_ok=True)

    def test_exit_codes_pass_through(self):
        for kernel, code in ("right", 0), ("wrong", 1), ("no-such", 2):
            for more in "", "--in-process":
                self.call(f"run --kernel ./mine.so:{kernel} {CASE} {self.stage} {more}", code)

    def test_a_run_says_what_it_says_once_and_printing_code_does_not_spoil_it(self):
        for more in "", "--in-process":
            result = self.call(f"run --kernel ./mine.so:prints {CASE} {self.stage} --no-sanity --json {more}", 0)
            self.assertEqual(json.loads(result.out)["verdict"], "agrees")
            self.assertEqual(result.err.count("printed by the kernel's host code"), 1)

    def outputs(self, kernel):
        """Everything that a run writes is where it was asked for, and there once."""
        line = f"--kernel ./mine.so:{kernel} {CASE} {self.stage}"
        result = self.call(f"run {line} --no-sanity --json --junit x.xml", 0)
        self.assertEqual(json.loads(result.out)["verdict"], "agrees")
        self.assertEqual(len(list(ElementTree.parse(self.folder / "x.xml").iter("testcase"))), 1)
        self.call(f"dump {line} -o x.h5", 0)
        self.assertIn("AGREES", self.call("compare x.h5", 0).out)
        self.assertEqual(sorted(set(self.left()) - {"mine.txt"}), ["x.h5", "x.xml"])
        for name in self.left():
            (self.folder / name).unlink()
        return result

    def test_host_code_in_another_folder_changes_nothing(self):
        self.outputs("changes-folder")

    def test_host_code_that_returns_twice_is_reported_once(self):
        self.outputs("forks")

    def test_no_process_of_host_code_stays_behind(self):
        result = self.outputs("leaves-process")
        self.assertIn("left a process behind, now ended", result.err)
        for stat in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                self.assertNotEqual((stat / "cwd").resolve(), self.folder.resolve())
            except OSError:
                pass  # ended meanwhile, or not ours

    def test_closed_descriptors_change_nothing(self):
        self.outputs("closes-descriptors")

    def test_nothing_is_written_into_files_of_the_host_code(self):
        line = f"--kernel ./mine.so:reuses-descriptors {CASE} {self.stage}"
        result = self.call(f"run {line} --no-sanity --json --junit x.xml", 0)
        self.assertEqual(json.loads(result.out)["verdict"], "agrees")
        ElementTree.parse(self.folder / "x.xml")
        self.call(f"dump {line} -o x.h5", 0)
        self.assertIn("AGREES", self.call("compare x.h5", 0).out)
        self.assertEqual((self.folder / "mine.txt").read_bytes(), b"")
        for name in self.left():
            (self.folder / name).unlink()

    def test_how_host_code_wants_numbers_is_its_own_affair(self):
        def report(kernel, scale, more):
            line = f"run --kernel ./mine.so:{kernel} {CASE} {self.stage} --input-scale {scale} --json {more}"
            return json.loads(self.call(line, 0).out)

        for scale in 1, 1e-39:  # the latter is subnormal
            for more in "", "--no-sanity --in-process":
                right = report("right", scale, more)
                for kernel in "rounds-upward", "flushes-subnormals", "traps-floats", "changes-locale":
                    other = report(kernel, scale, more)
                    for name in "verdict", "judged", "stages":
                        self.assertEqual(other[name], right[name], (kernel, scale))

    def test_signals_and_threads_of_host_code_are_its_own_affair(self):
        self.outputs("ignores-signals")
        self.outputs("leaves-thread")
        self.crash("handles-signals", "ended the process by _exit(0)")

    def test_an_exit_that_leaves_no_trace_is_not_said_to_be_anywhere(self):
        said = self.crash("exits-at-once", "ended the process by _exit(0)")
        self.assertNotIn("before any kernel", said)
        result = self.call(f"run --kernel ./mine.so:exits-at-once {CASE} {self.stage} --json", 2)
        self.assertIsNone(json.loads(result.out)["error"]["in_kernel"])

    def test_control_characters_of_host_code_do_not_reach_the_terminal(self):
        line = f"run --kernel ./mine.so:says-controls {CASE} {self.stage}"
        result = self.call(line, 2)
        self.assertNotRegex(result.out + result.err, "[\x00-\x08\x0b-\x1f\x7f]")
        self.assertIn("\\x1b]0;title\\x07 and \\x1b[2J \\xff", result.out + result.err)
        result = self.call(f"run --kernel ./mine.so:says-controls,./mine.so:right {CASE} {self.stage} --json "
                           "--junit x.xml", 2)
        self.assertNotRegex(result.out, "[\x00-\x08\x0b-\x1f\x7f]")
        json.loads(result.out)
        ElementTree.parse(self.folder / "x.xml")
        (self.folder / "x.xml").unlink()

    def test_who_ignores_the_ends_of_children_gets_verdicts_all_the_same(self):
        process = self.start(f"run --kernel ./mine.so:right {CASE} {self.stage}",
                             prepare=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, out + err)

    def test_in_process_a_crash_is_a_crash(self):
        process = self.start(f"run --kernel ./mine.so:segfaults {CASE} {self.stage} --in-process")
        process.communicate(timeout=300)
        self.assertEqual(process.returncode, -signal.SIGSEGV)

    def test_signals_end_parent_and_child(self):
        for kernel, number in itertools.product(["never-ends", "ignores-signals-and-never-ends"],
                                                [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]):
            process = self.start(f"run --kernel ./mine.so:{kernel} {CASE} {self.stage} --junit x.xml")
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
            child = ""
            while not child:
                child = children.read_text().strip()
            # Until it runs the kernel's code.
            while "mine.so" not in pathlib.Path(f"/proc/{child}/maps").read_text():
                time.sleep(0.01)
            process.send_signal(number)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, -number)
            deadline = time.monotonic() + 60
            while self.lives(child) and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertFalse(self.lives(child))
            if number == signal.SIGKILL:
                for name in self.left():
                    (self.folder / name).unlink()
            self.assertEqual(self.left(), [])

    @staticmethod
    def lives(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
        except FileNotFoundError:
            return False


class Libraries(CrashTest):
    """Files that are no kernel library of this program."""
    stage = "--stage full"

    @classmethod
    def build(cls):
        cls.mine = HostLibrary(cls.folder, HASH_SOURCES)
        cls.mine.build()

    def refused(self, *said):
        said = self.crash("right", "mine.so", *said)
        self.assertNotIn("crashed", said)
        self.mine.build()

    def test_a_file_that_is_no_library(self):
        for content in b"", b"no ELF file\n" * 100, self.mine.library.read_bytes()[:200]:
            self.mine.library.write_bytes(content)
            self.refused("cannot be loaded")

    def test_a_library_for_another_machine(self):
        whole = bytearray(self.mine.library.read_bytes())
        machine = struct.unpack_from("<H", whole, 18)[0]
        struct.pack_into("<H", whole, 18, 183 if machine == 62 else 62)  # EM_AARCH64, EM_X86_64
        self.mine.library.write_bytes(whole)
        self.refused("cannot be loaded", "It was built for " + ("AArch64" if machine == 62 else "x86-64"))

    def test_a_library_without_an_adapter(self):
        (self.folder / "empty.cc").write_text("int nothing;\n")
        subprocess.run([*shlex.split(os.environ.get("CXX", "c++")), "-shared", "-fPIC", "empty.cc", "-o", "mine.so"],
                       cwd=self.folder, check=True)
        self.refused("does not export attn_diag_kernel_library()")

    def test_a_library_of_another_version(self):
        self.mine.build("-DOTHER_VERSION")
        self.refused("was built for version 999 of the kernel contract", "Rebuild")

    def test_a_library_that_lacks_a_symbol(self):
        self.mine.build("-DMISSING_SYMBOL")
        self.refused("undefined symbol: attn_diag_from_nowhere")

    def test_list_lives_through_libraries_that_end_when_they_are_loaded(self):
        for flag, how in ("-DABORTS_WHEN_LOADED", "Aborted"), ("-DEXITS_WHEN_LOADED", "exit(0)"):
            broken = self.folder / "broken.host.so"
            self.mine.build(flag, library=broken)
            shutil.copy(self.mine.library, self.folder / "whole.host.so")
            result = self.call("list", 0, ATTN_DIAG_KERNEL_PATH=str(self.folder))
            self.assertRegex(result.out, r"broken .*cannot be loaded: its own code failed")
            self.assertIn(how, result.out)
            self.assertIn("whole.host.so:right", result.out)
            for name in self.left():
                (self.folder / name).unlink()

    def test_doctor_lives_through_kernels_that_end_when_they_are_tried(self):
        folder = self.folder / "tried"
        folder.mkdir()
        right = self.mine.source.read_text()
        self.addCleanup(self.mine.source.write_text, right)
        for kernel, how in ("aborts", "Aborted"), ("exits", "exit(0)"):
            ends = right
            for old, new in ('describe("right", right),', f'describe("right", {kernel}),'), ("p.dtype != DType::kFp32", "false"):
                self.assertIn(old, ends)
                ends = ends.replace(old, new)
            self.mine.source.write_text(ends)
            self.mine.build(library=folder / "ends.host.so")
            said = " ".join(self.call("doctor", 0, ATTN_DIAG_KERNEL_PATH=str(folder)).out.split())
            self.assertIn("host works: fa1 ran", said)
            self.assertRegex(said, r"ends\.host\.so:right failed in a small run: .*" + re.escape(how))
        shutil.rmtree(folder)

    def test_a_library_that_crashes_while_it_is_loaded(self):
        self.mine.build("-DABORTS_WHEN_LOADED")
        said = self.crash("right", "SIGABRT")
        self.assertIn("before any kernel was launched", said)
        self.mine.build()


class Kernels(CrashTest):
    """Built from CUDA C++ by attn-diag build."""
    stage = "--stage full"
    EACH = "block (1, 0, 0), thread (2, 0, 0)"

    @classmethod
    def build(cls):
        cls.source = cls.folder / "crashing_kernels.cu"
        shutil.copy(HERE / "crashing_kernels.cu", cls.source)
        subprocess.run([PROGRAM, "build", cls.source, "-o", "mine.so", "--no-nvcc"],
                       cwd=cls.folder, check=True, stdout=subprocess.DEVNULL)

    def test_the_right_one_agrees(self):
        self.call(f"run --kernel ./mine.so:right {CASE} {self.stage}", 0)

    def test_a_null_pointer_names_kernel_block_thread_and_line(self):
        line = line_of(self.source, "nowhere[3] = o[0]")
        said = self.crash("writes-null", "in kernel writes_null", self.EACH, "SIGSEGV", "a null pointer",
                          f"last synchronised at {self.source.resolve()}:"
                          f"{line_of(self.source, '__syncthreads')}")
        self.assertIn(f"crashing_kernels.cu:{line})", said)

    def test_what_went_out_of_bounds_before_a_crash_comes_first(self):
        loop = line_of(self.source, "i <= n")
        said = self.crash("spills-over", "in kernel spills_over", self.EACH, "SIGSEGV",
                          "Before that, attn-diag check finds: index 8 is past the end of an array",
                          f"crashing_kernels.cu:{loop} lets the index go one step too far (i): for (int i = 0;")
        self.assertLess(said.index("At spills_over"), said.index("Before that"))
        report = json.loads(self.call(f"run --kernel ./mine.so:spills-over {CASE} {self.stage} --json", 2).out)
        self.assertEqual(report["line_divergence"]["suspects"][0]["line"], loop)
        self.assertIn("index 8 is past", report["error"]["check_finds"])
        # Where the crash itself is what the checker finds, nothing is said twice.
        self.assertNotIn("attn-diag check", self.crash("writes-null"))

    def test_json_has_block_and_thread_as_numbers(self):
        report = json.loads(self.call(f"run --kernel ./mine.so:writes-null {CASE} {self.stage} --json", 2).out)
        self.assertEqual((report["error"]["block"], report["error"]["thread"]), ([1, 0, 0], [2, 0, 0]))
        self.assertIn("writes_null", report["error"]["kernel"])

    def test_a_write_outside_is_reported_near_and_far(self):
        self.crash("writes-far", "in kernel writes_far", self.EACH, "200,000,000 bytes behind the end of o")
        said = self.crash("writes-near", "wrote outside o: first at byte 160 of a buffer of 160 bytes")
        self.assertNotIn("crashed", said)

    def test_a_stack_overflow_is_named(self):
        self.crash("overflows", "in kernel overflows", self.EACH, "SIGSEGV", "the stack overflowed")

    def test_a_kernel_that_never_ends_is_stopped(self):
        self.crash("never-ends", "never_ends", flags="--timeout 1")

    def test_host_code_that_crashes_after_a_launch_names_the_last_kernel(self):
        self.crash("crashes-later", "in host code; the last kernel launched was attend", "SIGSEGV")

    def test_a_row_of_many_that_crashes_is_named(self):
        result = self.call(f"run --kernel ./mine.so:right,./mine.so:writes-null {CASE} {self.stage}", 2)
        # The other row is kept.
        self.assertIn("2 cases: 1 failed, 1 agree", result.out)
        self.assertIn("writes_null, block (1,0,0): thread (2,0,0) accesses a null pointer", result.out)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    PROGRAM, HASH_SOURCES = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
    unittest.main()
