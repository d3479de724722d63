"""The right kernels that mutants are drawn of: those of the zoo, our examples, and brought ones."""

import pathlib
import re
import sys
import tomllib

from mutation_evidence.source import Source

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "fixtures" / "zoo"))
import zoo  # noqa: E402

SUFFIXES = (".cu", ".cuh", ".h", ".hpp")


def of_the_zoo():
    """Those that run on the host, and the examples of the documentation."""
    kernels = [zoo.load(name) for name in (*zoo.names(), *zoo.EXAMPLES)]
    return [kernel for kernel in kernels if kernel.builds_on_host]


def brought(folder):
    """A folder with an expect.toml that has `sources` and `cases`, and perhaps `build_flags` and `name`."""
    folder = pathlib.Path(folder).resolve()
    path = folder / "expect.toml"
    if not path.exists():
        raise SystemExit(f"mutation-evidence: {folder.name} has no expect.toml; it needs one with sources and cases")
    said = tomllib.loads(path.read_text())
    for key in ("sources", "cases"):
        if not said.get(key):
            raise SystemExit(f"mutation-evidence: {folder.name}/expect.toml has no {key}")
    return zoo.Kernel(name=said.get("name", folder.name), folder=folder, sources=said["sources"], cases=said["cases"],
                      features=[], build_flags=said.get("build_flags", []))


def texts(kernel):
    """{path in the folder: text} of the files that may hold device code; adapters are left alone."""
    return {str(path.relative_to(kernel.folder)): path.read_text() for path in sorted(kernel.folder.rglob("*"))
            if path.suffix in SUFFIXES and not path.stem.endswith("adapter")}


def device_macros(files):
    """Names that stand for __device__ or __global__, as in `#define DEVICE __device__ __forceinline__`."""
    return {m.group(1) for text in files.values()
            for m in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+[^\n]*__(?:device|global)__[^\n]*$", text, re.M)
            if "{" not in m.group() and "(" not in m.group().split("__")[0]}


def parsed(kernel):
    """{path: Source} of the files that do hold device code."""
    files = texts(kernel)
    macros = device_macros(files)
    sources = {name: Source(text, macros) for name, text in files.items()}
    return {name: source for name, source in sources.items() if source.device_ranges}


def single_cases(case):
    """'--seqlen 40 --head-dim 32,64' is two cases."""
    cases = [[]]
    words = case.split()
    for i, word in enumerate(words):
        values = word.split(",") if i and words[i - 1] in LISTS else [word]
        cases = [begun + [value] for begun in cases for value in values]
    return [" ".join(begun) for begun in cases]


LISTS = ("--seqlen", "--seqlen-q", "--seqlen-k", "--head-dim", "--head-dim-v", "--dtype", "--batch", "--heads",
         "--kv-heads", "--num-splits", "--seed")


def flags_of(case):
    words = case.split()
    return dict(zip(words[::2], words[1::2]))


def case_of(flags):
    return " ".join(f"{flag} {value}" for flag, value in flags.items())


def size_of(case):
    flags = {flag: value for flag, value in flags_of(case).items() if re.fullmatch(r"\d+", value)}
    def number(*names, default):
        return int(next((flags[name] for name in names if name in flags), default))
    return (number("--batch", default=1) * number("--heads", default=2) * number("--head-dim", default=64)
            * number("--seqlen-q", "--seqlen", default=128) * number("--seqlen-k", "--seqlen", default=128))


def own_cases(kernel):
    """Smallest first."""
    cases = [single for case in kernel.cases for single in single_cases(case)]
    return sorted(dict.fromkeys(cases), key=lambda case: (size_of(case), case))


def further_cases(kernel):
    """Variations of the kernel's first case, which it may take or not: more keys, odd lengths, a mask, a batch."""
    first = flags_of(own_cases(kernel)[0])
    base = {flag: value for flag, value in first.items()
            if flag not in ("--seqlen", "--seqlen-q", "--seqlen-k", "--batch")}
    variations = [{"--seqlen": "65"}, {"--seqlen": "33", "--batch": "2"}, {"--seqlen": "65", "--mask": "causal"},
                  {"--seqlen-q": "7", "--seqlen-k": "100"}, {"--seqlen": "128"}]
    cases = [case_of({**base, **more}) for more in variations]
    own = set(own_cases(kernel))
    return [case for case in dict.fromkeys(cases) if case not in own]


def random_case(kernel, random):
    """A case like one of the kernel's, of another size."""
    flags = flags_of(random.choice(own_cases(kernel)))
    lengths = [flag for flag in ("--seqlen", "--seqlen-q", "--seqlen-k") if flag in flags]
    for flag in lengths:
        flags[flag] = str(random.randint(1, 130))
    if "--seqlen" in lengths and random.random() < 0.3:
        flags["--seqlen-q"], flags["--seqlen-k"] = str(random.randint(1, 70)), flags.pop("--seqlen")
    flags["--batch"] = str(random.randint(1, 2))
    if "--kv-heads" not in flags:
        flags["--heads"] = str(random.randint(1, 3))
    if "--mask" not in flags and random.random() < 0.3:
        flags["--mask"] = "causal"
    flags["--seed"] = str(random.randint(1, 10**6))
    return case_of(flags)
