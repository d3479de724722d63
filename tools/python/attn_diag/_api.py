"""The functions of the package and what they return."""

from __future__ import annotations

import json
import os
import shlex
from functools import cached_property
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from . import _arrays, _native
from ._entries import Entries, each
from ._html import comparison_html

Function = Callable[[Any, Any, Any], Any]
Json = Dict[str, Any]


class Result:
    """What was found. True where it agrees."""

    _rendered: _native.Rendered

    @property
    def verdict(self) -> str:
        """"agrees", "diverges" or "could_not_compare": the command's exit codes 0, 1 and 2."""
        return self._rendered.verdict

    @property
    def agrees(self) -> bool:
        return self.verdict == "agrees"

    @property
    def headline(self) -> str:
        """One line, with the verdict first."""
        return self._rendered.headline

    def to_json(self) -> str:
        """The JSON of the command (docs/reports.md), one line."""
        return self._rendered.json

    def to_dict(self) -> Json:
        """The same, parsed. Numbers that JSON has not are "nan", "inf" and "-inf"."""
        parsed: Json = json.loads(self._rendered.json)
        return parsed

    def __bool__(self) -> bool:
        return self.agrees

    def __str__(self) -> str:
        return self._rendered.text.rstrip("\n")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.headline}>"


class Comparison(Result):
    """o, and lse where it is given, against the fp64 reference, each cell within its rounding bound."""

    def __init__(self, case: _native.Case, subject: str, atol: Optional[float], rtol: Optional[float], threads: int):
        self._case, self._subject, self._atol, self._rtol, self._threads = case, subject, atol, rtol, threads
        self._compared = _native.Compared(case, subject, atol, rtol, threads)
        self._file = ""

    @property
    def _rendered(self) -> _native.Rendered:  # type: ignore[override]
        return self._compared.rendered(self._file, self.reproduce)

    def _line(self, command: str) -> str:
        if not self._file:
            return ""
        words = ["attn-diag", command, self._file]
        for flag, value in (("--atol", self._atol), ("--rtol", self._rtol)):
            words += [] if value is None else [flag, repr(value)]
        return shlex.join(words)

    @property
    def reproduce(self) -> str:
        """The shell line that judges the case again; empty before save()."""
        return self._line("compare")

    @property
    def problem(self) -> Json:
        """Sizes, dtype, layout, mask and softmax_scale, as they were understood."""
        parsed: Json = json.loads(self._case.problem)
        return parsed

    @property
    def first(self) -> Optional[Json]:
        """The first wrong cell: stage, tensor, batch, head, query, dim (of o), actual, expected, bound."""
        return self._compared.first()

    @property
    def stages(self) -> List[Json]:
        """The table: a stage each with its tensors, what was compared, mismatched, and by how much."""
        stages: List[Json] = self.to_dict()["stages"]
        return stages

    @cached_property
    def pattern(self) -> List[Tuple[str, str]]:
        """Sentences about the wrong cells: ("wrong" | "exact" | "hint", text). None with a bias or a softcap; with kv_lens
        hints alone: other lengths with which all is right."""
        return self._compared.pattern()

    @cached_property
    def diagnosis(self) -> "Diagnosis":
        """The name of the bug, looked for when first asked."""
        return self._diagnose()

    def _diagnose(self, **options: Any) -> "Diagnosis":
        options = {"tile": None, "num_splits": 0, "pairs": True, "why_not": [], **options}
        native = _native.Diagnosed(self._case, self._subject, self._atol, self._rtol, threads=self._threads, **options)
        return Diagnosis(native, lambda: (self._file, self._line("diagnose")))

    def save(self, path: Union[str, "os.PathLike[str]"], force: bool = False) -> str:
        """Writes q, k, v, o, lse, bias and what was said of them to a .safetensors file, which `attn-diag compare
        FILE` and `attn-diag diagnose FILE` judge as this does. Returns the path.

        OSError where it cannot be written, FileExistsError where it exists and `force` is false.
        """
        path = os.fspath(path)
        if not path.endswith(".safetensors"):
            raise ValueError(f"the path is {path!r}; expected one that ends in .safetensors")
        try:
            self._case.write(path, force)
        except _native.Error as error:
            there = os.path.exists(path) and not force
            raise (FileExistsError if there else OSError)(str(error)) from None
        self._file = path
        return path

    def to_html(self) -> str:
        """A part of a page that needs nothing else: the verdict and a map of error over bound by query and head."""
        return comparison_html(self)

    _repr_html_ = to_html


class Diagnosis(Result):
    """Which known bug reproduces the wrong numbers, and which do not."""

    def __init__(self, native: _native.Diagnosed, where: Callable[[], Tuple[str, str]]):
        self._native, self._where = native, where

    @property
    def _rendered(self) -> _native.Rendered:  # type: ignore[override]
        return self._native.rendered(*self._where())

    @property
    def finding(self) -> str:
        """"nothing_wrong", "named", "class", "partial", "unknown", "not_a_formula", "not_judged" or "disputed"."""
        return self._native.verdict

    @property
    def named(self) -> List[str]:
        """The bug, "temperature(kappa = softmax_scale)"; several that these inputs cannot tell apart; or none."""
        return self._native.named


class Xray(Result):
    """Scores and weights that were read out of the o and lse of a function, against the reference."""

    def __init__(self, rendered: Union[_native.Rendered, Entries]):
        self._rendered = rendered  # type: ignore[assignment]


class Properties(Result):
    """What holds of attention whatever the numbers, tried on a function."""

    def __init__(self, rendered: Union[_native.Rendered, Entries]):
        self._rendered = rendered  # type: ignore[assignment]

    def __iter__(self) -> Any:
        """A dict each, with kv_lens of every batch entry: name, statement, verdict ("holds", "broken", "explained", "not_tried"), why_not_tried, ..."""
        found = self.to_dict()
        return iter([p for one in found.get("entries", [found]) for p in one["properties"]])

    @property
    def broken(self) -> List[str]:
        return list(dict.fromkeys(p["name"] for p in self if p["verdict"] == "broken"))


def _lengths(kv_lens: Any) -> Optional[List[int]]:
    """Of a sequence of int, or of an array of integers of any framework."""
    if kv_lens is None:
        return None
    return [int(n) for n in (kv_lens.tolist() if hasattr(kv_lens, "tolist") else kv_lens)]


def _case(arrays: Json, layout: Optional[str], dtype: Optional[str], scale: Optional[float], mask: Optional[str],
          softcap: Optional[float] = None, kv_lens: Any = None) -> _native.Case:
    memory = {role: _arrays.exported(role, x) for role, x in arrays.items() if x is not None}
    return _native.Case(memory, layout=layout, dtype=dtype, scale=scale, mask=mask, softcap=softcap,
                        kv_lens=_lengths(kv_lens))


def compare(q: Any, k: Any, v: Any, o: Any, lse: Any = None, *, mask: Optional[str] = None,
            scale: Optional[float] = None, layout: Optional[str] = None, softcap: Optional[float] = None,
            bias: Any = None, kv_lens: Any = None, dtype: Optional[str] = None, atol: Optional[float] = None,
            rtol: Optional[float] = None, threads: int = 0) -> Comparison:
    """Judges what a kernel made of q, k and v, as `attn-diag compare FILE` does.

    Memory is row-major in the order of `layout`, or any strides over it:

        q     [B, H, Sq, D]       BHSD, or [B, Sq, H, D] BSHD; without batch, or without batch and heads
        k     [B, Hkv, Sk, D]     likewise; H / Hkv query heads share one
        v     [B, Hkv, Sk, Dv]    likewise
        o     [B, H, Sq, Dv]      likewise
        lse   [B, H, Sq]          natural logarithm, -inf for a row that sees no key
        bias  [Sq, Sk], [H, Sq, Sk] or [B, H, Sq, Sk], 1 where shared: added to the scaled scores

    mask     "none", "causal" (where Sq = Sk), "causal:top_left", "causal:bottom_right" or "window:LEFT,RIGHT"
    scale    what q.k is multiplied by; 1 / sqrt(D)
    layout   "BHSD" or "BSHD"; what fits the shapes and lse, BHSD if both do
    softcap  scores are softcap * tanh(score / softcap)
    kv_lens  [B] integers: batch entry b sees its first kv_lens[b] keys, and is judged as if it had no others: causal
             masks of alignment bottom_right, and windows, end at its own last key. 0: o is 0 and lse -inf
    dtype    "fp16", "bf16" or "fp32": what the kernel computed with, where q, k and v are wider copies of that
    atol, rtol  judge by |a - r| <= atol + rtol * |r|, and not by the rounding bound
    threads  0: all cores

    What is left out is assumed and said so in the result's text. Raises Error, a ValueError, where arrays do not fit
    together, and TypeError for what is no array of floats.
    """
    arrays = {"q": q, "k": k, "v": v, "o": o, "lse": lse, "bias": bias}
    return Comparison(_case(arrays, layout, dtype, scale, mask, softcap, kv_lens), "o", atol, rtol, threads)


def diagnose(q: Any, k: Any, v: Any, o: Any, lse: Any = None, *, tile: Optional[Tuple[int, int]] = None,
             num_splits: int = 0, pairs: bool = True, why_not: Sequence[str] = (), **said: Any) -> Diagnosis:
    """The name of the bug, as `attn-diag diagnose FILE` finds it. Arrays and `said` are those of compare().

    tile        queries and keys of a tile, as the kernel cuts them; else the usual ones are tried
    num_splits  parts of the keys, likewise; 0: not known
    pairs       also look for pairs of bugs where no single one explains all
    why_not     ids of the catalogue: how these fail to explain it
    """
    return compare(q, k, v, o, lse, **said)._diagnose(tile=tile, num_splits=num_splits, pairs=pairs,
                                                      why_not=list(why_not))


def _example(fn: Function, q: Any, k: Any, v: Any, said: Json) -> Tuple[str, Any, _native.Case]:
    """The function's name, as the harness calls it, and a case that it computed."""
    layout = said.get("layout") or "BHSD"
    o, lse = _arrays.outputs(fn(_arrays.copied(q), _arrays.copied(k), _arrays.copied(v)))
    case = _case({"q": q, "k": k, "v": v, "o": o, "lse": lse}, layout, None, said.get("scale"), said.get("mask"),
                 kv_lens=said.get("kv_lens"))
    dtype = json.loads(case.problem)["dtype"]
    name = getattr(fn, "__qualname__", type(fn).__qualname__)
    return name, _arrays.adapted(fn, q, k, v, dtype, layout), case


def _by_entry(fn: Function, q: Any, k: Any, v: Any, said: Json, kv_lens: Any,
              look: Callable[..., _native.Rendered]) -> Entries:
    lens = _lengths(kv_lens) or []
    _example(fn, q, k, v, {**said, "kv_lens": lens})  # what does not fit together is refused
    return each(fn, {"q": q, "k": k, "v": v}, said["layout"], lens,
                lambda of_entry, own: look(*_example(of_entry, own["q"], own["k"], own["v"], said)))


def check_function(fn: Function, q: Any, k: Any, v: Any, *, runs: int = 3, mask: Optional[str] = None,
                   scale: Optional[float] = None, layout: str = "BHSD", kv_lens: Any = None,
                   atol: Optional[float] = None, rtol: Optional[float] = None, threads: int = 0) -> Comparison:
    """Calls fn(q, k, v) -> o or (o, lse) `runs` times on the same inputs and judges what comes out.

    A result that moves by more than rounding can take two runs is a divergence (a race, memory that nobody wrote), as
    is an input that fn writes. fn gets copies of q, k and v in their framework, type, layout and device; it computes
    `mask`, `scale` and `kv_lens` by itself, and here they say what is right.
    """
    name, call, case = _example(fn, q, k, v, {"mask": mask, "scale": scale, "layout": layout, "kv_lens": kv_lens})
    return Comparison(_native.run_again(name, call, case, runs), name, atol, rtol, threads)


def xray(fn: Function, q: Any, k: Any, v: Any, *, mask: Optional[str] = None, scale: Optional[float] = None,
         layout: str = "BHSD", kv_lens: Any = None, atol: Optional[float] = None, rtol: Optional[float] = None,
         properties: bool = False) -> Xray:
    """Reads the scores and weights of fn out of what it returns for one-hot v, ceil(Sk / Dv) calls (docs/xray.md).

    With kv_lens each batch entry is looked at by itself, with its own keys, while the others stay as they are: that
    takes as many calls for each. fn computes with these lengths by itself; here they say what is right.
    """
    said = {"mask": mask, "scale": scale, "layout": layout}
    if kv_lens is not None:
        return Xray(_by_entry(fn, q, k, v, said, kv_lens,
                             lambda name, call, case: _native.xray(name, call, case, atol, rtol, properties)))
    name, call, case = _example(fn, q, k, v, said)
    return Xray(_native.xray(name, call, case, atol, rtol, properties))


def properties(fn: Function, q: Any, k: Any, v: Any, *, mask: Optional[str] = None, scale: Optional[float] = None,
               layout: str = "BHSD", kv_lens: Any = None) -> Properties:
    """Tries on fn what holds of attention whatever the numbers, such as that permuted keys change nothing.

    A property that needs another mask than fn computes, or other sizes than it takes, is not tried, and says why. With
    kv_lens they are tried on each batch entry by itself, as xray() looks at it.
    """
    said = {"mask": mask, "scale": scale, "layout": layout}
    if kv_lens is not None:
        return Properties(_by_entry(fn, q, k, v, said, kv_lens, _native.properties))
    return Properties(_native.properties(*_example(fn, q, k, v, said)))


def inputs(kind: str = "randn", *, batch: int = 1, heads: int = 2, kv_heads: Optional[int] = None, seqlen: int = 128,
           seqlen_q: Optional[int] = None, seqlen_k: Optional[int] = None, head_dim: int = 64,
           head_dim_v: Optional[int] = None, dtype: str = "fp16", layout: str = "BHSD", mask: str = "none",
           scale: Optional[float] = None, seed: int = 0, input_scale: float = 1.0, framework: str = "numpy",
           device: Any = None) -> Tuple[Any, Any, Any]:
    """q, k and v as `attn-diag --inputs KIND` makes them (docs/inputs.md), the same numbers everywhere.

    framework  "numpy" (bf16 by ml_dtypes), "torch" or "jax"; device: of the latter two
    """
    queries, keys = seqlen_q or seqlen, seqlen_k or seqlen
    sizes = (batch, heads, kv_heads or heads, queries, keys, head_dim, head_dim_v or head_dim)
    memory = _native.inputs(kind, sizes, dtype, layout, mask, scale, seed, input_scale)
    of = _arrays.shapes(sizes, layout)
    q, k, v = (_arrays.made(framework, part, dtype, of[role], device) for role, part in zip("qkv", memory))
    return q, k, v


def input_kinds() -> Dict[str, str]:
    """What inputs() makes, and what each is good for."""
    return _native.input_kinds()
