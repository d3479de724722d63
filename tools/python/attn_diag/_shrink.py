"""The smallest case in which a function fails as it does in a larger one, and a test of it."""

from __future__ import annotations

import json
import math
import os
import re
from functools import cached_property
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from . import _arrays, _native
from ._api import Comparison, Diagnosis, Function, Json, Result, _example
from ._progress import Progress

_MOST_NUMBERS = 400  # more are no test that somebody reads


class Shrunk(Result):
    """The smallest case. True where the function agrees in the case as it was given: then there is none."""

    def __init__(self, native: _native.Shrunk, name: str, fn: Function, like: Any, said: Json, given: Comparison):
        self._native, self._name, self._said = native, name, said
        self._fn_module = getattr(fn, "__module__", None)
        self._framework, self._dtype, self._rank = _arrays.framework_of(like), str(like.dtype).split(".")[-1], len(like.shape)
        self._file = ""
        self.given = given  # the comparison of the case as it was given
        # At the smallest sizes, with the numbers as they were: with zeros and ones alone many bugs look the same.
        self.comparison: Optional[Comparison] = None
        if native.sized is not None:
            self.comparison = Comparison(native.sized, name, said["atol"], said["rtol"], 0)

    @property
    def verdict(self) -> str:
        return "diverges" if self._native.fails else "agrees"

    @property
    def headline(self) -> str:
        """"SMALLEST: B=1 H=1 Sq=1 Sk=65 ..., o is wrong", or "AGREES: ..."."""
        return self._native.headline

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    def to_dict(self) -> Json:
        """The JSON of `attn-diag shrink`, without tiles; "file" and "test" (both may be null)."""
        return {**self._parsed, "file": self._file or None, "test": self.test or None}

    @cached_property
    def _parsed(self) -> Json:
        parsed: Json = json.loads(self._native.json)
        return parsed

    @property
    def problem(self) -> Json:
        """Sizes, dtype, layout, mask and softmax_scale of the smallest."""
        found: Json = self._parsed["smallest"]["problem"]
        return found

    @property
    def passes(self) -> Dict[str, Optional[int]]:
        """By name of a size the largest below the smallest case's that passes: {"seqlen_k": 64, ...}; None: none was seen."""
        return {size["name"]: size["largest_passing"] for size in self._parsed["sizes"]}

    @property
    def arrays(self) -> Tuple[Any, Any, Any]:
        """q, k and v of the smallest, as numpy has them (bf16 by ml_dtypes)."""
        of = self._shapes()
        dtype = self.problem["dtype"]
        parts = []
        for role, elements in zip("qkv", self._native.elements):
            array = _arrays.zeros(dtype, of[role])
            for at, value in elements:
                array.reshape(-1)[at] = value
            parts.append(array)
        return parts[0], parts[1], parts[2]

    @property
    def diagnosis(self) -> Optional[Diagnosis]:
        """Of the smallest sizes, with the numbers as they were; None where the function agrees."""
        return None if self.comparison is None else self.comparison.diagnosis

    def save(self, path: Union[str, "os.PathLike[str]"], force: bool = False) -> str:
        """Writes the case of the smallest sizes, with the numbers as they were, as Comparison.save() does: `attn-diag diagnose
        FILE` repeats it."""
        if self.comparison is None:
            raise ValueError("the function agrees: there is no smallest case that could be saved")
        self._file = self.comparison.save(path, force)
        return self._file

    @property
    def test(self) -> str:
        """A pytest test that fails as long as the function is not mended; empty where it agrees."""
        return "" if not self._native.fails else _test_of(self)

    def _shapes(self) -> Dict[str, Tuple[int, ...]]:
        p = self.problem
        sizes = [p[key] for key in ("batch", "heads", "kv_heads", "seqlen_q", "seqlen_k", "head_dim", "head_dim_v")]
        return _arrays.shapes(sizes, p["layout"], self._rank)

    def __str__(self) -> str:
        lines = [self._native.text.rstrip("\n")]
        if not self._native.fails:
            return lines[0]
        assert self.comparison is not None
        lines += [f"  {line}" for line in _named(self)]
        if self._file:
            lines.append(f"  {self._file} has it, with the numbers as they were: {self.comparison._line('diagnose')}")
        lines += ["", "  A test that fails:", ""]
        lines += [f"    {line}".rstrip() for line in self.test.splitlines()]
        return "\n".join(lines)


def _named(shrunk: Shrunk) -> List[str]:
    """What diagnose says of the smallest and of the given case, where that is not the same: it may be another bug."""
    comparison = shrunk.comparison
    assert comparison is not None
    if comparison.agrees:
        return ["Note: run once more, or judged as arrays of which nothing else is known, it agrees."]
    smallest, given = comparison.diagnosis, shrunk.given.diagnosis
    lines = [f"Of the case as it was given: {given.headline}"]
    ids = [{label.partition("(")[0] for label in found.named} for found in (smallest, given)]
    if not ids[0] & ids[1]:
        lines.append(f"Of the smallest sizes: {smallest.headline}")
        if given.named:
            lines.append("Note: this may be another bug than that of the case as it was given; hold=[...] keeps sizes "
                         "as they are.")
    return lines


def _number(x: float) -> str:
    return f"float({str(x)!r})" if math.isnan(x) or math.isinf(x) else repr(int(x) if x == int(x) and x else x)


def _filled(framework: str, dtype: str, role: str, shape: Sequence[int], elements: List[Tuple[int, float]]) -> List[str]:
    at = "[" + ", ".join(str(i) for i, _ in elements) + "]"
    values = "[" + ", ".join(_number(x) for _, x in elements) + "]"
    size = tuple(shape)
    if framework == "torch":
        lines = [f"{role} = torch.zeros({size}, dtype=torch.{dtype})"]
        return lines + ([f"{role}.view(-1)[{at}] = torch.tensor({values}, dtype=torch.{dtype})"] if elements else [])
    if framework == "jax":
        lines = [f"{role} = jnp.zeros({size}, jnp.{dtype})"]
        put = f"{role} = {role}.ravel().at[jnp.array({at})].set(jnp.array({values}, jnp.{dtype})).reshape({size})"
        return lines + ([put] if elements else [])
    kind = f"ml_dtypes.{dtype}" if dtype == "bfloat16" else f"np.{dtype}"
    lines = [f"{role} = np.zeros({size}, {kind})"]
    return lines + ([f"{role}.flat[{at}] = {values}"] if elements else [])


def _test_of(shrunk: Shrunk) -> str:
    name = shrunk._name.rpartition(".")[2]
    word = re.sub(r"\W+", "_", name).strip("_") or "fn"
    framework, dtype, of = shrunk._framework, shrunk._dtype, shrunk._shapes()
    imports = {"torch": "import torch", "jax": "import jax.numpy as jnp", "numpy": "import numpy as np"}[framework]
    head = [imports] + (["import ml_dtypes"] if framework == "numpy" and dtype == "bfloat16" else [])
    elements = shrunk._native.elements
    if sum(len(part) for part in elements) <= _MOST_NUMBERS:
        body = [line for role, part in zip("qkv", elements) for line in _filled(framework, dtype, role, of[role], part)]
    else:
        file = shrunk._file or "FILE.safetensors"
        wanted = "" if framework == "numpy" else f", framework={framework!r}"
        body = [f"q, k, v = attn_diag.load_inputs({file!r}{wanted})"
                + ("" if shrunk._file else "  # written by shrink(...).save(FILE)")]
    said = "".join(f", {key}={value!r}" for key, value in shrunk._said.items() if value is not None)
    moves = shrunk._parsed["failure"]["moves"]
    if moves:
        check = [f"assert attn_diag.check_function({word}, q, k, v, runs={20 if moves else 1}{said})"]
    else:
        check = [f"returned = {word}(q, k, v)",
                 "o, lse = returned if isinstance(returned, tuple) else (returned, None)",
                 f"assert_attention(o, q, k, v, lse{said})"]
    module = shrunk._fn_module
    if module and module != "__main__" and shrunk._name == word:
        head.append(f"from {module} import {word}")
    else:
        head.append(f"# {word} is {shrunk._name}" + (f" of {module}" if module else ""))
    uses = "\n".join(body + check)
    ours = (["import attn_diag"] if "attn_diag." in uses else []) + (
        ["from attn_diag.testing import assert_attention"] if "assert_attention" in uses else [])
    return "\n".join([*ours, *head, "", "", f"def test_{word}_at_its_smallest():",
                      f'    """{shrunk.headline}"""', *(f"    {line}" for line in body + check), ""])


def shrink(fn: Function, q: Any, k: Any, v: Any, *, mask: Optional[str] = None, scale: Optional[float] = None,
           layout: str = "BHSD", kv_lens: Any = None, atol: Optional[float] = None, rtol: Optional[float] = None, runs: int = 3,
           seconds: float = 60, keep_values: bool = False, hold: Sequence[str] = (),
           progress: Union[bool, Callable[[str], None], None] = None) -> Shrunk:
    """From q, k and v for which fn(q, k, v) -> o or (o, lse) is wrong to the smallest for which it is in the same way.

    Sizes become smaller first, then the numbers simpler: zeros, ones, integers. "In the same way": the same tensor is
    wrong first, by its numbers, NaN or infinity; a result that moves from run to run goes on moving. Cases are cut out of
    q, k and v, so that fn has to take any size; where it raises, that case counts as failing otherwise, and is told as a
    neighbour. Causal masks without an alignment keep Sq = Sk; a `scale` that is given, and a window, stay as they are,
    and a scale keeps head_dim.

    mask, scale, layout, atol, rtol, runs  as check_function() has them; cases are run once where the result does not move
    seconds      for all of it; fn is never interrupted
    keep_values  leave the numbers as they are
    hold         sizes that stay: "batch", "heads" (or "kv_heads", "heads of a KV head"), "seqlen_q", "seqlen_k",
                 "head_dim" (and "head_dim_v" where it is another)
    kv_lens      refused: smaller cases have other lengths, which fn would not know
    progress     True: on stderr; a function: it gets each line; None: True on a terminal

    What fn raises on q, k and v as they are given is raised. Exceptions that are no Exception (Ctrl-C) end it.
    """
    if kv_lens is not None:
        raise _native.Error("shrink() makes batches and keys smaller, and fn would not know the lengths of these. Give it the "
                            "batch entry b that is wrong by itself: q[b:b+1], and k and v of that entry up to its length.")
    said = {"mask": mask, "scale": scale, "layout": None if layout == "BHSD" else layout, "atol": atol, "rtol": rtol}
    name, call, case = _example(fn, q, k, v, {"mask": mask, "scale": scale, "layout": layout})
    held = list(hold)
    if scale is not None and "head_dim" not in held:
        held.append("head_dim")
    given = Comparison(case, name, atol, rtol, 0)
    with Progress(progress) as shown:
        native = _native.shrink(name, call, case, atol, rtol, runs, seconds, keep_values, mask == "causal", held,
                                lambda step, steps, what: shown.say(f"{step}/{steps} {what}"))
    return Shrunk(native, name, fn, q, said, given)
