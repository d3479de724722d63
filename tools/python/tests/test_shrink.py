"""shrink(): the smallest case, what its neighbours said, its file and its test, of functions with a bug that is known."""

import itertools
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import attn_diag
from attention import PLUGIN, attention, command, forgets_beyond_64

DTYPES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32}


def given(dtype="fp16", **sizes):
    return attn_diag.inputs(dtype=dtype, **{"heads": 2, "seqlen": 96, "head_dim": 16, **sizes})


@pytest.fixture(scope="module")
def shrunk():
    return attn_diag.shrink(forgets_beyond_64, *given(batch=2, heads=4, kv_heads=2))


def test_every_size_is_as_small_as_the_bug_allows(shrunk):
    assert not shrunk and shrunk.verdict == "diverges" and shrunk.headline.startswith("SMALLEST: ")
    p = shrunk.problem
    assert (p["batch"], p["heads"], p["kv_heads"], p["seqlen_q"], p["seqlen_k"], p["head_dim"]) == (1, 1, 1, 1, 65, 1)
    assert shrunk.passes["seqlen_k"] == 64 and shrunk.passes["seqlen_q"] is None
    assert "seqlen_k: 96 -> 65: 64 passes; 66 fails too" in str(shrunk), str(shrunk)
    assert shrunk.to_dict()["numbers"]["not_zero"] <= 2 and shrunk.to_dict()["numbers"]["integers"]


def test_its_arrays_fail_and_its_file_is_repeated_by_the_command(shrunk, tmp_path):
    q, k, v = shrunk.arrays
    assert q.dtype == np.float16 and k.shape == (1, 1, 65, 1)
    assert not attn_diag.check_function(forgets_beyond_64, q, k, v)
    path = shrunk.save(tmp_path / "smallest.safetensors")
    assert command("compare", path, code=1).startswith("DIVERGES")
    assert command("diagnose", path, "--quiet", code=1).rstrip("\n") == shrunk.diagnosis.headline
    assert path in str(shrunk) and shrunk.to_dict()["file"] == path
    loaded = attn_diag.load_inputs(path)
    assert [(x.dtype, x.shape) for x in loaded] == [(x.dtype, x.shape) for x in shrunk.arrays]
    assert (loaded[2] == given(batch=2, heads=4, kv_heads=2)[2][:1, :1, :65, :1]).all()


def run_test(shrunk, folder):
    (folder / "test_it.py").write_text(shrunk.test)
    return subprocess.run([sys.executable, "-m", "pytest", *PLUGIN, "-p", "no:cacheprovider", "-q",
                           "test_it.py"], cwd=folder, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": f"{os.path.dirname(__file__)}:{os.environ.get('PYTHONPATH', '')}"})


@pytest.mark.parametrize("dtype", DTYPES)
def test_its_test_fails_until_the_function_is_mended(dtype, tmp_path):
    shrunk = attn_diag.shrink(forgets_beyond_64, *given(dtype))
    assert "from attention import forgets_beyond_64" in shrunk.test
    failed = run_test(shrunk, tmp_path)
    assert failed.returncode == 1 and "AttentionError: DIVERGES" in failed.stdout, failed.stdout
    (tmp_path / "attention.py").write_text("from attention_as_it_was import *\nforgets_beyond_64 = attention\n")
    os.symlink(os.path.join(os.path.dirname(__file__), "attention.py"), tmp_path / "attention_as_it_was.py")
    passed = subprocess.run([sys.executable, "-m", "pytest", *PLUGIN, "-p", "no:cacheprovider", "-q",
                             "test_it.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"})
    assert passed.returncode == 0, passed.stdout


def test_numbers_that_are_kept_are_read_from_the_file(tmp_path):
    shrunk = attn_diag.shrink(forgets_beyond_64, *given(head_dim=64), keep_values=True, hold=["seqlen_q", "head_dim"])
    assert shrunk.problem["seqlen_q"] == 96 and shrunk.problem["head_dim"] == 64 and shrunk.problem["seqlen_k"] == 65
    assert "FILE.safetensors" in shrunk.test
    shrunk.save(tmp_path / "case.safetensors")
    assert run_test(shrunk, tmp_path).returncode == 1


def test_what_is_right_has_no_smallest_case():
    right = attn_diag.shrink(attention, *given())
    assert right and right.headline.startswith("AGREES: there is nothing to make smaller")
    assert right.test == "" and right.comparison is None
    with pytest.raises(ValueError, match="no smallest case"):
        right.save("nowhere.safetensors")


def test_a_size_that_the_function_refuses_is_a_neighbour_that_fails_otherwise():
    def of_16(q, k, v):
        if k.shape[-2] % 16:
            raise NotImplementedError(f"Sk = {k.shape[-2]} is no multiple of 16")
        return forgets_beyond_64(q, k, v)

    shrunk = attn_diag.shrink(of_16, *given(), hold=["seqlen_q"])
    assert shrunk.problem["seqlen_k"] == 80 and shrunk.passes["seqlen_k"] == 64, str(shrunk)
    assert "79 fails otherwise" in str(shrunk) and "no multiple of 16" in str(shrunk), str(shrunk)


def test_a_causal_mask_keeps_the_lengths_equal_and_a_scale_the_head_dim():
    def causal(q, k, v):
        assert q.shape[-2] == k.shape[-2] and q.shape[-1] == 16
        return attention(q, k, v, causal=True, scale=0.3, twice=True)

    shrunk = attn_diag.shrink(causal, *given(), mask="causal", scale=0.3)
    p = shrunk.problem
    assert p["seqlen_q"] == p["seqlen_k"] == 2 and p["head_dim"] == 16, str(shrunk)
    assert shrunk.passes["seqlen"] == 1
    assert "l-twice" in shrunk.diagnosis.named and shrunk.given.diagnosis.named == ["l-twice"]
    assert "another bug" not in str(shrunk)


def test_a_result_that_moves_goes_on_moving():
    calls = itertools.count()

    def racy(q, k, v):
        o, lse = attention(q, k, v)
        if k.shape[-2] > 4:
            o[..., 0, 0] += next(calls) % 2
        return o, lse

    shrunk = attn_diag.shrink(racy, *given(seqlen=24), keep_values=True)
    assert shrunk.problem["seqlen_k"] == 5 and shrunk.to_dict()["failure"]["moves"], str(shrunk)
    assert "check_function" in shrunk.test


def test_exceptions_are_python_s_own():
    calls = itertools.count()

    class Own(Exception):
        pass

    def fails(q, k, v):
        raise Own("no such tile")

    def interrupted(q, k, v):
        if next(calls) == 9:
            raise KeyboardInterrupt
        return forgets_beyond_64(q, k, v)

    with pytest.raises(Own):
        attn_diag.shrink(fails, *given())
    with pytest.raises(KeyboardInterrupt):
        attn_diag.shrink(interrupted, *given())
    with pytest.raises(attn_diag.Error, match="'seqlen' is no size of this case"):
        attn_diag.shrink(forgets_beyond_64, *given(), hold=["seqlen"])
    with pytest.raises(attn_diag.Error, match="seconds is 0"):
        attn_diag.shrink(forgets_beyond_64, *given(), seconds=0)


def test_progress_is_told_and_time_ends_it():
    lines = []
    attn_diag.shrink(forgets_beyond_64, *given(), keep_values=True, progress=lines.append)
    assert any(line.startswith("2/4 seqlen = ") for line in lines), lines
    shrunk = attn_diag.shrink(forgets_beyond_64, *given(), seconds=0.001)
    assert "in the time there was" in shrunk.headline and "seconds=" in str(shrunk)
