#!/usr/bin/env python3
"""Files that are damaged, or made to do harm, are refused in words: no crash, no hang, no gigabytes, and never a
word about the code under test.

usage: damaged_files_cli_test.py PATH_TO_ATTN_DIAG [--variants N] [unittest arguments]
"""

import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

try:
    import h5py
    import numpy as np
except ImportError:
    system = "/usr/bin/python3"  # where Debian's packages are
    if sys.executable != system and os.path.exists(system):
        os.execv(system, [system, *sys.argv])
    print("SKIP: no h5py and numpy (apt install python3-h5py)")
    sys.exit(0)

PROGRAM = ""
VARIANTS = 20
SECONDS, MEMORY = 60, 3 << 29  # of one command


class Damaged(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attn-diag-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.whole = cls.folder / "whole.h5"
        subprocess.run([PROGRAM, "dump", "--kernel", "fa1", "--heads", "1", "--seqlen", "16", "--head-dim", "8",
                        "--tile", "16x16", "--no-history", "-o", cls.whole], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def call(self, *words):
        """Exit code, what it said, seconds, and the most memory that it or a process of its own held."""
        begin = time.monotonic()
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen([PROGRAM, *map(str, words)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=said, stderr=subprocess.STDOUT, env={**os.environ, "LC_ALL": "C.UTF-8"},
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)))
            stop = threading.Timer(2 * SECONDS, process.kill)
            stop.start()
            _, status, usage = os.wait4(process.pid, 0)
            stop.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            text = said.read().decode("utf-8", "replace")
        return process.returncode, text, time.monotonic() - begin, usage.ru_maxrss * 1024

    def harmless(self, *words):
        """What is wrong with how a command ended; None if nothing is."""
        code, said, _, memory = self.call(*words)
        if code not in (0, 1, 2):
            return f"exit code {code}: {said[-300:]}"
        if "code under test" in said or "internal error" in said:
            return said[-300:]
        return f"{memory >> 20} MiB" if memory > MEMORY else None

    def refused(self, words, *texts):
        code, said, seconds, _ = self.call(*words)
        self.assertEqual(code, 2, said)
        self.assertNotIn("code under test", said)
        for text in texts:
            self.assertIn(text, said)
        self.assertLess(seconds, SECONDS)
        return said

    def changed(self, change):
        path = self.folder / "changed.h5"
        shutil.copy(self.whole, path)
        with h5py.File(path, "r+") as file:
            change(file)
        return path


class Flipped(Damaged):
    def test_no_byte_does_harm(self):
        whole = self.whole.read_bytes()
        bad = self.folder / "bad.h5"
        failures = []
        for seed in range(VARIANTS):
            draw = random.Random(seed)
            data = bytearray(whole)
            # Numbers of a dump are few bytes among the many that say where they are.
            for _ in range(draw.choice([1, 1, 2, 8])):
                data[draw.randrange(len(data))] = draw.choice([0, 1, 0x7f, 0x80, 0xff, draw.randrange(256)])
            bad.write_bytes(data)
            for words in (["show", bad, "--stage", "qk"], ["compare", bad, self.whole], ["diagnose", bad, "--no-pairs"]):
                if failure := self.harmless(*words):
                    failures.append(f"variant {seed}, {words[0]}: {failure}")
        self.assertEqual(failures, [], "\n".join(failures))


class Made(Damaged):
    def foreign(self, fill):
        path = self.folder / "foreign.h5"
        path.unlink(missing_ok=True)
        draw = np.random.default_rng(0)
        with h5py.File(path, "w") as file:
            for name in "qkvo":
                file[name] = draw.standard_normal((1, 1, 8, 8)).astype(np.float16)
            fill(file)
        return path

    def test_attributes_of_every_kind_are_read_or_passed_over(self):
        def fill(file):
            file.attrs["truths"] = np.ones(4096, dtype=bool)
            file.attrs["is_causal"] = True
            file.attrs["matrix"] = np.ones((3, 3))
            file.attrs["empty"] = h5py.Empty("f")
            file.attrs["texts"] = ["a", "b"]
            file.attrs["record"] = np.zeros(2, dtype=[("a", "i4"), ("b", "S3")])
            ragged = np.empty(1, dtype=h5py.vlen_dtype(np.int32))
            ragged[0] = np.arange(3, dtype=np.int32)
            file.attrs["ragged"] = ragged
            file["q"].attrs["reference"] = file["k"].ref
        code, said, _, _ = self.call("diagnose", self.foreign(fill), "--no-pairs")
        self.assertEqual(code, 1, said)
        self.assertIn("causal", said)

    def test_a_list_where_a_dump_has_one_value_is_refused(self):
        path = self.changed(lambda file: file["problem"].attrs.create("heads", np.ones(1000, dtype=bool)))
        self.refused(["show", path, "--stage", "qk"], "heads is not a single number")

    def test_no_other_file_is_followed(self):
        secret = self.folder / "secret.h5"
        with h5py.File(secret, "w") as file:
            file["o"] = np.ones((1, 1, 8, 8), dtype=np.float16)
        (self.folder / "raw").write_bytes(bytes(128))

        def link(file):
            del file["o"]
            file["o"] = h5py.ExternalLink("secret.h5", "o")
        self.refused(["diagnose", self.foreign(link)], "o is a link to another file, which is not followed")

        def way_round(file):
            del file["o"]
            file["there"] = h5py.ExternalLink("secret.h5", "/")
            file["o"] = h5py.SoftLink("/there/o")
        self.refused(["diagnose", self.foreign(way_round)], "No array is o")

        def storage(file):
            del file["o"]
            file.create_dataset("o", (1, 1, 8, 8), np.float16, external=[("raw", 0, 128)])
        self.refused(["diagnose", self.foreign(storage)], "o lies in other files, which are not followed")

        def virtual(file):
            del file["o"]
            layout = h5py.VirtualLayout((1, 1, 8, 8), np.float16)
            layout[:] = h5py.VirtualSource("secret.h5", "o", (1, 1, 8, 8))
            file.create_virtual_dataset("o", layout)
        self.refused(["diagnose", self.foreign(virtual)], "o lies in other files, which are not followed")

    def test_a_pipe_is_no_file(self):
        pipe = self.folder / "pipe.h5"
        os.mkfifo(pipe)
        for words in (["diagnose", pipe], ["show", pipe], ["compare", pipe, self.whole],
                      ["run", "--kernel", "fa1", "--inputs", pipe]):
            self.refused(words, "not a regular file")

    def test_what_is_declared_and_not_written_takes_no_memory(self):
        def fill(file):
            for name in "qkvo":
                del file[name]
                file.create_dataset(name, (1, 1 << 10, 1 << 20, 64), np.float16, chunks=(1, 1, 1024, 64))
        self.refused(["diagnose", self.foreign(fill)], "was not written, or only in part")

    def test_deep_and_circular_groups_end(self):
        def fill(file):
            group = file
            for _ in range(300):
                group = group.create_group("g")
            group["up"] = file["/"]
        code, said, _, _ = self.call("diagnose", self.foreign(fill), "--no-pairs")
        self.assertEqual(code, 1, said)

    def test_a_directory_of_many_arrays_is_read_in_time(self):
        draw = np.random.default_rng(0)
        arrays = {name: draw.standard_normal((1, 1, 8, 8)).astype(np.float16) for name in "qkvo"}
        arrays.update({f"spare{i:05}": np.zeros(2, np.float16) for i in range(6000)})
        np.savez(self.folder / "many.npz", **arrays)
        code, said, seconds, _ = self.call("diagnose", self.folder / "many.npz", "--no-pairs")
        self.assertEqual(code, 1, said)
        self.assertLess(seconds, 30)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if len(sys.argv) > 2 and sys.argv[1] == "--variants":
        VARIANTS = int(sys.argv[2])
        del sys.argv[1:3]
    unittest.main()
