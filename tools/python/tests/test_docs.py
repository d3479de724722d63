"""The examples of docs/python.md print what stands below them. ATTN_DIAG_UPDATE_DOCS=1 writes it there instead."""

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys

from attention import PLUGIN

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "python.md"
EXAMPLE = r"(## {}\n.*?```python\n)(.*?)(```\n.*?\n```\n)(.*?)(```\n)"


def check(section, run):
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(EXAMPLE.format(section), text, re.DOTALL)
    assert found, f"no example in section {section} of {PAGE}"
    printed = run(found[2])
    assert printed
    if os.environ.get("ATTN_DIAG_UPDATE_DOCS"):
        PAGE.write_text(text[:found.start(4)] + printed + text[found.end(4):], encoding="utf-8")
    else:
        assert printed == found[4]


def execute(code):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "docs/python.md", "exec"), {"__name__": "example"})
    return out.getvalue()


def test_numpy():
    check("numpy", execute)


def test_torch():
    check("torch", execute)


def test_jax():
    check("JAX", execute)


def test_triton(tmp_path):
    def run(code):
        (tmp_path / "my_kernel.py").write_text(code)
        return subprocess.run([sys.executable, "my_kernel.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True).stdout

    check("Line by line", run)


def test_pytest(tmp_path):
    def run(code):
        (tmp_path / "test_mine.py").write_text(
            "import attn_diag\nimport sys\n"
            f"sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
            "from attention import attention\n"
            "q, k, v = attn_diag.inputs('probe', heads=2, seqlen=64)\n"
            "my_kernel = lambda q, k, v: attention(q, k, v, causal=True, twice=True)\n\n" + code)
        done = subprocess.run([sys.executable, "-m", "pytest", *PLUGIN, "-p", "no:cacheprovider",
                               "--attn-diag-dump", "dumps"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        return "".join(line + "\n" for line in done.stdout.splitlines() if line.startswith("E  "))

    check("In pytest", run)
