#!/usr/bin/env python3
"""A new kernel is its folder and a word in ATTN_DIAG_KERNELS (CONTRIBUTING.md, "How to add").

Adds a copy of fa1 under another name to a copy of kernels/, builds it against a build tree, and traces it.

usage: new_kernel_test.py --kernels kernels/ --build BUILD --work FOLDER
exit code: 0 it was built and agrees; 1 not
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

NAME = "fa1_again"


def run(*command):
    print("$", *command, flush=True)
    return subprocess.run([str(word) for word in command], check=False).returncode == 0


def add_kernel(kernels):
    """What a person does."""
    shutil.copytree(kernels / "fa1", kernels / NAME)
    for path in (kernels / NAME).iterdir():
        path.write_text(path.read_text().replace("fa1", NAME))
        path.rename(path.with_name(path.name.replace("fa1", NAME)))
    listing = kernels / "CMakeLists.txt"
    text = listing.read_text()
    if "set(ATTN_DIAG_KERNELS fa1 " not in text:
        sys.exit("new_kernel_test: kernels/CMakeLists.txt has no list ATTN_DIAG_KERNELS that begins with fa1")
    listing.write_text(text.replace("set(ATTN_DIAG_KERNELS fa1 ", f"set(ATTN_DIAG_KERNELS {NAME} fa1 "))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for flag in "--kernels", "--build", "--work":
        parser.add_argument(flag, required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    shutil.rmtree(arguments.work, ignore_errors=True)
    kernels, build = arguments.work / "kernels", arguments.work / "build"
    shutil.copytree(arguments.kernels, kernels)
    add_kernel(kernels)
    package = arguments.build / "lib" / "cmake" / "attn_diag"
    library = build / f"{NAME}.host.so"
    done = (run("cmake", "-S", kernels, "-B", build, f"-Dattn_diag_DIR={package}", "-DATTN_DIAG_CUDA=OFF")
            and run("cmake", "--build", build, "--target", f"{NAME}_kernel", "-j", "2")
            and run(arguments.build / "bin" / "attn-diag", "trace", "--kernel", f"{library}:{NAME}", "--seqlen", "40",
                    "--mask", "causal", "--no-history", "--quiet"))
    print("the new kernel agrees" if done else "WRONG: the new kernel was not built, or does not agree")
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
