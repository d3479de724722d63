"""sweep(): a verdict a case, a log that is gone on with and never of another function."""

import json

import pytest

import attn_diag
from attention import attention, forgets_beyond_64

SIZES = dict(seqlen=[1, 63, 64, 65, 100], head_dim=16)


def test_a_grid_has_a_row_for_each_case_and_the_smallest_failure_first():
    swept = attn_diag.sweep(forgets_beyond_64, {**SIZES, "heads": [1, 4], "kv_heads": [1, 2]}, dtypes=["fp16", "bf16"])
    # heads 1 with kv_heads 2 is no case.
    assert len(swept) == 5 * 3 * 2 and swept.verdict == "diverges" and not swept
    wrong = {row["case"]["seqlen_k"] for row in swept if row["verdict"] == "diverges"}
    assert wrong == {65, 100}
    assert all(row["err_over_bound"] > 1 for row in swept if row["verdict"] == "diverges")
    assert all(row["err_over_bound"] <= 1 for row in swept if row["verdict"] == "agrees")
    assert swept.headline == "DIVERGES: forgets_beyond_64 in 30 cases: 18 agree, 12 diverge"
    first = swept.failures[0]["case"]
    assert (first["heads"], first["seqlen_k"]) == (1, 65)
    lines = str(swept).splitlines()
    assert len(lines) == 32 and "Sq=65 Sk=65" in str(swept)
    assert swept.to_dict()["rows"] == swept.rows and json.loads(swept.to_json()) == swept.to_dict()


def test_a_right_function_agrees_with_every_mask():
    def fn(q, k, v, mask):
        return attention(q, k, v, causal=mask == "causal")

    swept = attn_diag.sweep(fn, [dict(seqlen=40), dict(seqlen_q=3, seqlen_k=40)], masks=["none", "causal"])
    assert swept and len(swept) == 3, str(swept)  # two causal masks are possible of 3 and 40
    with pytest.raises(attn_diag.Error, match="no parameter `mask`"):
        attn_diag.sweep(attention_alone, SIZES, masks=["none", "causal"])
    wrong = attn_diag.sweep(attention_alone, SIZES, masks="causal")
    assert wrong.count("diverges") == 4  # of one query and one key the mask does nothing


def attention_alone(q, k, v):
    return attention(q, k, v)


def test_what_is_raised_is_a_row():
    def fn(q, k, v):
        if k.shape[-2] == 1:
            raise NotImplementedError("one key")
        if k.shape[-2] == 63:
            raise RuntimeError("no tile of 63\nand more")
        return attention(q, k, v)

    swept = attn_diag.sweep(fn, SIZES)
    verdicts = {row["case"]["seqlen_k"]: row["verdict"] for row in swept}
    assert verdicts == {1: "unsupported", 63: "raised", 64: "agrees", 65: "agrees", 100: "agrees"}
    assert swept.verdict == "could_not_compare" and not swept
    assert swept.failures[0]["what"] == "RuntimeError: no tile of 63"
    assert attn_diag.sweep(fn, SIZES, unsupported=(RuntimeError,)).agrees  # NotImplementedError is one
    with pytest.raises(KeyboardInterrupt):
        attn_diag.sweep(interrupts, SIZES)


def interrupts(q, k, v):
    raise KeyboardInterrupt


def test_an_output_that_does_not_fit_could_not_be_compared():
    swept = attn_diag.sweep(lambda q, k, v: attention(q, k, v)[0][..., 1:, :], dict(seqlen=8))
    assert swept.verdict == "could_not_compare" and "o has 7" in swept.rows[0]["what"], swept.rows


def test_a_sample_is_drawn_by_its_seed():
    grid = dict(seqlen=range(1, 40), head_dim=[8, 16])
    one, same, other = (attn_diag.sweep(attention_alone, grid, sample=5, sample_seed=s) for s in (3, 3, 4))
    cases = [[row["case"] for row in swept] for swept in (one, same, other)]
    assert len(one) == 5 and cases[0] == cases[1] != cases[2]


def test_a_log_is_gone_on_with(tmp_path):
    path, calls = tmp_path / "log.jsonl", []

    def fn(q, k, v):
        calls.append(k.shape[-2])
        if k.shape[-2] == 65 and len(calls) < 8:
            raise KeyboardInterrupt
        return attention(q, k, v)

    with pytest.raises(KeyboardInterrupt):
        attn_diag.sweep(fn, SIZES, log=path, runs=1)
    rows = path.read_text().splitlines()
    assert len(rows) == 1 + 3  # 1, 63 and 64
    path.write_text("\n".join(rows) + '\n{"case": {"batch"')  # and one that was cut off
    calls += [0] * 8
    begin = len(calls)
    swept = attn_diag.sweep(fn, SIZES, log=path, runs=1)
    assert swept and len(swept) == 5 and set(calls[begin:]) == {65, 100}
    assert len(path.read_text().splitlines()) == 1 + 5
    begin = len(calls)
    assert attn_diag.sweep(fn, SIZES, log=path, runs=1).rows == swept.rows and len(calls) == begin


def test_a_log_of_another_function_is_refused(tmp_path):
    path, module = tmp_path / "log.jsonl", tmp_path / "mine_to_sweep.py"
    text = "from attention import attention\ndef fn(q, k, v):\n    return attention(q, k, v)\n"

    def load():
        module.write_text(text)
        space = {"__name__": "mine_to_sweep"}
        exec(compile(text, str(module), "exec"), space)
        return space["fn"]

    assert attn_diag.sweep(load(), dict(seqlen=8), log=path)
    assert attn_diag.sweep(load(), dict(seqlen=[8, 9]), log=path)
    with pytest.raises(attn_diag.Error, match="other options"):
        attn_diag.sweep(load(), dict(seqlen=8), log=path, runs=3)
    text += "# edited\n"
    with pytest.raises(attn_diag.Error, match="source file was changed"):
        attn_diag.sweep(load(), dict(seqlen=8), log=path)
    (tmp_path / "no.jsonl").write_text("what\n")
    with pytest.raises(attn_diag.Error, match="no log of a sweep"):
        attn_diag.sweep(load(), dict(seqlen=8), log=tmp_path / "no.jsonl")


def test_words_that_are_none_are_refused():
    for shapes, said, match in ((dict(seq=3), {}, "'seq' is no size"), (SIZES, dict(kinds="prob"), "'prob' is no kind"),
                                (dict(heads=2, kv_heads=3), {}, "no case"), (SIZES, dict(dtypes="fp8"), "fp8")):
        with pytest.raises(attn_diag.Error, match=match):
            attn_diag.sweep(attention_alone, shapes, **said)


def test_progress_is_told():
    lines = []
    attn_diag.sweep(attention_alone, SIZES, progress=lines.append)
    assert len(lines) == 5 and lines[0].startswith("1/5 B=1 H=2 Sq=1 Sk=1 D=16 fp16 none randn")
