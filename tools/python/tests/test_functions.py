"""check_function(), xray() and properties() of functions, right and wrong."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import attn_diag
from attention import attention

SHAPE = dict(heads=2, seqlen=24, head_dim=16)


def causal(q, k, v):
    return attention(q, k, v, causal=True)


def o_alone(q, k, v):
    return attention(q, k, v)[0]


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32"])
def test_a_right_function_agrees_and_is_given_what_it_was_shown(dtype):
    seen = []

    def fn(q, k, v):
        seen.append((type(q), q.dtype, q.shape, k.shape, v.shape))
        return causal(q, k, v)

    q, k, v = attn_diag.inputs(dtype=dtype, kv_heads=1, **SHAPE)
    result = attn_diag.check_function(fn, q, k, v, mask="causal", runs=4)
    assert result, str(result)
    assert result.to_dict()["runs"] == 4 and result.to_dict()["moved_cells"] == 0
    assert "fn" in result.headline
    assert set(seen) == {(np.ndarray, q.dtype, q.shape, k.shape, v.shape)} and len(seen) == 5


def test_a_race_is_a_divergence_and_one_within_rounding_is_not():
    calls = itertools.count()

    def racy(q, k, v):
        o, lse = causal(q, k, v)
        if next(calls) == 3:
            o[0, 1, 5] += 1
        return o, lse

    def last_bit(q, k, v):
        o, lse = causal(q, k, v)
        if next(calls) % 2:
            o[0, 1, 5, 0] = np.nextafter(o[0, 1, 5, 0], np.float32(9))
        return o, lse

    q, k, v = attn_diag.inputs(dtype="fp32", **SHAPE)
    result = attn_diag.check_function(racy, q, k, v, mask="causal", runs=5)
    assert result.verdict == "diverges" and "two runs" in result.headline and result.to_dict()["moved_cells"] == 16
    assert result.diagnosis.finding == "not_a_formula"
    assert attn_diag.check_function(last_bit, q, k, v, mask="causal").to_dict()["moved_cells"] == 1
    assert attn_diag.check_function(last_bit, q, k, v, mask="causal")


def test_a_function_that_writes_its_inputs_diverges():
    def fn(q, k, v):
        out = causal(q, k, v)
        k[0, 0, 0, 0] += 1
        return out

    q, k, v = attn_diag.inputs(**SHAPE)
    before = k.copy()
    assert attn_diag.check_function(fn, q, k, v, mask="causal").verdict == "diverges"
    assert (k == before).all()


def test_an_xray_sees_the_wrong_key():
    def fn(q, k, v):
        return attention(q, k, v, causal=True, shift=1)

    q, k, v = attn_diag.inputs(dtype="fp32", **SHAPE)
    right = attn_diag.xray(causal, q, k, v, mask="causal")
    assert right, str(right)
    wrong = attn_diag.xray(fn, q, k, v, mask="causal", properties=True)
    assert not wrong and wrong.headline.startswith("DIVERGES: S(0, 0, 0, 1)"), str(wrong)
    broken = [p["name"] for p in wrong.to_dict()["properties"] if p["verdict"] == "broken"]
    assert "masked-keys" in broken
    assert wrong.to_dict()["xray"]["launches"] == 2
    assert "SIMT" not in str(wrong) and "Reproduce" not in str(wrong)


def test_properties_hold_or_say_which_not():
    q, k, v = attn_diag.inputs(dtype="fp32", **SHAPE)
    right = attn_diag.properties(o_alone, q, k, v)
    assert right, str(right)
    verdicts = {p["name"]: p["verdict"] for p in right}
    assert len(verdicts) == 10 and verdicts["permuted-keys"] == "holds" and verdicts["duplicated-keys"] == "holds"
    assert verdicts["masked-keys"] == "not_tried"

    def forgets_the_last_key(q, k, v):
        return attention(q, k[..., :-1, :], v[..., :-1, :])[0]

    wrong = attn_diag.properties(forgets_the_last_key, q, k, v)
    assert not wrong and "permuted-keys" in wrong.broken, str(wrong)
    # With a mask of its own, a function is not asked for another.
    masked = attn_diag.properties(causal, q, k, v, mask="causal")
    assert masked and {p["name"]: p["verdict"] for p in masked}["duplicated-keys"] == "not_tried"


def test_what_a_function_raises_is_raised():
    class Own(Exception):
        pass

    def fails(at):
        calls = itertools.count()

        def fn(q, k, v):
            if next(calls) == at:
                raise Own("no such tile")
            return causal(q, k, v)
        return fn

    q, k, v = attn_diag.inputs(**SHAPE)
    for at in 0, 1, 2:
        with pytest.raises(Own, match="no such tile"):
            attn_diag.check_function(fails(at), q, k, v, mask="causal")
    with pytest.raises(Own):
        attn_diag.xray(fails(2), q, k, v, mask="causal")
    with pytest.raises(attn_diag.Error, match="o has 23"):
        attn_diag.check_function(lambda q, k, v: o_alone(q, k, v)[:, :, 1:], q, k, v)
    with pytest.raises(TypeError, match="the function returned None"):
        attn_diag.check_function(lambda q, k, v: None, q, k, v)
    with pytest.raises(TypeError, match="returned 3 values; expected o or"):
        attn_diag.check_function(lambda q, k, v: (q, k, v), q, k, v)
    with pytest.raises(attn_diag.Error, match="runs is 0"):
        attn_diag.check_function(causal, q, k, v, runs=0)


def test_layout_rank_and_wider_arrays_stay_as_they_are():
    def bshd(q, k, v):
        o, lse = attention(*(x.transpose(0, 2, 1, 3) for x in (q, k, v)))
        return o.transpose(0, 2, 1, 3), lse

    q, k, v = attn_diag.inputs(layout="BSHD", **SHAPE)
    assert q.shape == (1, 24, 2, 16)
    assert attn_diag.check_function(bshd, q, k, v, layout="BSHD")
    q, k, v = (x[0, 0] for x in attn_diag.inputs(**SHAPE))
    assert attn_diag.check_function(o_alone, q, k, v)
    wide = [x.astype(np.float64) for x in (q, k, v)]

    def of_fp64(q, k, v):
        assert q.dtype == k.dtype == v.dtype == np.float64
        return attention(q, k, v)[0]

    assert attn_diag.check_function(of_fp64, *wide)


def test_bf16_out_of_fp32_in_is_judged_as_bf16():
    def fn(q, k, v):
        return attention(q, k, v, dtype=ml_dtypes.bfloat16)[0]

    q, k, v = attn_diag.inputs(dtype="fp32", **SHAPE)
    assert attn_diag.check_function(fn, q, k, v)
    assert attn_diag.xray(fn, q, k, v)
