"""NumPy code, operation by operation: which numbers each made of which. Arrays of a subclass tell; which nodes their elements
are is known by address, so that views need nothing."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

import contextlib
import sys

import numpy as np

from . import _arrays
from ._places import Places, Spot, is_users
from ._values import Ids, Op, Recorder, Region

_BINARY = {"add": Op.ADD, "subtract": Op.SUBTRACT, "multiply": Op.MULTIPLY, "divide": Op.DIVIDE,
           "true_divide": Op.DIVIDE, "maximum": Op.MAXIMUM, "minimum": Op.MINIMUM, "fmax": Op.MAXIMUM,
           "fmin": Op.MINIMUM}
_UNARY = {"negative": Op.NEGATE, "absolute": Op.ABSOLUTE, "exp": Op.EXP, "exp2": Op.EXP2, "log": Op.LOG, "log2": Op.LOG2}
_FUNCTIONS = ("sqrt", "tanh", "sin", "cos", "floor", "ceil", "square")
_MOVES = ("concatenate", "repeat", "take", "pad", "tile", "roll", "take_along_axis", "copy", "ascontiguousarray")
_NEW = ("zeros", "empty", "ones", "full")

_now: List["_Session"] = []  # the one that is recorded


class _Session:
    def __init__(self) -> None:
        self.recorder, self.places = Recorder(), Places()

    def region(self, x: Any, known: bool = True) -> Optional[Region]:
        owner = x
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        base = owner.__array_interface__["data"][0]
        region = self.recorder.region_at(base)
        if region is None and owner.nbytes:
            region = self.recorder.add_region(Region(base, owner.nbytes, owner, known))
        return region

    def ids(self, x: Any) -> Ids:
        if not isinstance(x, np.ndarray) or x.dtype.kind != "f" and x.dtype.name != "bfloat16" or x.size == 0:
            return None
        region = self.region(x, known=isinstance(x, Traced))
        if region is None:
            return None
        at = _addresses(x)
        if region.buffer != 0:
            return self.recorder.load(self.places.now(), at, True, _numbers(x))
        ids = region.ids[(at - np.uint64(region.base)).astype(np.int64)]
        self.recorder._read[ids] = True
        return ids if ids.any() else None

    def operand(self, x: Any) -> Tuple[Ids, Any]:
        return self.ids(x), _numbers(x)

    def put(self, x: Any, ids: Ids) -> None:
        region = self.region(x)
        if region is None or region.buffer != 0 or x.size == 0 or x.dtype.kind == "b":
            if region is not None and x.dtype.kind == "b":
                region.made = self.places.now()
            return
        flat = np.zeros(x.size, np.uint32) if ids is None else np.broadcast_to(ids, x.shape).ravel()
        self.recorder.put(self.recorder.site(Op.STORE, self.places.now()), _addresses(x).ravel(), x.itemsize,
                          np.ascontiguousarray(flat, np.uint32))

    def made(self, condition: Any) -> Optional[Spot]:
        region = self.region(condition) if isinstance(condition, Traced) else None
        return None if region is None else region.made

    # --- operations

    def ufunc(self, name: str, result: Any, operands: List[Tuple[Ids, Any]]) -> Ids:
        r, spot, numbers = self.recorder, self.places.now(), _numbers(result)
        if name in _BINARY:
            return r.compute(_BINARY[name], spot, numbers, *operands)
        if name in _UNARY or name in _FUNCTIONS:
            return r.unary(_UNARY.get(name, Op.FUNCTION), spot, numbers, operands[0][0])
        if name == "reciprocal":
            return r.compute(Op.DIVIDE, spot, numbers, (None, np.float32(1)), operands[0])
        if name == "matmul":
            return self.product(operands[0], operands[1], numbers)
        return r.unknown(f"numpy.{name}", spot, numbers, *operands)

    def product(self, a: Tuple[Ids, Any], b: Tuple[Ids, Any], result: Any) -> Ids:
        def shaped(x: Tuple[Ids, Any], axis: int) -> Tuple[Ids, Any]:
            if x[1].ndim > 1:
                return x
            return None if x[0] is None else np.expand_dims(x[0], axis), np.expand_dims(x[1], axis)

        a, b = shaped(a, 0), shaped(b, 1)
        batch = np.broadcast_shapes(a[1].shape[:-2], b[1].shape[:-2])
        whole = np.reshape(result, (*batch, a[1].shape[-2], b[1].shape[-1]))
        ids = self.recorder.product(self.places.now(), a, b, (None, np.float32(0)), whole)
        return None if ids is None else ids.reshape(result.shape)

    def reduce(self, name: str, x: Tuple[Ids, Any], axis: Any, result: Any) -> Ids:
        ids, numbers = x
        if name not in ("add", "maximum", "minimum", "fmax", "fmin"):
            return self.recorder.unknown(f"numpy.{name}.reduce", self.places.now(), _numbers(result), x)
        combine = getattr(np, name)
        axes = range(numbers.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        for one in sorted((int(i) % numbers.ndim for i in axes), reverse=True):
            ids = self.recorder.reduce(_BINARY[name], self.places.now(), ids, numbers, one, combine)
            numbers = combine.reduce(numbers, axis=one)
        return None if ids is None else ids.reshape(np.shape(result))

    def einsum(self, subscripts: str, operands: List[Tuple[Ids, Any]], result: Any) -> Ids:
        """Of two operands, as a product of matrices."""
        given, arrow, out = subscripts.replace(" ", "").partition("->")
        names = given.split(",")
        plain = arrow and len(names) == 2 and "." not in given and all(len(set(n)) == len(n) for n in names)
        if plain:
            left, right = names
            batch = [c for c in left if c in right and c in out]
            inner = [c for c in left if c in right and c not in out]
            rows, columns = ([c for c in n if c in out and c not in batch] for n in names)
            plain = len(batch) + len(inner) + len(rows) == len(left) and len(batch) + len(inner) + len(columns) == len(right)
        if not plain:
            return self.recorder.unknown("numpy.einsum", self.places.now(), _numbers(result), *operands)
        size = {c: n for name, (_, x) in zip(names, operands) for c, n in zip(name, x.shape)}

        def matrix(name: str, x: Any, order: List[List[str]]) -> Any:
            moved = np.transpose(x, [name.index(c) for part in order for c in part])
            return moved.reshape([int(np.prod([size[c] for c in part])) for part in order])

        pair: List[Tuple[Ids, Any]] = []
        for name, order, (ids, x) in zip(names, ([batch, rows, inner], [batch, inner, columns]), operands):
            pair.append((None if ids is None else matrix(name, ids, order), matrix(name, x, order)))
        made = self.recorder.product(self.places.now(), pair[0], pair[1], (None, np.float32(0)),
                                     matrix(out, _numbers(result), [batch, rows, columns]))
        if made is None:
            return None
        of_all = [*batch, *rows, *columns]
        return np.transpose(made.reshape([size[c] for c in of_all]), [of_all.index(c) for c in out])


def _addresses(x: Any) -> Any:
    at = np.full(x.shape, x.__array_interface__["data"][0], np.uint64)
    for axis, (size, stride) in enumerate(zip(x.shape, x.strides)):
        step = (np.arange(size, dtype=np.int64) * stride).astype(np.uint64)
        at = at + step.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return at


def _numbers(x: Any) -> Any:
    return np.asarray(_plain(x)).astype(np.float32)


def _plain(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(_plain(one) for one in x)
    return x.view(np.ndarray) if isinstance(x, Traced) else x


def _traced(result: Any) -> Any:
    return np.asarray(result).view(Traced)


class Traced(np.ndarray):  # type: ignore[misc,type-arg,unused-ignore]
    """An array of which every operation is told."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if not _now:
            return getattr(ufunc, method)(*map(_plain, inputs), out=_plain(out), **kwargs) if out is not None else \
                getattr(ufunc, method)(*map(_plain, inputs), **kwargs)
        session, given = _now[-1], [_plain(x) for x in inputs]
        operands = [session.operand(x) if _is_number(x) else (None, np.float32(0)) for x in inputs]
        if out is not None:
            kwargs["out"] = _plain(out)
        result = getattr(ufunc, method)(*given, **kwargs)
        if isinstance(result, tuple) or method not in ("__call__", "reduce"):
            if any(ids is not None for ids, _ in operands):
                session.recorder.untracked.setdefault(f"numpy.{ufunc.__name__}.{method}", session.places.now().text())
            return result
        made = None
        if not _is_number(result):
            pass
        elif method == "reduce":
            plain = kwargs.get("where", True) is True
            made = session.reduce(ufunc.__name__ if plain else "where", operands[0], kwargs.get("axis", 0), result)
        else:
            made = session.ufunc(ufunc.__name__, result, operands)
        traced = out[0] if out is not None else _traced(result)
        session.put(traced, made)
        return traced

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = func.__name__
        if not _now:
            return func(*_plain(tuple(args)), **kwargs)
        session = _now[-1]
        if name == "where" and len(args) == 3:
            condition, a, b = (_plain(x) for x in args)
            result = _traced(np.where(condition, a, b))
            if _is_number(result):
                session.put(result, session.recorder.pick(session.places.now(), session.made(args[0]), np.asarray(condition), session.operand(args[1]),
                                                          session.operand(args[2]), _numbers(result)))
            return result
        if name == "einsum" and isinstance(args[0], str) and "out" not in kwargs:
            operands = [session.operand(x) for x in args[1:]]
            result = _traced(func(args[0], *map(_plain, args[1:]), **kwargs))
            session.put(result, session.einsum(args[0], operands, result))
            return result
        if name == "dot":
            return np.matmul(*args, **kwargs)
        if name in ("zeros_like", "empty_like", "ones_like", "full_like"):
            return _new(func(*_plain(tuple(args)), **kwargs), name)
        if name in _MOVES:
            return self._moved(session, func, args, kwargs)
        if name in ("result_type", "can_cast", "shape", "ndim", "size", "may_share_memory", "shares_memory"):
            return func(*_plain(tuple(args)), **kwargs)
        return super().__array_function__(func, types, args, kwargs)

    @staticmethod
    def _moved(session: _Session, func: Any, args: Any, kwargs: Any) -> Any:
        def ids(x: Any) -> Any:
            if isinstance(x, (list, tuple)):
                return type(x)(ids(one) for one in x)
            if isinstance(x, np.ndarray) and _is_number(x):
                known = session.ids(x)
                return np.zeros(x.shape, np.uint32) if known is None else known
            return _plain(x)

        moved = ids(tuple(args))
        result = _traced(func(*_plain(tuple(args)), **kwargs))
        if _is_number(result):
            session.put(result, func(*moved, **{k: v for k, v in kwargs.items() if k not in ("dtype", "constant_values")}))
        return result

    def _method(self, name: str, args: Any, kwargs: Any) -> Any:
        """That gives a view, or a copy of elements."""
        result = getattr(self.view(np.ndarray), name)(*_plain(tuple(args)), **kwargs)
        if not _now or not isinstance(result, np.ndarray) and not np.isscalar(result):
            return result
        traced = _traced(result)
        if _is_number(self) and not (isinstance(result, np.ndarray) and np.may_share_memory(result, self)):
            known = _now[-1].ids(self)
            if known is not None:
                known = getattr(known, name)(*_plain(tuple(args)), **kwargs)
            _now[-1].put(traced, known)
        return traced

    def __getitem__(self, index: Any) -> Any:
        return self._method("__getitem__", (index,), {})

    def reshape(self, *args: Any, **kwargs: Any) -> Any:
        return self._method("reshape", args, kwargs)

    def ravel(self, *args: Any, **kwargs: Any) -> Any:
        return self._method("ravel", args, kwargs)

    def flatten(self, *args: Any, **kwargs: Any) -> Any:
        return self._method("flatten", args, kwargs)

    def repeat(self, *args: Any, **kwargs: Any) -> Any:
        return self._method("repeat", args, kwargs)

    def take(self, *args: Any, **kwargs: Any) -> Any:
        return self._method("take", args, kwargs)

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        return self._method("copy", args, kwargs)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        result = _traced(self.view(np.ndarray).astype(dtype, *args, **kwargs))
        if _now and _is_number(self) and _is_number(result) and not np.may_share_memory(result, self):
            session = _now[-1]
            ids = session.ids(self)
            if result.dtype != self.dtype:
                ids = session.recorder.unary(Op.ROUND, session.places.now(), _numbers(result), ids)
            session.put(result, ids)
        return result

    def __setitem__(self, index: Any, value: Any) -> None:
        ids = _now[-1].operand(value) if _now and _is_number(value) else (None, np.float32(0))
        self.view(np.ndarray)[_plain(index)] = _plain(value)
        if _now and _is_number(self):
            r, session = _now[-1].recorder, _now[-1]
            to = np.zeros(self.shape, bool)
            to[_plain(index)] = True
            whole = np.zeros(self.shape, np.uint32)
            if ids[0] is not None:
                whole[_plain(index)] = ids[0]
            at = _addresses(self)[to]
            kept: Any = np.ascontiguousarray(whole[to], np.uint32)
            rounds = getattr(value, "dtype", self.dtype) != self.dtype
            if rounds and kept.any():
                kept = r.unary(Op.ROUND, session.places.now(), _numbers(self)[to], kept)
            session.region(self)
            r.put(r.site(Op.STORE, session.places.now(), "address"), at, self.itemsize, kept)


def _is_number(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return isinstance(x, float) if dtype is None else dtype.kind == "f" or dtype.name == "bfloat16"


def _new(x: Any, name: str) -> Any:
    traced = _traced(x)
    if _is_number(traced) and name.startswith("empty"):
        traced.view(np.ndarray).fill(np.nan)
    if _now:
        _now[-1].region(traced)
    return traced


@contextlib.contextmanager
def _new_arrays() -> Iterator[None]:
    plain = {name: getattr(np, name) for name in _NEW}

    def wrapped(name: str, make: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            made = make(*args, **kwargs)
            return _new(made, name) if is_users(sys._getframe(1).f_code.co_filename) else made

        return call

    for name, make in plain.items():
        setattr(np, name, wrapped(name, make))
    try:
        yield
    finally:
        for name, make in plain.items():
            setattr(np, name, make)


def call_of_user(fn: Callable[..., Any], arrays: Dict[str, Any]) -> Any:
    return fn(*arrays.values())


def record(fn: Callable[..., Any], arrays: Dict[str, Any], layout: str) -> Tuple[Any, Union[Dict[str, Any], str]]:
    session = _Session()
    r = session.recorder
    for i, x in enumerate(arrays.values()):
        r.add_region(Region(x.__array_interface__["data"][0], x.nbytes, x, True, i + 1, x.itemsize))
    _now.append(session)
    try:
        with _new_arrays():
            o, lse = _arrays.outputs(call_of_user(fn, {role: x.view(Traced) for role, x in arrays.items()}))
    finally:
        _now.pop()
    plain = (_plain(o), None if lse is None else _plain(lse))
    outputs: List[Any] = []
    for name, x in (("o", o), ("lse", lse)):
        if x is None:
            continue
        *parts, seen = r.output(_addresses(x).ravel())
        if not seen:
            return plain, f"{name} lies in memory that was written by what is not watched"
        outputs.append(tuple(parts))
    reason = ""
    if r.untracked:
        reason = "what these make is not known: " + ", ".join(f"{name} ({where})" for name, where in r.untracked.items())
    return plain, r.graph(outputs, reason)
