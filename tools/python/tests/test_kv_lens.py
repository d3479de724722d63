"""kv_lens: each batch entry by keys of its own number, exactly, in files too."""

import json

import numpy as np
import pytest

import attn_diag
from attention import attention, command

LENS = [5, 0, 40, 17]


def by_length(q, k, v, lens, causal=None, **said):
    """o and lse of [B, H, S, D], an entry at a time."""
    o, lse = np.zeros(q.shape[:3] + v.shape[3:], q.dtype), np.full(q.shape[:3], -np.inf, np.float32)
    for b, n in enumerate(lens):
        if n == 0:
            continue
        shift = n - q.shape[2] if causal == "causal:bottom_right" else 0
        one = (x[b:b + 1] for x in (q, k[:, :, :n], v[:, :, :n]))
        with np.errstate(invalid="ignore", divide="ignore"):
            part_o, part_lse = attention(*one, causal=causal is not None, shift=shift, **said)
        seen = np.isfinite(part_lse[0])  # rows that see no key
        o[b][seen], lse[b][seen] = part_o[0][seen], part_lse[0][seen]
    return o, lse


def case(lens=LENS, mask="none", **said):
    q, k, v = attn_diag.inputs(batch=4, heads=2, kv_heads=1, seqlen_q=16, seqlen_k=40, head_dim=16)
    return (q, k, v, *by_length(q, k, v, lens, None if mask == "none" else mask, **said))


@pytest.mark.parametrize("mask", ["none", "causal:top_left", "causal:bottom_right"])
def test_what_each_entry_makes_of_its_own_keys_is_right(mask):
    arrays = case(mask=mask)
    right = attn_diag.compare(*arrays, mask=mask, kv_lens=LENS)
    assert right, str(right)
    assert sum(t["compared"] for s in right.stages for t in s["tensors"]) == 4 * 2 * 16 * (16 + 1)
    assert "by its own keys: the first 5, 0, 40, 17 of 40" in str(right)
    assert not attn_diag.compare(*arrays, mask=mask), "without lengths it is wrong"
    assert not attn_diag.compare(*arrays, mask=mask, kv_lens=[5, 0, 40, 9])


def test_what_lies_behind_is_not_read():
    q, k, v, o, lse = case()
    for b, n in enumerate(LENS):
        k[b, :, n:], v[b, :, n:] = np.nan, np.nan
    right = attn_diag.compare(q, k, v, o, lse, kv_lens=np.array(LENS))
    assert right and right.stages[0]["compared"] == 4 * 2 * 16 * 17, str(right)


def test_a_row_that_sees_nothing_is_zero():
    q, k, v, o, lse = case()
    o[1, 0, 3, 2] = 1e-3
    wrong = attn_diag.compare(q, k, v, o, lse, kv_lens=LENS)
    assert wrong.verdict == "diverges" and wrong.stages[0]["mismatched"] == 1
    assert [wrong.first[axis] for axis in ("batch", "head", "query", "dim")] == [1, 0, 3, 2]
    with pytest.raises(attn_diag.Error, match="Batch entry 1 has no keys"):
        wrong.diagnosis
    lse[1] = 0
    assert attn_diag.compare(q, k, v, o, lse, kv_lens=LENS).stages[0]["mismatched"] == 1 + 2 * 16


@pytest.mark.parametrize("lens, hint", [([40] * 4, "every key is seen"), ([6, 1, 40, 18], "one key more"),
                                        ([4, 0, 39, 16], "one key less"), ([5] * 4, "the length of the first")])
def test_other_lengths_that_fit_are_named(lens, hint):
    wrong = attn_diag.compare(*case(lens), kv_lens=LENS)
    assert not wrong and [kind for kind, text in wrong.pattern if hint in text] == ["hint"], wrong.pattern


def test_a_bug_is_looked_for_in_the_entry_that_is_wrong_and_files_keep_the_lengths(tmp_path):
    q, k, v, o, lse = case(mask="causal:bottom_right")
    bad = case(mask="causal:bottom_right", twice=True)[3]
    o[3] = bad[3]
    wrong = attn_diag.compare(q, k, v, o, lse, mask="causal:bottom_right", kv_lens=LENS)
    assert wrong.first["batch"] == 3
    assert wrong.diagnosis.named == ["l-twice"], str(wrong.diagnosis)
    assert "batch entry 3 by itself, with its 17 keys" in str(wrong.diagnosis)
    path = wrong.save(tmp_path / "case.safetensors")
    theirs = json.loads(command("compare", path, "--json", code=1))
    assert theirs["stages"] == wrong.stages
    assert command("diagnose", path, "--quiet", code=1).rstrip("\n") == wrong.diagnosis.headline == "NAMED: l-twice"
    # A flag goes before the file; what a flag says must fit.
    assert json.loads(command("compare", path, "--kv-lens", "5,0,40,40", "--json", code=1))["stages"] != wrong.stages
    for flag in "5,0,40", "5,0,40,41", "5,0,x,17", "5,0,40,":
        command("compare", path, "--kv-lens", flag, code=2)


def test_a_softcap_and_a_bias_go_with_lengths():
    bias = np.linspace(-2, 2, 2 * 16 * 40, dtype=np.float32).reshape(2, 16, 40)
    q, k, v, _, _ = case()
    o, lse = np.zeros_like(q), np.full(q.shape[:3], -np.inf, np.float32)
    for b, n in enumerate(LENS):
        if n:
            o[b:b + 1], lse[b:b + 1] = attention(q[b:b + 1], k[b:b + 1, :, :n], v[b:b + 1, :, :n], softcap=3.0,
                                                 bias=bias[None, :, :, :n])
    right = attn_diag.compare(q, k, v, o, lse, kv_lens=LENS, softcap=3.0, bias=bias)
    assert right, str(right)
    assert not attn_diag.compare(q, k, v, o, lse, kv_lens=LENS, softcap=3.0, bias=bias[::-1].copy())


def test_a_function_and_both_layouts():
    q, k, v = attn_diag.inputs(batch=4, heads=2, seqlen_q=16, seqlen_k=40, head_dim=16, layout="BSHD")

    def fn(q, k, v, lens=LENS):
        o, lse = by_length(*(x.transpose(0, 2, 1, 3) for x in (q, k, v)), lens)
        return o.transpose(0, 2, 1, 3), lse

    assert attn_diag.check_function(fn, q, k, v, layout="BSHD", kv_lens=LENS)
    assert not attn_diag.check_function(lambda *x: fn(*x, lens=[40] * 4), q, k, v, layout="BSHD", kv_lens=LENS)


def looked_at(lens=LENS, wrong=None):
    """A function of these lengths, which makes batch entry `wrong` with another scale; and its inputs."""
    q, k, v = case(lens)[:3]
    for b, n in enumerate(lens):
        k[b, :, n:], v[b, :, n:] = 0, 0

    def fn(q, k, v):
        o, lse = by_length(q, k, v, lens)
        if wrong is not None:
            bad_o, bad_lse = by_length(q, k, v, lens, scale=1.0)
            o[wrong], lse[wrong] = bad_o[wrong], bad_lse[wrong]
        return o, lse

    return fn, q, k, v


def test_scores_are_read_entry_by_entry():
    assert attn_diag.xray(*looked_at(), kv_lens=LENS)
    read = attn_diag.xray(*looked_at(wrong=3), kv_lens=np.array(LENS))
    assert read.verdict == "diverges" and "batch entry 3 with its 17 keys: S(0, 0, 0, 0)" in read.headline, read.headline
    assert [(one["batch"], one["keys"], one["verdict"]) for one in read.to_dict()["entries"]] == [
        (0, 5, "agrees"), (2, 40, "agrees"), (3, 17, "diverges")]
    assert "Of batch entries without keys (1)" in str(read)
    fn, q, k, v = looked_at()
    assert not attn_diag.xray(fn, q, k, v, kv_lens=[5, 0, 40, 16]), "it sees a key more"


def test_properties_are_tried_entry_by_entry():
    tried = attn_diag.properties(*looked_at(), kv_lens=LENS)
    assert tried and len(tried.to_dict()["entries"]) == 3, str(tried)
    assert any(p["verdict"] == "holds" for p in tried)

    def swaps(q, k, v):
        """Its last key belongs to the first."""
        o, lse = by_length(q, k, v, LENS)
        return o + np.float16(0.25) * v[:, :, :1], lse

    broken = attn_diag.properties(swaps, *looked_at()[1:], kv_lens=LENS)
    assert broken.verdict == "diverges" and "permuted-keys" in broken.broken, broken.broken


def test_a_sweep_tells_the_function_its_lengths():
    told = []

    def fn(q, k, v, kv_lens):
        told.append(kv_lens)
        return by_length(q, k, v, [n + (n == 33) for n in kv_lens])

    def lens(batch, keys):
        return [max(keys - 8 * b, 0) for b in range(batch)]

    swept = attn_diag.sweep(fn, dict(batch=3, heads=1, seqlen=[16, 40, 41], head_dim=8), kv_lens=lens)
    assert [row["verdict"] for row in swept] == ["agrees", "agrees", "diverges"], str(swept)
    assert told[0] == [16, 8, 0] and "kv_lens 41,33,25" in str(swept)


def test_smaller_cases_have_other_lengths():
    with pytest.raises(attn_diag.Error, match="the batch entry b that is wrong by itself"):
        attn_diag.shrink(*looked_at(), kv_lens=LENS)
    with pytest.raises(attn_diag.Error, match="No batch entry of kv_lens has keys"):
        attn_diag.xray(*looked_at([0] * 4), kv_lens=[0] * 4)


def test_what_does_not_fit_is_refused():
    arrays = case()
    with pytest.raises(attn_diag.Error, match="kv_lens has 3 numbers; expected one for each of 4"):
        attn_diag.compare(*arrays, kv_lens=LENS[1:])
    with pytest.raises(attn_diag.Error, match="kv_lens has 3 numbers"):
        attn_diag.xray(*looked_at(), kv_lens=LENS[1:])
    with pytest.raises(attn_diag.Error, match="kv_lens has 41; expected 0 to 40"):
        attn_diag.compare(*arrays, kv_lens=[41, 1, 1, 1])
    q, k, v = attn_diag.inputs(batch=4, heads=2, seqlen=16, head_dim=16)
    with pytest.raises(attn_diag.Error, match="there are two such masks: by the first query"):
        attn_diag.compare(q, k, v, q, mask="causal", kv_lens=[4, 4, 4, 4])
