"""trace_lines: of right kernels nothing, of planted bugs the line; what cannot be looked at is said."""

import importlib.util
import math
import os
import pathlib

os.environ["TRITON_INTERPRET"] = "1"

import attn_diag  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

KERNELS = pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "triton"
NAMES = sorted(path.stem for path in KERNELS.glob("*.py"))
SIZES = {"heads": 2, "seqlen": 48, "head_dim": 16, "dtype": "fp32", "seed": 1}


def traced(name, tmp_path, *edits):
    """A kernel of fixtures/triton with (what stands there, what instead)."""
    pytest.importorskip("triton")
    text = (KERNELS / f"{name}.py").read_text(encoding="utf-8")
    line = 0
    for old, new in edits:
        assert text.count(old) == 1, old
        line = text[:text.index(old)].count("\n") + 1
        text = text.replace(old, new)
    path = tmp_path / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    case = dict(module.CASE)
    inputs = attn_diag.inputs("randn", framework="torch", seed=1, **case.pop("sizes"))
    return attn_diag.trace_lines(module.attention, *map(with_room_behind, inputs), **case), line


def with_room_behind(tensor):
    """The same numbers: who reads past their end reads zeros, and not whatever lies there."""
    room = tensor.new_zeros(3 * tensor.numel())
    room[:tensor.numel()] = tensor.flatten()
    return room[:tensor.numel()].view(tensor.shape)


@pytest.mark.parametrize("name", NAMES)
def test_right_kernels(name, tmp_path):
    result, _ = traced(name, tmp_path)
    assert (result.verdict, result.answer, result.suspects, result.line) == ("agrees", "none", [], "")
    assert any(role["holds"].startswith("scores") for role in result.roles)
    assert any(role["holds"] == "o: weighted sums of v" for role in result.roles)


def test_rescale_is_missing(tmp_path):
    result, line = traced("forward", tmp_path, ("acc = acc * alpha[:, None]", "pass"))
    assert result.verdict == "diverges"
    assert "relative to different maxima" in result.line
    assert result.suspects[0]["line"] in (line - 1, line, line + 1)
    assert result.to_dict()["line_divergence"]["suspects"] == result.suspects


@pytest.mark.parametrize("name, old, new", [
    ("forward", "* scale\n", "\n"),
    ("forward", "cols[None, :] <= offs_m[:, None]", "cols[None, :] < offs_m[:, None]"),
    ("alibi", "logits - slope", "logits + slope"),
    ("window", "keys[None, :] <= window)", "keys[None, :] < window)"),
    ("split_k", "p = tl.exp(s - m_new)", "p = tl.exp2(s - m_new)"),
    ("paged", "(length + PAGE_SIZE - 1) // PAGE_SIZE", "length // PAGE_SIZE"),
    ("gqa", "K += kv_h * stride_kh", "K += h * stride_kh"),
])
def test_line(name, old, new, tmp_path):
    result, line = traced(name, tmp_path, (old, new))
    assert result.verdict == "diverges"
    assert line in [suspect["line"] for suspect in result.suspects[:3]], (line, result.suspects)


@pytest.mark.parametrize("name, old, new, said", [
    # A program's index that nobody takes, so that programs do the same.
    ("alibi", "block = tl.program_id(0)", "block = tl.program_id(1)", "the 3 programs along index 0 do the same"),
    ("forward_exp2", "off_hz = tl.program_id(1)", "off_hz = tl.program_id(2)", "the 4 programs along index 1 do the same"),
    # In a function that the kernel calls.
    ("forward_exp2", "k_ptrs += BLOCK_N * stride_kn", "k_ptrs += BLOCK_N", "was added before"),
    ("forward_exp2", "m_ij = tl.maximum(m_i,", "m_ij = tl.minimum(m_i,", ""),
    # Masks: of the row of q, of one row too many, of a key that is not there.
    ("alibi", "q = tl.load(q_ptr + head_offset + rows[:, None] * stride_n + dims[None, :], mask=rows[:, None] < seqlen",
     "q = tl.load(q_ptr + head_offset + rows[:, None] * stride_n + dims[None, :], mask=rows[:, None] < slope", ""),
    ("split_k", "valid = keys < end", "valid = keys <= end", "outside of every tensor"),
    ("paged", "i * PAGE_SIZE + slots < length", "i * PAGE_SIZE + slots <= length", ""),
    # Elements that are right by luck say nothing about the others.
    ("alibi", "for lo in range(0, hi, BLOCK_N)", "for lo in range(1, hi, BLOCK_N)", "lacks key 0"),
    ("alibi", "slope = tl.load(slopes_ptr + head)", "slope = tl.load(v_ptr + head)", ""),
    ("split_k", "m = tl.load(part_m_ptr + row * num_parts + offs_p", "m = tl.load(part_m_ptr + row + offs_p", "different query rows"),
])
def test_the_line_comes_first(name, old, new, said, tmp_path):
    result, line = traced(name, tmp_path, (old, new))
    assert result.verdict == "diverges" and said in result.line + result.to_dict()["line_divergence"]["what"]
    assert line == result.suspects[0]["line"], (line, result.suspects[:3])


@pytest.mark.parametrize("name, deleted, beside", [
    ("split_k", "m = m_new", (-1, 1)),          # a maximum that stays -inf
    ("gqa", "m_prev = m_curr", (-1, 1)),
    ("forward_exp2", "v_ptrs += BLOCK_N * stride_vn", (-1, 2)),  # a pointer that stays where it is
    ("window", 'scores += tl.where(in_window, 0.0, float("-inf"))', (-1, 1)),
    ("forward", "acc += tl.dot(p.to(v.dtype), v)", (-1, 1)),
    ("forward", "acc = acc / l_i[:, None]", (-2, 1)),
])
def test_beside_what_is_missing(name, deleted, beside, tmp_path):
    result, line = traced(name, tmp_path, (deleted, "pass"))
    assert result.verdict == "diverges"
    assert result.suspects[0]["line"] - line in beside, (line, result.suspects[:3])


def test_outside_of_memory(tmp_path):
    """An access outside of what the kernel was given is told, and not done."""
    result, line = traced("forward", tmp_path, ("head * stride_oh + offs_m", "head * stride_oh * 100000 + offs_m"))
    assert result.verdict == "diverges"
    assert "outside of every tensor" in result.line
    assert line in [suspect["line"] for suspect in result.suspects[:3]]


def test_compiled_kernel_is_said():
    torch = pytest.importorskip("torch")
    q, k, v = attn_diag.inputs("randn", framework="torch", **SIZES)
    result = attn_diag.trace_lines(torch.nn.functional.scaled_dot_product_attention, q, k, v, mask="causal")
    assert (result.verdict, result.answer, result.suspects) == ("diverges", "not_looked", [])
    assert "scaled_dot_product" in result.reason


def test_other_frameworks_are_said():
    pytest.importorskip("jax")
    q, k, v = attn_diag.inputs("randn", framework="jax", **SIZES)
    result = attn_diag.trace_lines(lambda q, k, v: v, q, k, v)
    assert result.answer == "not_looked" and "PyTorch" in result.reason


def flash(q, k, v, first=1.0, wrong_mask=0):
    tile = 16
    o = np.empty(q.shape, dtype=np.float32)
    for start in range(0, q.shape[2], tile):
        rows = start + np.arange(tile)
        m = np.full((*q.shape[:2], tile), -np.inf, dtype=np.float32)
        l = np.zeros(m.shape, dtype=np.float32)
        acc = np.zeros((*m.shape, q.shape[3]), dtype=np.float32)
        for begin in range(0, start + tile, tile):
            cols = begin + np.arange(tile)
            s = q[:, :, rows] @ np.swapaxes(k[:, :, cols], -1, -2) / math.sqrt(q.shape[3])
            s = np.where(cols[None, :] <= rows[:, None] + wrong_mask, s, -np.inf)
            m_new = np.maximum(m, s.max(axis=-1))
            alpha = np.exp(m - m_new) * first
            p = np.exp(s - m_new[..., None])
            l = l * alpha + p.sum(axis=-1)
            acc = acc * alpha[..., None] + p @ v[:, :, cols]
            m = m_new
        o[:, :, rows] = acc / l[..., None]
    return o


def line_of(text):
    source = pathlib.Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(source, 1) if line.strip().startswith(text))


def test_numpy():
    arrays = attn_diag.inputs("randn", **SIZES)
    right = attn_diag.trace_lines(flash, *arrays, mask="causal")
    assert (right.verdict, right.answer) == ("agrees", "none")
    wrong = attn_diag.trace_lines(lambda *qkv: flash(*qkv, wrong_mask=1), *arrays, mask="causal")
    assert wrong.suspects[0]["line"] == line_of("s = np.where(cols")
    wrong = attn_diag.trace_lines(lambda *qkv: flash(*qkv, first=2.0), *arrays, mask="causal")
    assert line_of("alpha = np.exp") in [s["line"] for s in wrong.suspects[:3]]
    assert np.exp(np.float32(0)) == 1 and type(np.zeros(1)) is np.ndarray  # nothing stays patched


def test_torch():
    torch = pytest.importorskip("torch")

    def attention(q, k, v, scale):
        s = q @ k.transpose(-1, -2) * scale
        i = torch.arange(s.shape[-1])
        s = s.masked_fill(i[None, :] > i[:, None], float("-inf"))
        return torch.softmax(s, dim=-1) @ v

    arrays = attn_diag.inputs("randn", framework="torch", **SIZES)
    right = attn_diag.trace_lines(lambda *qkv: attention(*qkv, 0.25), *arrays, mask="causal")
    assert (right.verdict, right.answer) == ("agrees", "none")
    wrong = attn_diag.trace_lines(lambda *qkv: attention(*qkv, 0.125), *arrays, mask="causal")
    assert wrong.suspects[0]["line"] == line_of("s = q @ k.transpose")


def test_what_it_does_not_know_is_no_claim():
    torch = pytest.importorskip("torch")

    def attention(q, k, v):
        s = q @ k.transpose(-1, -2) * 0.25
        return torch.cumsum(torch.softmax(s, dim=-1), dim=-1) @ v

    result = attn_diag.trace_lines(attention, *attn_diag.inputs("randn", framework="torch", **SIZES))
    assert result.verdict == "diverges" and result.answer == "unsure"
