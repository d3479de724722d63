"""The line at which a function leaves attention: a kernel under Triton's interpreter, or plain PyTorch or NumPy."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import _arrays, _native
from ._api import Comparison, Json, Result, _case


class LineTrace(Result):
    """Whether a function's o, and lse, are right; and the line of its source at which they first go wrong."""

    def __init__(self, compared: Comparison, name: str, graph: Union[Json, str]):
        self.comparison = compared
        self._rendered = _native.trace_lines(compared._compared, name, graph)

    @property
    def _divergence(self) -> Json:
        found: Json = self.to_dict()["line_divergence"]
        return found

    @property
    def answer(self) -> str:
        """"line" (the first suspect is where it goes wrong), "unsure" (the suspects are likely, no more), "none"
        (every number is what attention asks for) or "not_looked"; `reason` says why of the second and last."""
        return str(self._divergence["answer"])

    @property
    def reason(self) -> str:
        return str(self._divergence["reason"])

    @property
    def line(self) -> str:
        """The first suspect and what is wrong there, in one line; or why none is told. Empty where all is right."""
        return self._rendered.line

    @property
    def suspects(self) -> List[Json]:
        """The likeliest first: file, line, column, function, variable, text, why."""
        return list(self._divergence["suspects"])

    @property
    def roles(self) -> List[Json]:
        """What each variable holds: file, line, variable, holds ("scores, times 0.125"), numbers, share."""
        return list(self._divergence["roles"])


def _recorded(fn: Callable[..., Any], arrays: Dict[str, Any], layout: str) -> Tuple[Any, Union[Json, str]]:
    """What fn returns, and the graph of how it was made; or why there is none."""
    kind = type(arrays["q"]).__module__.partition(".")[0]
    if kind == "torch":
        from ._tensors import record
    elif kind == "numpy":
        from ._ndarrays import record
    else:
        return fn(*arrays.values()), f"lines are traced of PyTorch tensors and NumPy arrays, and q is a {type(arrays['q']).__name__}"
    return record(fn, arrays, layout)


def trace_lines(fn: Callable[..., Any], q: Any, k: Any, v: Any, *, mask: Optional[str] = None,
                scale: Optional[float] = None, layout: str = "BHSD", bias: Any = None, atol: Optional[float] = None,
                rtol: Optional[float] = None) -> LineTrace:
    """Calls fn(q, k, v) -> o or (o, lse) and, where that is wrong, says at which line of its source it goes wrong.

    fn launches Triton kernels, with TRITON_INTERPRET=1 set before triton is imported, or is plain PyTorch or NumPy.
    It gets copies of q, k and v (PyTorch tensors on the CPU, or NumPy arrays) twice: once as it is, and once while
    every operation tells which numbers it made of which. Small cases are answered in seconds: two heads, 64 queries
    and keys, 32 columns. Arguments are those of compare(). What cannot be looked at is said in `reason`.
    """
    name = getattr(fn, "__qualname__", type(fn).__qualname__)
    from ._triton import bf16_products  # imports numpy, which the package does without
    copies = {role: _arrays.dense(x) for role, x in (("q", q), ("k", k), ("v", v))}
    import numpy
    with bf16_products(), numpy.errstate(all="ignore"):
        returned, graph = _recorded(fn, copies, layout)
        # A kernel that accesses memory which is not its own would do so now.
        outside = not isinstance(graph, str) and bool(graph["outside"])
        first = None if outside else _arrays.outputs(fn(_arrays.copied(q), _arrays.copied(k), _arrays.copied(v)))[0]
    o, lse = _arrays.outputs(returned)
    case = _case({"q": q, "k": k, "v": v, "o": o, "lse": lse, "bias": bias}, layout, None, scale, mask)
    if not isinstance(graph, str) and not graph["reason"] and not outside and not _arrays.alike(first, o):
        graph["reason"] = "two runs gave o with other bits"
    return LineTrace(Comparison(case, name, atol, rtol, 0), name, graph)
