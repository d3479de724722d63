"""The examples print what docs/python_examples.md shows, but for seconds and for what the rounding of this machine
makes of it. ATTN_DIAG_UPDATE_DOCS=1 writes it there instead."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "python_examples.md"


def check(name, **environment):
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "python" / "examples" / name)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment})
    assert done.returncode == 0, done.stderr
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"\(\.\./tools/python/examples/{re.escape(name)}\).*?```\n(.*?)```\n", text, re.DOTALL)
    assert found, f"{PAGE} shows nothing of {name}"
    if os.environ.get("ATTN_DIAG_UPDATE_DOCS"):
        PAGE.write_text(text[:found.start(1)] + done.stdout + text[found.end(1):], encoding="utf-8")
        return

    def of_every_machine(said):
        said = re.sub(r"\d+ cases were run in .*", "N cases were run", said)
        return re.sub(r"agrees +[\d.]+$", "agrees N", said, flags=re.MULTILINE)

    assert of_every_machine(done.stdout) == of_every_machine(found[1])


def test_torch():
    check("torch_attention.py")


def test_jax():
    check("jax_attention.py", JAX_PLATFORMS="cpu")


def test_triton():
    check("triton_attention.py", TRITON_INTERPRET="1")
