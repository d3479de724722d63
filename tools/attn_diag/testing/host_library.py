"""Builds host_code.cc, or an edited copy of it, into a kernel library, for tests of the command."""

import os
import pathlib
import shlex
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
CONTRACT = HERE.parents[2] / "kernels" / "include"
OBJECTS = {}


class HostLibrary:
    """A library `mine.so` in a folder, made from `mine.cc` beside it."""

    def __init__(self, folder, hash_sources):
        self.folder, self.hash_sources = pathlib.Path(folder), hash_sources
        self.source, self.library = self.folder / "mine.cc", self.folder / "mine.so"
        shutil.copy(HERE / "host_code.cc", self.source)

    def build(self, *flags, library=None):
        compiler = shlex.split(os.environ.get("CXX", "c++"))
        common = [*compiler, "-std=c++20", "-O1", "-fPIC", "-ffp-contract=off", f"-I{CONTRACT}", *flags]
        headers, info, compiled = self.folder / "headers.d", self.folder / "build_info.cc", self.folder / "mine.o"
        run = lambda *words: subprocess.run(words, check=True, cwd=self.folder)  # noqa: E731
        run(*common, "-MM", self.source, "-MF", headers)
        run(self.hash_sources, "--output", info, "--depfile", self.folder / "info.d", "--root", self.folder,
            "--compiler", "any", "--flags", "any", "--backend", "host", headers)
        # What the same text was compiled to; where it lies is in the object with -g alone.
        known = self.source.read_bytes(), flags, self.folder if "-g" in flags else None
        if known not in OBJECTS:
            run(*common, "-c", self.source, "-o", compiled)
            OBJECTS[known] = compiled.read_bytes()
        compiled.write_bytes(OBJECTS[known])
        run(*common, "-shared", "-Wl,--build-id", compiled, info, "-o", library or self.library)
        compiled.unlink()
        return library or self.library
