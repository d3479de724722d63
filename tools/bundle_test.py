#!/usr/bin/env python3
"""What tools/bundle decides without building: what it reads from tools' output, what it refuses."""

import gzip
import importlib.machinery
import importlib.util
import io
import lzma
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bundle_check  # noqa: E402

TOOL = pathlib.Path(__file__).resolve().parent / "bundle"


def load():
    loader = importlib.machinery.SourceFileLoader("bundle", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bundle", loader))
    loader.exec_module(module)
    return module


bundle = load()

READELF = """
 0x0000000000000001 (NEEDED)             Shared library: [libfmt.so.9]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x000000000000000e (SONAME)             Library soname: [libx.so.0.1]
 0x000000000000000f (RPATH)              Library rpath: [$ORIGIN/../lib:]
"""


class Reading(unittest.TestCase):
    def test_needed_libraries_soname_and_search_paths(self):
        needed, soname, paths = bundle_check.parse_dynamic(READELF)
        self.assertEqual(needed, ["libfmt.so.9", "libc.so.6"])
        self.assertEqual(soname, "libx.so.0.1")
        self.assertEqual(paths, ["$ORIGIN/../lib", ""])
        self.assertEqual(bundle_check.parse_dynamic(""), ([], None, []))

    def test_what_ldd_found(self):
        found = bundle_check.parse_ldd("\tlinux-vdso.so.1 (0x1)\n\tlibfmt.so.9 => /lib/libfmt.so.9 (0x2)\n"
                                 "\tlibgone.so => not found\n")
        self.assertEqual(found, {"libfmt.so.9": "/lib/libfmt.so.9"})

    def test_the_newest_glibc_that_is_asked_for(self):
        self.assertEqual(bundle_check.glibc_version_of("GLIBC_2.9 GLIBC_2.34 GLIBC_2.4"), (2, 34))
        self.assertEqual(bundle_check.glibc_version_of(""), (0, 0))

    def test_glibc_and_the_driver_are_the_machine_s_and_nothing_else_is(self):
        for name in "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libcuda.so.1", "libdl.so.2":
            self.assertTrue(bundle_check.SYSTEM_LIBRARIES.match(name), name)
        for name in "libcurl.so.4", "libstdc++.so.6", "libcudart.so.13", "libcrypt.so.1":
            self.assertFalse(bundle_check.SYSTEM_LIBRARIES.match(name), name)

    def test_what_was_loaded_from_elsewhere(self):
        trace = ("1: calling init: /lib/libc.so.6\n1: calling init: /opt/b c/lib/libfmt.so.9\n"
                 "1: calling init: /usr/lib/libfmt.so.9\n")
        self.assertEqual(bundle_check.loaded_outside(trace, "/opt/b c"), ["/usr/lib/libfmt.so.9"])


class Checking(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name) / "made"
        (self.folder / "lib").mkdir(parents=True)
        (self.folder / "file").write_text("as it was")
        bundle.write_texts(self.folder, {"commit": "abc", "dirty": True, "needs": {
            "machine": "m", "glibc": "2.34", "driver": "d"}})

    def test_an_untouched_folder_is_as_its_sums_say(self):
        self.assertEqual(bundle_check.checksum_faults(self.folder), [])
        self.assertIn("with local changes", (self.folder / "README.txt").read_text())

    def test_a_changed_an_added_and_a_missing_file_are_named(self):
        (self.folder / "file").write_text("otherwise")
        (self.folder / "more").write_text("")
        (self.folder / "README.txt").unlink()
        faults = " ".join(bundle_check.checksum_faults(self.folder))
        for name in "file is not", "more is not", "README.txt is missing":
            self.assertIn(name, faults)

    def test_a_program_that_looks_outside_is_named(self):
        source = self.folder / "x.c"
        source.write_text("int main(void) { return 0; }\n")
        for options, said in (["-Wl,-rpath,/opt/lib"], "'/opt/lib'"), (["-Wl,-rpath,$ORIGIN:"], "''"):
            subprocess.run(["gcc", str(source), "-o", str(self.folder / "x"), *options], check=True)
            self.assertIn(f"x looks for libraries in {said}",
                          " ".join(bundle_check.library_faults(self.folder)))
        subprocess.run(["gcc", str(source), "-o", str(self.folder / "x"), "-Wl,-rpath,$ORIGIN"],
                       check=True)
        self.assertEqual(bundle_check.library_faults(self.folder), [])

    def test_a_library_that_is_not_carried_is_named(self):
        (self.folder / "y.c").write_text("int y(void) { return 1; }\n")
        (self.folder / "x.c").write_text("int y(void); int main(void) { return y(); }\n")
        run = lambda *words: subprocess.run(words, check=True, cwd=self.folder)  # noqa: E731
        run("gcc", "-shared", "-fPIC", "y.c", "-o", "liby.so")
        run("gcc", "x.c", "-o", "x", "./liby.so", "-Wl,-soname,x", "-Wl,-rpath,$ORIGIN/lib")
        self.assertIn("x needs ./liby.so, which is neither in lib/ nor glibc's",
                      " ".join(bundle_check.library_faults(self.folder)))

    def test_the_archive_is_the_same_for_the_same_files(self):
        first = bundle.tar_of(self.folder, 1000)
        os.utime(self.folder / "file", (5, 5))
        self.assertEqual(bundle.tar_of(self.folder, 1000), first)
        for ending, decompress in (".tar.gz", gzip.decompress), (".tar.xz", lzma.decompress):
            archive = self.folder.parent / f"x{ending}"
            bundle.compress(first, archive)
            with tarfile.open(fileobj=io.BytesIO(decompress(archive.read_bytes()))) as tar:
                self.assertIn("made/file", tar.getnames())
                self.assertEqual(tar.getmember("made/file").mtime, 1000)


class Command(unittest.TestCase):
    def refused(self, *arguments):
        result = subprocess.run([sys.executable, str(TOOL), *arguments], text=True,
                                capture_output=True, timeout=60)
        self.assertEqual(result.returncode, 2, result.stderr)
        return result.stderr

    def test_a_name_that_is_no_archive_is_refused_before_building(self):
        self.assertIn(".tar.xz, .tar.gz, .tar.zst", self.refused("-o", "/tmp/x.zip"))
        self.assertIn("does not exist", self.refused("-o", "/nonexistent/x.tar.gz"))

    def test_a_folder_that_is_no_bundle_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("not a bundle", self.refused("--check", folder))

    def test_the_list_names_what_is_not_built_yet(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = dict((place, path) for path, place in bundle.plan(pathlib.Path(folder), True))
        for place in "bin/attn-diag", "bin/gpu_check", "gpu-check", "fixtures/wmma/layout_sm80.csv", \
                "fixtures/faults/gqa-modulo/finding.toml":
            self.assertIn(place, plan)

    def test_with_pairs_the_zoo_and_what_compares_it_go_along(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "pairs").mkdir()
            (pathlib.Path(folder) / "pairs" / "x@broken.cuda.so").touch()
            places = [place for _, place in bundle.plan(pathlib.Path(folder), False, True)]
            self.assertNotIn("compare_with_sanitizer",
                             [place for _, place in bundle.plan(pathlib.Path(folder), False)])
        for place in "compare_with_sanitizer", "lib/attn_diag/pairs/pairs.json", \
                "lib/attn_diag/pairs/x@broken.cuda.so":
            self.assertIn(place, places)
            self.assertEqual(bundle.group_of(place) == "scripts and texts", "/" not in place)

    def test_packages_that_are_missing_are_installed_before_anything_is_built(self):
        def commands(code, *words):
            run = []
            with unittest.mock.patch.object(
                    bundle.subprocess, "run",
                    lambda command, **_: run.append(command) or subprocess.CompletedProcess(command, code)):
                try:
                    bundle.build_all(bundle.parse(words))
                except bundle_check.Failure as failure:
                    self.assertEqual(failure.code, 2)
            return [" ".join(pathlib.Path(word).name for word in command[:2]) for command in run]

        self.assertEqual(commands(0), ["setup --test", "cmake --preset", "cmake --build"])
        self.assertEqual(commands(1), ["setup --test"])
        self.assertEqual(commands(0, "--no-setup")[0], "cmake --preset")

    def test_stale_kernels_are_told_from_others(self):
        report = {"kernels": [{"library": "/a.so", "stale": True}, {"library": "/b.so", "stale": False}]}
        self.assertEqual(bundle.stale_libraries(report), ["/a.so"])

    def test_sizes_are_summed_by_kind(self):
        lines = bundle.table_of_sizes([("lib/attn_diag/kernels/fa1.cuda.so", 3 * 2**20),
                                       ("lib/attn_diag/kernels/fa1@x.cuda.so", 2**20),
                                       ("lib/attn_diag/kernels/k.cuda.so", 2**20),
                                       ("lib/libfmt.so.9", 10)])
        self.assertEqual([" ".join(line.split()) for line in lines],
                         ["4.0 MiB cuda kernels (2)", "1.0 MiB cuda kernels with planted faults (1)",
                          "0.0 MiB shared libraries (1)"])


if __name__ == "__main__":
    unittest.main()
