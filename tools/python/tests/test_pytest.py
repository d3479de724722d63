"""The pytest plugin: what a failing test prints and leaves behind, and that the command repeats it."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import attn_diag
import attn_diag.testing
from attention import PLUGIN, attention, command

TESTS = '''
import sys
sys.path.insert(0, {folder!r})
import attn_diag
import attn_diag.testing
import pytest
from attention import attention
from attn_diag.testing import AttentionError, assert_attention as imported

q, k, v = attn_diag.inputs("probe", heads=2, seqlen=64, head_dim=32)

def test_right(assert_attention):
    o, lse = attention(q, k, v, causal=True)
    assert assert_attention(o, q, k, v, lse, mask="causal").agrees

@pytest.mark.parametrize("name", ["a/b c"])
def test_wrong(assert_attention, name):
    assert assert_attention is imported
    o, lse = attention(q, k, v, causal=True, twice=True)
    assert_attention(o, q, k, v, lse, mask="causal")

def test_caught():
    with pytest.raises(AttentionError) as caught:
        imported(q, q, k, v)
    assert caught.value.result.verdict == "diverges"
'''


@pytest.fixture
def run(tmp_path):
    def run(*flags):
        (tmp_path / "test_of_a_user.py").write_text(TESTS.format(folder=os.path.dirname(__file__)))
        return subprocess.run([sys.executable, "-m", "pytest", *PLUGIN, "-p", "no:cacheprovider",
                               "test_of_a_user.py", *flags], cwd=tmp_path, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    return run


def test_a_failure_names_the_bug_and_the_dump_repeats_it(run, tmp_path):
    done = run("--attn-diag-dump", "dumps")
    assert done.returncode == 1 and "1 failed, 2 passed" in done.stdout, done.stdout
    said = [line[1:].strip() for line in done.stdout.splitlines() if line.startswith("E ")]
    assert "DIVERGES: o differs from the reference" in said[0], said
    assert any(line.startswith("exact") and "query 0 is exact" in line for line in said), said
    assert any(line.startswith("NAMED: ") for line in said), said
    assert len(said) < 25 and "array(" not in done.stdout
    dump = next(line for line in said if line.startswith("Dump: "))[6:]
    assert re.fullmatch(r"dumps/test_wrong_a_b_c\.safetensors", dump)
    named = next(line for line in said if line.startswith("NAMED: "))
    assert command("diagnose", tmp_path / dump, "--quiet", code=1).rstrip("\n") == named
    assert command("compare", tmp_path / dump, code=1).startswith("DIVERGES")
    page = (tmp_path / "dumps" / "test_wrong_a_b_c.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "NAMED: " in page and "<svg" in page
    # A second failure of the same name is written beside it.
    assert "test_wrong_a_b_c-2.safetensors" in run("--attn-diag-dump", "dumps").stdout


def test_without_a_folder_the_dump_is_temporary(run):
    done = run()
    dump = re.search(r"Dump: (\S+)", done.stdout)
    assert dump, done.stdout
    command("compare", dump[1], code=1)
    os.remove(dump[1])


def test_a_batch_entry_without_keys_is_told_without_a_diagnosis():
    q, k, v = attn_diag.inputs(batch=2, heads=1, seqlen=16, head_dim=16)
    o = attention(q, k, v)[0]
    with pytest.raises(attn_diag.testing.AttentionError, match="(?s)DIVERGES.*Batch entry 0 has no keys.*Dump: "):
        attn_diag.testing.assert_attention(o, q, k, v, kv_lens=[0, 16])


def test_nothing_judged_is_no_pass():
    q, k, v = attn_diag.inputs(heads=1, seqlen=16, head_dim=16)
    o, _ = attention(q, k, v)
    v[:] = np.nan
    with pytest.raises(attn_diag.testing.AttentionError, match="COULD NOT COMPARE"):
        attn_diag.testing.assert_attention(o, q, k, v)
