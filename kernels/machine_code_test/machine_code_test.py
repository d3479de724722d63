#!/usr/bin/env python3
"""Checks that a kernel without taps is the production kernel: built with NoTap, its machine code is
that of a source in which the tap statements do not exist.

usage: machine_code_test.py --nvcc NVCC --kernels DIR --work DIR
exit code: 0 same machine code; 1 not; 77 skipped (no nvcc)
"""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import struct
import subprocess
import sys

from tap_statements import delete_tap_statements

ARCHITECTURES = ("sm_80", "sm_90")
# The types of each kernel: <kernel>/<kernel>_<type>.cu.
FOLDER = pathlib.Path(__file__).resolve().parent.parent
TYPES = {kernel.parent.name: [t for t in ("fp16", "bf16", "fp32")
                              if (kernel.parent / f"{kernel.stem}_{t}.cu").exists()]
         for kernel in sorted(FOLDER.glob("*/*.cu")) if kernel.stem == kernel.parent.name}
# The tensor-core kernels take long to compile, and every tile is the same source: one of them. (nvcc
# cuts arguments at commas.)
OPTIONS = {kernel: [r"-DATTN_DIAG_COMPILED_TILES={64\,64}"] for kernel in TYPES if "fp32" not in TYPES[kernel]}
# Bit masks of ATTN_DIAG_COMPILED_GATES.
FULL, REDUCE = 0x10, 0x08


def text_sections(cubin):
    """The .text sections of a 64-bit ELF file: {name: bytes}."""
    data = cubin.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        raise RuntimeError(f"{cubin} is not a 64-bit ELF file")
    table, = struct.unpack_from("<Q", data, 0x28)
    entry_size, entries, names_index = struct.unpack_from("<HHH", data, 0x3A)

    def section(index):
        name, kind, _, _, offset, size = struct.unpack_from("<IIQQQQ", data,
                                                            table + index * entry_size)
        return name, b"" if kind == 8 else data[offset:offset + size]  # 8: SHT_NOBITS

    names = section(names_index)[1]
    sections = {}
    for index in range(entries):
        name_offset, content = section(index)
        name = names[name_offset:names.index(b"\0", name_offset)].decode()
        if name.startswith(".text."):
            sections[name] = content
    return sections


def copy_without_taps(kernels, copy):
    """Copies the sources, deletes their tap statements, returns how many."""
    deleted = 0
    for source in sorted(kernels.rglob("*")):
        if source.suffix not in (".cu", ".cuh", ".h"):
            continue
        target = copy / source.relative_to(kernels)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text()
        if "include" not in source.relative_to(kernels).parts:  # the contract defines taps
            text, count = delete_tap_statements(text)
            deleted += count
        target.write_text(text)
    return deleted


def compile_cubin(nvcc, kernels, unit, architecture, gates, output):
    command = [nvcc, "-std=c++20", "-O3", "-fmad=false", "-cubin", f"-arch={architecture}",
               f"-DATTN_DIAG_COMPILED_GATES={gates}", *OPTIONS.get(unit.split("/")[0], []), "-I", str(kernels / "include"),
               "-I", str(kernels), "-o", str(output), str(kernels / unit)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(" ".join(command) + "\n" + result.stderr)
    return text_sections(output)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--kernels", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    if not shutil.which(arguments.nvcc):
        print("SKIPPED: no nvcc here, so no machine code was compared. Install the CUDA toolkit, or "
              "set ATTN_DIAG_NVCC.")
        return 77

    shutil.rmtree(arguments.work, ignore_errors=True)
    copy = arguments.work / "without_taps"
    deleted = copy_without_taps(arguments.kernels, copy)
    print(f"{deleted} tap statements deleted")
    if deleted < 12:  # at least one for every tensor of stage.h
        print("FAILED: too few tap statements were found")
        return 1

    cases = [(f"{kernel}/{kernel}_{type_}.cu", architecture, FULL)
             for kernel in TYPES for type_ in TYPES[kernel] for architecture in ARCHITECTURES]
    # The check itself must be able to fail: with taps, deleting them has to show.
    cases += [(f"{kernel}/{kernel}_fp16.cu", "sm_80", REDUCE) for kernel in TYPES]

    def compare(case):
        unit, architecture, gates = case
        stem = f"{pathlib.Path(unit).stem}.{architecture}.{gates}"
        build = lambda root, suffix: compile_cubin(arguments.nvcc, root, unit, architecture, gates,
                                                   arguments.work / (stem + suffix))
        return build(arguments.kernels, ".cubin"), build(copy, ".without_taps.cubin")

    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, (tapped, without) in zip(cases, pool.map(compare, cases)):
            unit, architecture, gates = case
            same = [name for name in tapped if tapped[name] == without.get(name)]
            complete = bool(tapped) and tapped.keys() == without.keys()
            if gates == FULL:
                ok = complete and len(same) == len(tapped)
                expected = "identical"
            else:
                ok = complete and not same
                expected = "different (gate reduce has taps)"
            failures += not ok
            print(f"{'ok' if ok else 'FAILED'}: {unit} {architecture}: {len(same)} of {len(tapped)} "
                  f"kernels have identical machine code; expected: all {expected}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
