#!/usr/bin/env python3
"""Installs what a wheel has into a new venv, out of a build tree, and compares arrays there: every library that is loaded
then is carried, or one of glibc's, libstdc++ and libgcc_s.

usage: carried.py CMAKE BUILD
exit code: 0 it works; 1 it does not
"""

import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import venv

SYSTEM = r"(ld-linux-x86-64|libc|libm|libpthread|libdl|librt|libresolv|libgcc_s|libstdc\+\+|libutil|libpython[\d.]+)\.so"
# Python without numpy: one key, so that o is v.
USE = """
import attn_diag

def array(x):
    return memoryview(bytearray(4 * 4)).cast("B").cast("f", [1, 1, 1, 4]) if x is None else x

q, k, v, o = (array(None) for _ in range(4))
for i in range(4):
    v[0, 0, 0, i] = o[0, 0, 0, i] = i + 1
right = attn_diag.compare(q, k, v, o)
assert right, str(right)
o[0, 0, 0, 2] = 7
assert attn_diag.compare(q, k, v, o).first["dim"] == 2
print(attn_diag.__file__)
for line in open("/proc/self/maps"):
    print(line.split()[-1])
"""


def main(cmake, build):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        venv.create(root, with_pip=False, symlinks=True)
        site = root / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        subprocess.run([cmake, "--install", build, "--component", "attn_diag_wheel", "--prefix", site], check=True,
                       stdout=subprocess.DEVNULL)
        carried = [path.name for path in pathlib.Path(site, "attn_diag", "_tree", "lib").iterdir()]
        wrong = [name for name in carried if re.match(SYSTEM, name)]
        done = subprocess.run([root / "bin" / "python", "-I", "-c", USE], env={"PATH": os.defpath}, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            return 1
        loaded = {line for line in done.stdout.splitlines() if ".so" in line}
        own = (str(root), sysconfig.get_path("stdlib"))
        wrong += sorted(path for path in loaded if not path.startswith(own) and not re.match(SYSTEM, os.path.basename(path)))
        ours = sum(path.startswith(str(root)) for path in loaded)
        print(f"{len(carried)} libraries are carried, {ours} files of the wheel were loaded")
        for one in wrong:
            print(f"wrong: {one}")
        return 1 if wrong or ours < 2 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
