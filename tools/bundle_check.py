"""What a bundle's programs need, and whether an unpacked bundle is whole. Of tools/bundle."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

# What the machine itself must have: glibc and the driver.
SYSTEM_LIBRARIES = re.compile(
    r"^(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv|libutil)\.so\.\d+$|^libcuda\.so\.1$")
# A closure with one of these is not that of the static HDF5.
UNWANTED = re.compile(r"^lib(curl|hdf5|gnutls|krb5|ldap|ssh|crypto|ssl)")


class Failure(Exception):
    """code: the exit code."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def output_of(*command, **more):
    return subprocess.run(command, check=True, text=True, capture_output=True, **more).stdout


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def parse_dynamic(text):
    """(needed libraries, soname or None, search paths) from `readelf -d`."""
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    soname = re.findall(r"\(SONAME\).*\[(.*)\]", text)
    paths = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text)
    return needed, soname[0] if soname else None, paths[0].split(":") if paths else []


def dynamic_of(path):
    return parse_dynamic(output_of("readelf", "-dW", str(path)))


def soname_of(path):
    return dynamic_of(path)[1] or path.name


def parse_ldd(text):
    """soname -> path of what `ldd` resolved."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", text, re.MULTILINE))


def glibc_version_of(text):
    """The newest GLIBC_x.y that `readelf -V` names, as (x, y)."""
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", text)
    return max(((int(x), int(y)) for x, y in versions), default=(0, 0))


def elf_files(folder):
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and is_elf(path)]


def copy_libraries(folder):
    """Copies to lib/ what the ELF files of the bundle need, and what that needs."""
    lib = folder / "lib"
    waiting = elf_files(folder)
    while waiting:
        path = waiting.pop()
        resolved = None
        for name in dynamic_of(path)[0]:
            if SYSTEM_LIBRARIES.match(name) or (lib / name).exists():
                continue
            if UNWANTED.match(name):
                raise Failure(1, f"{path.relative_to(folder)} needs {name}: it was not linked with "
                                 "the static HDF5. Remove build/bundle and try again.")
            if resolved is None:
                resolved = parse_ldd(output_of("ldd", str(path)))
            if name not in resolved:
                raise Failure(1, f"{path.relative_to(folder)} needs {name}, which is not found here.")
            shutil.copy(os.path.realpath(resolved[name]), lib / name)
            waiting.append(lib / name)


def library_faults(folder):
    """Sentences about ELF files that would look outside the bundle."""
    faults = []
    present = {path.name for path in (folder / "lib").glob("*.so*")}
    for path in elf_files(folder):
        place = path.relative_to(folder)
        needed, _, search = dynamic_of(path)
        for name in needed:
            if not SYSTEM_LIBRARIES.match(name) and name not in present:
                faults.append(f"{place} needs {name}, which is neither in lib/ nor glibc's")
        for entry in search:
            if not entry.startswith("$ORIGIN"):  # an empty entry is the working directory
                faults.append(f"{place} looks for libraries in '{entry}'")
    return faults


def loaded_outside(trace, folder):
    """Paths of libraries that the loader initialised (LD_DEBUG=files), beside glibc and the driver,
    outside `folder`."""
    loaded = set(re.findall(r"calling init: (/.*)$", trace, re.MULTILINE))
    folder = os.path.realpath(folder)
    return sorted(path for path in loaded
                  if not os.path.realpath(path).startswith(folder + "/")
                  and not SYSTEM_LIBRARIES.match(os.path.basename(path)))


def run_elsewhere(folder):
    """Runs the programs from a copy of the folder under another name; sentences about what failed."""
    faults = []
    with tempfile.TemporaryDirectory(prefix="attn-diag-bundle-") as temporary:
        copy = pathlib.Path(temporary) / "moved here"
        shutil.copytree(folder, copy, symlinks=True)
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "LD_DEBUG": "files",
                       "LD_DEBUG_OUTPUT": f"{temporary}/trace"}
        for command in (["bin/attn-diag", "list"], ["bin/attn-diag", "run", "--kernel", "fa1"],
                        ["bin/gpu_check", "--help"], ["tests/cuda_tests", "--help"]):
            result = subprocess.run([str(copy / command[0]), *command[1:]], cwd="/", text=True,
                                    capture_output=True, env=environment)
            if result.returncode != 0:
                faults.append(f"{' '.join(command)} ends with {result.returncode} in a moved copy: "
                              f"{result.stderr.strip()}")
        trace = "".join(path.read_text(errors="replace")
                        for path in pathlib.Path(temporary).glob("trace.*"))
        faults += [f"{path} is used from outside the bundle"
                   for path in loaded_outside(trace, copy)]
    return faults


def checksum_faults(folder):
    """Sentences about files that are not as SHA256SUMS says."""
    faults = []
    listed = {}
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, place = line.split("  ", 1)
        listed[place] = digest
    for path in sorted(folder.rglob("*")):
        place = str(path.relative_to(folder))
        if path.is_file() and place != "SHA256SUMS" and listed.pop(place, None) != sha256(path):
            faults.append(f"{place} is not the file that SHA256SUMS lists")
    return faults + [f"{place} is missing" for place in listed]


def check(folder):
    if not (folder / "SHA256SUMS").is_file():
        raise Failure(2, f"{folder} is not a bundle: it has no SHA256SUMS.")
    faults = checksum_faults(folder) + library_faults(folder)
    faults = faults or run_elsewhere(folder)
    if faults:
        raise Failure(1, f"the bundle {folder} is not whole:\n  " + "\n  ".join(faults))
