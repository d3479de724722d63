"""PyTorch code, op by op, and the Triton kernels that it launches: which numbers each made of which."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import _arrays
from ._places import Places, Spot
from ._triton import Interpreter
from ._values import Ids, Op, Recorder, Region

_BINARY = {"add": Op.ADD, "sub": Op.SUBTRACT, "mul": Op.MULTIPLY, "div": Op.DIVIDE, "maximum": Op.MAXIMUM,
           "minimum": Op.MINIMUM}
_UNARY = {"neg": Op.NEGATE, "abs": Op.ABSOLUTE, "exp": Op.EXP, "exp2": Op.EXP2, "log": Op.LOG, "log2": Op.LOG2}
_FUNCTIONS = ("sqrt", "rsqrt", "tanh", "sin", "cos", "erf", "floor", "ceil", "sigmoid", "relu")
_REDUCTIONS = {"sum": (Op.ADD, np.add), "amax": (Op.MAXIMUM, np.maximum), "amin": (Op.MINIMUM, np.minimum),
               "max": (Op.MAXIMUM, np.maximum), "min": (Op.MINIMUM, np.minimum)}
# What is done to elements may be done to the numbers of their nodes.
_MOVES = ("clone", "cat", "stack", "index", "index_select", "gather", "repeat", "flip", "roll", "tril", "triu",
          "constant_pad_nd", "slice_scatter", "select_scatter", "index_put", "scatter", "_unsafe_index", "take",
          "repeat_interleave", "embedding", "contiguous", "lift_fresh", "masked_select", "_reshape_copy", "expand_copy")
_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "mv", "dot")


def _addresses(x: "torch.Tensor") -> Any:
    """Of each element, in the tensor's shape."""
    at = np.full(tuple(x.shape), x.data_ptr(), np.uint64)
    for axis, (size, stride) in enumerate(zip(x.shape, x.stride())):
        step = np.arange(size, dtype=np.int64) * (stride * x.element_size())
        at = at + step.astype(np.uint64).reshape([-1 if i == axis else 1 for i in range(x.dim())])
    return at


def _numbers(x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return np.float32(x)
    return x.detach().to(torch.float32).contiguous().numpy()


class Mode(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self, recorder: Recorder, places: Places):
        super().__init__()
        self.recorder, self.places = recorder, places
        self.table = torch._decomp.decomposition_table

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else torch imports its compiler, which takes seconds, to keep it out of here."""
        return False

    # --- memory

    def _region(self, x: "torch.Tensor", known: bool = True) -> Optional[Region]:
        storage = x.untyped_storage()
        base = storage.data_ptr()
        if not base:
            return None
        region = self.recorder.region_at(base)
        if region is None:
            region = self.recorder.add_region(Region(base, storage.nbytes(), storage, known))
        return region

    def ids(self, x: Any) -> Ids:
        """Inputs get their nodes as they are read."""
        if not isinstance(x, torch.Tensor) or not x.is_floating_point() or x.numel() == 0:
            return None
        region = self._region(x, known=False)
        if region is None:
            return None
        at = _addresses(x)
        if region.buffer != 0:
            return self.recorder.load(self.places.now(), at, True, _numbers(x))
        offset = (at - np.uint64(region.base)).astype(np.int64)
        ids = region.ids[offset]
        self.recorder._read[ids] = True
        return ids if ids.any() else None

    def operand(self, x: Any) -> Tuple[Ids, Any]:
        return self.ids(x), _numbers(x)

    def put(self, x: "torch.Tensor", ids: Ids) -> None:
        region = self._region(x)
        if region is None or region.buffer != 0 or x.numel() == 0:
            return
        at = _addresses(x).ravel()
        flat = np.zeros(at.size, np.uint32) if ids is None else np.broadcast_to(ids, tuple(x.shape)).ravel()
        site = self.recorder.site(Op.STORE, self.places.now())
        self.recorder.put(site, at, x.element_size(), np.ascontiguousarray(flat, np.uint32))

    def made(self, condition: Any) -> Optional[Spot]:
        region = self._region(condition) if isinstance(condition, torch.Tensor) else None
        return None if region is None else region.made

    # --- operations

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.partition("::")[2]
        base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
        base = base.strip("_") if base in ("__and__", "__or__") else base
        if func.is_view or base in ("set", "detach", "resize", "alias", "is_same_size", "local_scalar_dense"):
            return func(*args, **kwargs)
        tensors = [x for a in [*args, *kwargs.values()] for x in (a if isinstance(a, (list, tuple)) else [a])
                   if isinstance(x, torch.Tensor)]
        in_place = name.endswith("_") and not name.endswith("__")
        new = base.startswith("new_") or base.endswith("_like")  # takes a shape of a tensor, no numbers
        tracked = not new and any(self._is_tracked(x) for x in tensors)
        known = base in _BINARY or base in _UNARY or base in _FUNCTIONS or base in _REDUCTIONS or base in _MOVES or \
            base in _PRODUCTS or base in ("where", "masked_fill", "rsub", "reciprocal", "_to_copy", "copy", "mean",
                                          "fill", "zero", "square", "pow")
        if tracked and not known and func in self.table:
            with self:
                result = self.table[func](*args, **kwargs)
            if in_place and isinstance(result, torch.Tensor) and isinstance(args[0], torch.Tensor) and \
                    result.data_ptr() != args[0].data_ptr():
                made = self.ids(result)
                args[0].copy_(result)
                self.put(args[0], made)
                return args[0]
            return result
        prepared = self._prepared(func, base, args, kwargs) if tracked and known else None
        operands = [self.operand(x) for x in tensors if x.is_floating_point()] if tracked and not known else []
        result = func(*args, **kwargs)
        outputs = [x for x in (result if isinstance(result, (list, tuple)) else [result]) if isinstance(x, torch.Tensor)]
        if base.startswith(("empty", "new_empty")):
            for x in outputs:
                if x.is_floating_point():
                    x.fill_(float("nan"))
                self._region(x)
            return result
        for i, x in enumerate(outputs):
            region = self._region(x)
            if x.dtype == torch.bool and region is not None:
                region.made = self.places.now()
            if not x.is_floating_point():
                continue
            ids: Ids = None
            if prepared is not None and i == 0:
                ids = prepared(x)
            elif operands:
                ids = self.recorder.unknown(name, self.places.now(), _numbers(x), *operands)
            if tracked or (in_place and region is not None):
                self.put(x, ids)
        return result

    def _is_tracked(self, x: "torch.Tensor") -> bool:
        if not x.is_floating_point():
            return False
        region = self._region(x, known=False)
        return region is not None and (region.buffer != 0 or bool(region.ids.any()))

    def _prepared(self, func: Any, base: str, args: Any, kwargs: Any) -> Callable[[Any], Ids]:
        """What operands are, before they may be overwritten; then, given the result, the ids of that."""
        r, spot = self.recorder, self.places.now()
        if base in ("add", "sub", "rsub"):
            a, b = self.operand(args[0]), self.operand(args[1])
            alpha = kwargs.get("alpha", 1)
            if alpha != 1:
                scaled = b[1] * np.float32(alpha)
                b = (r.compute(Op.MULTIPLY, spot, scaled, b, (None, np.float32(alpha))), scaled)
            if base == "rsub":
                a, b = b, a
            return lambda x: r.compute(Op.ADD if base == "add" else Op.SUBTRACT, spot, _numbers(x), a, b)
        if base in _BINARY:
            a, b = self.operand(args[0]), self.operand(args[1])
            if kwargs.get("rounding_mode"):
                return lambda x: r.unknown(base, spot, _numbers(x), a, b)
            return lambda x: r.compute(_BINARY[base], spot, _numbers(x), a, b)
        if base == "reciprocal":
            a = self.operand(args[0])
            return lambda x: r.compute(Op.DIVIDE, spot, _numbers(x), (None, np.float32(1)), a)
        if base in ("square", "pow"):
            a = self.operand(args[0])
            exponent = args[1] if base == "pow" else 2
            if exponent == -1:
                return lambda x: r.compute(Op.DIVIDE, spot, _numbers(x), (None, np.float32(1)), a)
            return lambda x: r.unary(Op.FUNCTION, spot, _numbers(x), a[0])
        if base in _UNARY or base in _FUNCTIONS:
            a = self.operand(args[0])
            return lambda x: r.unary(_UNARY.get(base, Op.FUNCTION), spot, _numbers(x), a[0])
        if base == "where":
            condition, a, b = _boolean(args[0]), self.operand(args[1]), self.operand(args[2])
            at = self.made(args[0])
            return lambda x: r.pick(spot, at, condition, a, b, _numbers(x))
        if base == "masked_fill":
            condition, a, b = _boolean(args[1]), self.operand(args[2]), self.operand(args[0])
            at = self.made(args[1])
            return lambda x: r.pick(spot, at, condition, a, b, _numbers(x))
        if base == "_to_copy":
            a = self.operand(args[0])
            return lambda x: a[0] if x.dtype == args[0].dtype else r.unary(Op.ROUND, spot, _numbers(x), a[0])
        if base in ("copy", "fill", "zero"):
            a = self.operand(args[1]) if len(args) > 1 else (None, np.float32(0))
            same = len(args) > 1 and getattr(args[1], "dtype", None) == args[0].dtype
            return lambda x: None if a[0] is None else np.broadcast_to(a[0], tuple(x.shape)) if same else \
                r.unary(Op.ROUND, spot, _numbers(x), np.broadcast_to(a[0], tuple(x.shape)))
        if base in _REDUCTIONS or base == "mean":
            return self._reduction(base, args, kwargs, spot)
        if base in _PRODUCTS:
            return self._product(base, args, kwargs, spot)
        return self._move(func, args, kwargs)

    def _reduction(self, base: str, args: Any, kwargs: Any, spot: Spot) -> Callable[[Any], Ids]:
        r = self.recorder
        a = self.operand(args[0])
        if base in ("max", "min") and len(args) > 1 and isinstance(args[1], torch.Tensor):
            b = self.operand(args[1])
            return lambda x: r.compute(_REDUCTIONS[base][0], spot, _numbers(x), a, b)
        axes = args[1] if len(args) > 1 else kwargs.get("dim")
        rank = args[0].dim()
        axes = list(range(rank)) if axes is None or axes == [] else [axes] if isinstance(axes, int) else list(axes)
        op, combine = _REDUCTIONS["sum" if base == "mean" else base]

        def made(x: Any) -> Ids:
            ids, numbers = a
            for axis in sorted((axis % max(rank, 1) for axis in axes), reverse=True):
                ids = r.reduce(op, spot, ids, numbers, axis, combine)
                numbers = combine.reduce(numbers, axis=axis)
            if ids is None:
                return None
            ids = ids.reshape(tuple(x.shape))
            if base == "mean":
                count = np.float32(args[0].numel() / max(x.numel(), 1))
                return r.compute(Op.DIVIDE, spot, _numbers(x), (ids, numbers.reshape(ids.shape)), (None, count))
            return ids

        return made

    def _product(self, base: str, args: Any, kwargs: Any, spot: Spot) -> Callable[[Any], Ids]:
        r = self.recorder
        addend = base in ("addmm", "baddbmm")
        d, a, b = (args if addend else (None, *args[:2]))
        plain = kwargs.get("alpha", 1) == 1 and kwargs.get("beta", 1) in (0, 1)
        (ia, na), (ib, nb) = self.operand(a), self.operand(b)
        given = self.operand(d) if d is not None and kwargs.get("beta", 1) else (None, np.float32(0))

        def made(x: Any) -> Ids:
            if not plain:
                return r.unknown(base, spot, _numbers(x), (ia, na), (ib, nb))
            rows = na if na.ndim > 1 else na[None, :]
            columns = nb if nb.ndim > 1 else nb[:, None]
            row_ids = None if ia is None else ia.reshape(rows.shape)
            column_ids = None if ib is None else ib.reshape(columns.shape)
            result = _numbers(x).reshape(*rows.shape[:-1], columns.shape[-1])
            ids = r.product(spot, (row_ids, rows), (column_ids, columns), given, result)
            return None if ids is None else ids.reshape(tuple(x.shape))

        return made

    def _move(self, func: Any, args: Any, kwargs: Any) -> Callable[[Any], Ids]:
        def of(x: Any) -> Any:
            if isinstance(x, (list, tuple)):
                return type(x)(of(one) for one in x)
            if isinstance(x, torch.Tensor) and x.is_floating_point():
                ids = self.ids(x)
                return torch.zeros(tuple(x.shape), dtype=torch.int64) if ids is None else \
                    torch.from_numpy(ids.astype(np.int64))
            return 0 if isinstance(x, float) else x

        moved_args, moved_kwargs = of(tuple(args)), {name: of(x) for name, x in kwargs.items() if name != "dtype"}
        return lambda x: func(*moved_args, **moved_kwargs).numpy().astype(np.uint32)


def _boolean(x: Any) -> Any:
    return x.detach().contiguous().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)


def _unknown(recorder: Recorder) -> str:
    what = ", ".join(f"{name} ({where})" for name, where in recorder.untracked.items())
    return f"what these make is not known: {what}"


def call_of_user(fn: Callable[..., Any], arrays: Dict[str, Any]) -> Any:
    return fn(*arrays.values())


def record(fn: Callable[..., Any], arrays: Dict[str, Any], layout: str) -> Tuple[Any, Union[Dict[str, Any], str]]:
    recorder, places = Recorder(), Places()
    for i, x in enumerate(arrays.values()):
        recorder.add_region(Region(x.data_ptr(), x.numel() * x.element_size(), x, True, i + 1, x.element_size()))
    interpreter = Interpreter(recorder, places)
    with interpreter.entered(), Mode(recorder, places):
        o, lse = _arrays.outputs(call_of_user(fn, arrays))
    outputs: List[Any] = []
    for name, x in (("o", o), ("lse", lse)):
        if x is None:
            continue
        *parts, seen = recorder.output(_addresses(x).ravel())
        if not seen and recorder.untracked:
            return (o, lse), _unknown(recorder)
        if not seen:
            return (o, lse), f"{name} lies in memory that was written by what is not watched"
        outputs.append(tuple(parts))
    reason = ""
    if recorder.untracked:
        reason = _unknown(recorder)
    elif recorder.unseen:
        reason = "what is not watched wrote numbers that were read"
    if not interpreter.kernels and "triton" in sys.modules and recorder.count < 2:
        return (o, lse), "no kernel ran under Triton's interpreter: set TRITON_INTERPRET=1 before triton is imported"
    return (o, lse), recorder.graph(outputs, reason)
