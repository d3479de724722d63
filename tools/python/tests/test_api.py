"""compare() and diagnose(): verdicts, texts and files that are the command's, arrays in any memory."""

import json
import os
import re
import sys
import threading
import time

import ml_dtypes
import numpy as np
import pytest

import attn_diag
from attention import attention, command

DTYPES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32}


def case(dtype="fp16", **changes):
    q, k, v = attn_diag.inputs("randn", heads=2, seqlen=40, head_dim=32, dtype=dtype)
    return (q, k, v, *attention(q, k, v, causal=True, **changes))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_right_output_agrees_in_every_dtype(dtype):
    arrays = case(dtype)
    assert arrays[0].dtype == DTYPES[dtype]
    result = attn_diag.compare(*arrays, mask="causal")
    assert result and result.agrees and result.verdict == "agrees"
    assert result.headline.startswith("AGREES: o with the reference in all 2,640 elements")
    assert result.first is None and result.pattern == []
    assert result.problem["dtype"] == dtype and result.problem["mask"] == "causal"


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_wrong_cell_is_found(dtype):
    q, k, v, o, lse = case(dtype)
    o[0, 1, 7, 3] += 1
    result = attn_diag.compare(q, k, v, o, lse, mask="causal")
    assert not result and result.verdict == "diverges"
    first = result.first
    assert (first["tensor"], first["head"], first["query"], first["dim"]) == ("o", 1, 7, 3)
    assert first["actual"] == float(o[0, 1, 7, 3]) and abs(first["actual"] - first["expected"]) > first["bound"]
    assert result.stages[0]["mismatched"] == 1
    assert ("wrong", "only head 1") in result.pattern, result.pattern


def test_text_and_json_are_the_command_s(tmp_path):
    q, k, v, o, lse = case(twice=True)
    said = dict(mask="causal", scale=32 ** -0.5, layout="BHSD")
    result = attn_diag.compare(q, k, v, o, lse, **said)
    assert "Reproduce" not in str(result)
    path = result.save(tmp_path / "a case.safetensors")
    assert str(result) + "\n" == command("compare", path, code=1).replace(os.environ["ATTN_DIAG"], "attn-diag")
    ours, theirs = result.to_dict(), json.loads(command("compare", path, "--json", code=1))
    for report in ours, theirs:
        del report["reproduce"], report["provenance"]
    assert ours == theirs
    found, same = result.diagnosis, json.loads(command("diagnose", path, "--json", code=1))
    assert found.finding == "named" and found.named == ["l-twice"]
    assert found.to_dict()["diagnosis"] == same["diagnosis"]
    assert found.headline == command("diagnose", path, "--quiet", code=1).rstrip("\n")
    again = attn_diag.diagnose(q, k, v, o, lse, **said)
    assert again.named == found.named


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["BHSD", "BSHD"])
def test_a_saved_case_is_read_as_it_was(tmp_path, dtype, layout):
    q, k, v, o, lse = case(dtype)
    if layout == "BSHD":
        q, k, v, o = (np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in (q, k, v, o))
    result = attn_diag.compare(q, k, v, o, lse, mask="causal", layout=layout)
    theirs = json.loads(command("compare", result.save(tmp_path / "x.safetensors"), "--json", code=0))
    assert theirs["stages"] == result.stages and theirs["problem"] == result.problem
    command("diagnose", tmp_path / "x.safetensors", code=0)
    with pytest.raises(FileExistsError, match="exists"):
        result.save(tmp_path / "x.safetensors")
    result.save(tmp_path / "x.safetensors", force=True)
    with pytest.raises(OSError):
        result.save(tmp_path / "nowhere" / "x.safetensors")
    with pytest.raises(ValueError, match="safetensors"):
        result.save(tmp_path / "x.npz")


def test_strides_and_missing_axes_change_nothing():
    q, k, v, o, lse = case()
    expected = attn_diag.compare(q, k, v, o, lse, mask="causal").stages
    bshd = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for x in (q, k, v, o)]
    assert not bshd[0].flags.c_contiguous
    assert attn_diag.compare(*bshd, lse, mask="causal").stages == expected
    wide = [np.repeat(x, 2, -1)[..., ::2] for x in (q, k, v, o)]
    assert attn_diag.compare(*wide, lse, mask="causal").stages == expected
    backwards = [x[..., ::-1].copy()[..., ::-1] for x in (q, k, v, o)]
    assert attn_diag.compare(*backwards, lse, mask="causal").stages == expected
    assert attn_diag.compare(*(x[0] for x in (q, k, v, o, lse)), mask="causal").stages == expected
    for x in q, k, v, o:
        x.flags.writeable = False
    assert attn_diag.compare(q, k, v, o, lse, mask="causal").stages == expected


def test_a_softcap_and_a_bias_are_part_of_the_formula(tmp_path):
    q, k, v, _, _ = case()
    bias = np.linspace(-2, 2, 40 * 40, dtype=np.float32).reshape(40, 40)
    o, lse = attention(q, k, v, causal=True, softcap=2.0, bias=bias)
    right = attn_diag.compare(q, k, v, o, lse, mask="causal", softcap=2.0, bias=bias)
    assert right, str(right)
    assert not attn_diag.compare(q, k, v, o, lse, mask="causal", softcap=2.0)
    assert not attn_diag.compare(q, k, v, o, lse, mask="causal", bias=bias)
    assert command("compare", right.save(tmp_path / "x.safetensors"), code=0).startswith("AGREES")
    wrong = attn_diag.compare(q, k, v, o + np.float16(0.1), lse, mask="causal", softcap=2.0, bias=bias)
    assert not wrong and wrong.pattern == []
    command("diagnose", wrong.save(tmp_path / "y.safetensors"), code=1)


def test_a_tolerance_of_one_s_own_judges_instead(tmp_path):
    q, k, v, o, lse = case()
    assert attn_diag.compare(q, k, v, o + np.float16(0.01), lse, mask="causal", atol=0.1)
    wrong = attn_diag.compare(q, k, v, o + np.float16(0.01), lse, mask="causal", atol=1e-4, rtol=1e-4)
    assert not wrong
    path = wrong.save(tmp_path / "x.safetensors")
    assert wrong.reproduce == f"attn-diag compare {path} --atol 0.0001 --rtol 0.0001"


def test_what_cannot_be_is_refused_in_the_command_s_words():
    q, k, v, o, lse = case()
    with pytest.raises(attn_diag.Error, match="o has 39 .*|q has 40 queries, o has 39"):
        attn_diag.compare(q, k, v, o[:, :, 1:])
    with pytest.raises(ValueError, match="expected none, causal"):
        attn_diag.compare(q, k, v, o, mask="casual")
    with pytest.raises(ValueError, match="two such masks"):
        attn_diag.compare(q[:, :, 1:], k, v, o[:, :, 1:], mask="causal")
    with pytest.raises(ValueError, match="layout is 'HBSD'; expected BHSD or BSHD"):
        attn_diag.compare(q, k, v, o, layout="HBSD")
    with pytest.raises(ValueError, match="atol is -1"):
        attn_diag.compare(q, k, v, o, atol=-1)
    with pytest.raises(ValueError, match="numbers that fp16 cannot hold"):
        attn_diag.compare(q.astype(np.float32) + 1e-5, k, v, o, dtype="fp16")
    with pytest.raises(TypeError, match="k has integers of 32 bits; expected fp16, bf16, fp32 or fp64"):
        attn_diag.compare(q, k.astype(np.int32), v, o)
    with pytest.raises(TypeError, match="v is of type str; expected an array"):
        attn_diag.compare(q, k, "v", o)


def test_nan_in_the_inputs_could_not_be_compared():
    q, k, v, o, _ = case()
    v[:] = np.nan
    result = attn_diag.compare(q, k, v, o, mask="causal")
    assert result.verdict == "could_not_compare" and not result
    assert result.headline.startswith("COULD NOT COMPARE")


def test_nan_in_the_output_is_wrong_and_can_be_shown():
    q, k, v, o, lse = case()
    o[0, 0, 3] = np.nan
    result = attn_diag.compare(q, k, v, o, lse, mask="causal")
    assert result.verdict == "diverges" and result.first["query"] == 3
    assert 'fill="#000000"' in result._repr_html_()


def test_html_has_the_verdict_first_and_a_cell_a_wrong_row():
    q, k, v, o, lse = case()
    o[0, 1, 7] += 1
    html = attn_diag.compare(q, k, v, o, lse, mask="causal")._repr_html_()
    text = html.replace("\n", "").partition("<svg")[0]
    assert "DIVERGES" in text
    assert html.count("<title>") == 1 and "batch 0, head 1, query 7: " in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    # It takes the background of the page, and has no colour that is read on a light or a dark one alone.
    assert "background" not in html and not {"#000", "#fff", "black", "white"} & set(re.findall(r"color:([#\w]+)", html))
    right = attn_diag.compare(*case(), mask="causal")._repr_html_()
    assert "AGREES" in right and "<svg" not in right


def test_inputs_are_the_same_numbers_everywhere():
    assert {"randn", "probe", "integers"} <= set(attn_diag.input_kinds())
    q, k, v = attn_diag.inputs("probe", heads=4, kv_heads=2, seqlen_q=3, seqlen_k=20, head_dim=16, head_dim_v=8)
    assert (q.shape, k.shape, v.shape) == ((1, 4, 3, 16), (1, 2, 20, 16), (1, 2, 20, 8))
    same = attn_diag.inputs("probe", heads=4, kv_heads=2, seqlen_q=3, seqlen_k=20, head_dim=16, head_dim_v=8,
                            layout="BSHD")
    for a, b in zip((q, k, v), same):
        assert (a == b.transpose(0, 2, 1, 3)).all()
    assert (q != attn_diag.inputs("probe", heads=4, kv_heads=2, seqlen_q=3, seqlen_k=20, head_dim=16, head_dim_v=8,
                                  seed=1)[0]).any()
    with pytest.raises(ValueError, match="prob"):
        attn_diag.inputs("prob")
    with pytest.raises(ValueError, match="framework is 'tensorflow'"):
        attn_diag.inputs(framework="tensorflow")


def test_other_threads_run_meanwhile():
    """The GIL is not held while a comparison runs, of as many rows as take it some milliseconds."""
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)  # so that nothing but a release lets the other thread run
    counting = threading.Thread(target=count)
    counting.start()
    try:
        for seqlen in (512, 1024, 2048, 4096):
            q, k, v = attn_diag.inputs(heads=2, seqlen=seqlen, dtype="fp32")
            before = counted[0]
            attn_diag.compare(q, k, v, np.zeros_like(q), threads=1)
            if counted[0] - before > 4:
                return
        raise AssertionError("no other thread ran while compare did")
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        counting.join()
