"""Kernels under Triton's interpreter, which computes with numpy, an operation of a block at a time: each handle of a block
carries beside its data which nodes its elements are."""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np

from ._places import Places, Spot, program_remarks
from ._values import Ids, Op, Recorder, Region

_BINARY = {"fadd": Op.ADD, "fsub": Op.SUBTRACT, "fmul": Op.MULTIPLY, "fdiv": Op.DIVIDE, "precise_divf": Op.DIVIDE,
           "approx_divf": Op.DIVIDE, "minnumf": Op.MINIMUM, "minimumf": Op.MINIMUM, "maxnumf": Op.MAXIMUM,
           "maximumf": Op.MAXIMUM, "frem": Op.FUNCTION}
_UNARY = {"fneg": Op.NEGATE, "fabs": Op.ABSOLUTE, "exp": Op.EXP, "exp2": Op.EXP2, "log": Op.LOG, "log2": Op.LOG2,
          "fp_ext": Op.ROUND, "fp_trunc": Op.ROUND, "fp_to_fp": Op.ROUND, "bitcast": Op.ROUND}
_FUNCTIONS = ("sqrt", "precise_sqrt", "rsqrt", "sin", "cos", "erf", "floor", "ceil")
_MOVES = ("reshape", "trans", "expand_dims", "broadcast", "cat", "join", "split", "splat", "unsplat", "gather")
# Operations whose results are no numbers.
_SILENT = ("make_range", "get_program_id", "get_num_programs", "addptr", "store", "load", "print", "assert", "assume",
           "barrier", "make_tensor_descriptor", "descriptor_load", "descriptor_store", "descriptor_gather",
           "descriptor_scatter", "int_to_ptr", "ptr_to_int", "int_cast", "si_to_fp", "ui_to_fp", "histogram",
           "fp_to_si", "fp_to_ui")


def _ids(handle: Any) -> Ids:
    return getattr(handle, "attn_diag_ids", None)


def _numbers(handle: Any) -> Any:
    """As fp32."""
    data, dtype = handle.data, handle.dtype.scalar
    if data.dtype == np.uint16 and getattr(dtype, "name", "") == "bf16":
        return (np.asarray(data).astype(np.uint32) << 16).view(np.float32)
    return np.asarray(data, np.float32)


def _operand(handle: Any) -> Tuple[Ids, Any]:
    return _ids(handle), _numbers(handle)


def _is_number(handle: Any) -> bool:
    return bool(handle.dtype.scalar.is_floating())


def _is_bf16(handle: Any) -> bool:
    return bool(handle.dtype.scalar.is_bf16()) and handle.data.dtype == np.uint16


@contextlib.contextmanager
def bf16_products() -> Iterator[None]:
    """The interpreter keeps bf16 as integers of the same bits, and multiplies these in tl.dot. Here it gets fp32 of the
    same value, as a tensor core does."""
    module: Any = sys.modules.get("triton.runtime.interpreter")
    if module is None:
        yield
        return
    builder = module.interpreter_builder
    dot = type(builder).create_dot

    def create_dot(a: Any, b: Any, d: Any, *rest: Any) -> Any:
        import triton.language as tl

        def widened(x: Any) -> Any:
            if not _is_bf16(x):
                return x
            wide = module.TensorHandle(_numbers(x), tl.float32)
            wide.attn_diag_ids = _ids(x)
            return wide

        return dot(builder, widened(a), widened(b), d, *rest)

    builder.create_dot = create_dot
    try:
        yield
    finally:
        del builder.create_dot


class Interpreter:
    """While it is entered, the interpreter's operations tell the recorder what they do."""

    def __init__(self, recorder: Recorder, places: Places):
        self.recorder, self.places = recorder, places
        self.kernels = 0
        self.programs = (1, 1, 1)

    # --- operations, after the interpreter has done them

    def _moved(self, name: str, call: Callable[..., Any], result: Any, args: Tuple[Any, ...]) -> None:
        """The same move, of the numbers of nodes; and of a condition, where it was computed."""
        from triton.runtime.interpreter import TensorHandle
        import triton.language as tl
        handles = [a for a in args if isinstance(a, TensorHandle)]
        results = result if isinstance(result, tuple) else (result,)
        made = next((h.attn_diag_made for h in handles if hasattr(h, "attn_diag_made")), None)
        for one in results:
            if made is not None:
                one.attn_diag_made = made
        tracked = [h for h in handles if _ids(h) is not None]
        if not tracked:
            return

        def ids(h: Any) -> Any:
            if name == "gather" and h is not args[0]:
                return h
            known = _ids(h)
            return TensorHandle(np.zeros(np.shape(h.data), np.uint32) if known is None else known, tl.uint32)

        moved = call(*[ids(a) if isinstance(a, TensorHandle) else a for a in args])
        for one, of in zip(results, moved if isinstance(moved, tuple) else (moved,)):
            one.attn_diag_ids = of.data

    def _after(self, name: str, call: Callable[..., Any], result: Any, args: Tuple[Any, ...]) -> None:
        from triton.runtime.interpreter import TensorHandle
        r = self.recorder
        handles = [a for a in args if isinstance(a, TensorHandle)]
        if name in _MOVES:
            return self._moved(name, call, result, args)
        if isinstance(result, TensorHandle) and result.data.dtype == np.bool_:
            result.attn_diag_made = self.places.now()
            return None
        if name in _SILENT or name != "select" and not any(_ids(h) is not None for h in handles):
            return None
        spot = self.places.now()
        computed = name in _BINARY or name in _FUNCTIONS or name == "fma" or _UNARY.get(name, Op.ROUND) != Op.ROUND
        if computed and any(_is_bf16(h) for h in handles):
            # Integers of the same bits were computed with.
            ids = r.unknown(f"bf16 arithmetic of Triton's interpreter, {name}", spot, _numbers(result),
                            *map(_operand, handles))
        elif name in _BINARY:
            ids = r.compute(_BINARY[name], spot, _numbers(result), *map(_operand, handles[:2]))
        elif name in _UNARY:
            ids = r.unary(_UNARY[name], spot, _numbers(result), _ids(handles[0]))
        elif name in _FUNCTIONS:
            ids = r.unary(Op.FUNCTION, spot, _numbers(result), _ids(handles[0]))
        elif name == "select":
            condition, a, b = handles
            if not _is_number(result):
                return None
            ids = r.pick(spot, getattr(condition, "attn_diag_made", None), condition.data, _operand(a), _operand(b),
                         _numbers(result))
        elif name == "fma":
            ids = r.compute(Op.FMA, spot, _numbers(result), *map(_operand, handles))
        elif name == "dot":
            ids = r.product(spot, _operand(handles[0]), _operand(handles[1]), _operand(handles[2]), _numbers(result))
        elif name == "clampf":
            ids = r.compute(Op.MAXIMUM, spot, _numbers(result), *map(_operand, handles[:2]))
        elif isinstance(result, TensorHandle):
            ids = r.unknown(name, spot, _numbers(result), *map(_operand, handles))
        else:
            ids = None
            r.untracked.setdefault(name, spot.text())
        if ids is not None:
            result.attn_diag_ids = ids
        return None

    def _load(self, call: Callable[..., Any], ptrs: Any, mask: Any, other: Any, *rest: Any) -> Any:
        spot = self.places.now()
        dtype = ptrs.get_element_ty()
        inside = self.recorder.inside(spot, Op.LOAD, ptrs.data, mask.data, max(1, dtype.primitive_bitwidth // 8))
        result = call(ptrs, type(mask)(inside, mask.dtype), other, *rest)
        if _is_number(result):
            numbers = _numbers(result)
            ids = self.recorder.load(spot, ptrs.data, inside, numbers)
            if other is not None and _ids(other) is not None:
                ids = self.recorder.pick(spot, None, mask.data, (ids, numbers), _operand(other), numbers)
            if ids is not None:
                result.attn_diag_ids = ids
        return result

    def _store(self, call: Callable[..., Any], ptrs: Any, value: Any, mask: Any, *rest: Any) -> Any:
        spot = self.places.now()
        inside = self.recorder.inside(spot, Op.STORE, ptrs.data, mask.data, value.data.dtype.itemsize)
        result = call(ptrs, value, type(mask)(inside, mask.dtype), *rest)
        self.recorder.store(spot, ptrs.data, inside, value.data.dtype.itemsize,
                            _ids(value) if _is_number(value) else None, _numbers(value))
        return result

    def _atomic(self, call: Callable[..., Any], op: Any, ptr: Any, val: Any, mask: Any, *rest: Any) -> Any:
        r, spot = self.recorder, self.places.now()
        before = call(op, ptr, val, mask, *rest)
        if not _is_number(val):
            return before
        old = r.load(spot, ptr.data, mask.data, _numbers(before))
        added = _numbers(before) + _numbers(val)
        kind = {"FADD": Op.ATOMIC_ADD, "MAX": Op.MAXIMUM, "MIN": Op.MINIMUM}.get(getattr(op, "name", str(op)).upper())
        if kind is None:
            ids = r.unknown("atomic_rmw", spot, added, (old, _numbers(before)), _operand(val))
        else:
            ids = r.compute(kind, spot, added, (old, _numbers(before)), _operand(val))
        r.store(spot, ptr.data, mask.data, val.data.dtype.itemsize, ids, added)
        if old is not None:
            before.attn_diag_ids = old
        return before

    def _reduce(self, call: Callable[..., Any], ops: Any, given: Any) -> Any:
        import triton.language as tl
        result = call(ops, given)
        handle = given[0].handle
        if not _is_number(handle) or _ids(handle) is None:
            return result
        first = result[0] if isinstance(result, (tuple, list)) else result
        standard = tl.standard
        kinds = {standard._sum_combine: (Op.ADD, np.add), standard._elementwise_max: (Op.MAXIMUM, np.fmax),
                 standard._elementwise_min: (Op.MINIMUM, np.fmin)}
        for name, kind in (("_argmax", (Op.MAXIMUM, np.fmax)), ("_argmin", (Op.MINIMUM, np.fmin))):
            for tie in ("left", "fast"):
                kinds[getattr(standard, f"{name}_combine_tie_break_{tie}", None)] = kind
        spot, numbers, ids = self.places.now(), _numbers(handle), _ids(handle)
        found = kinds.get(ops.combine_fn)
        if found is None:
            made = self.recorder.unknown("reduce", spot, _numbers(first.handle), (ids, numbers))
        else:
            axis = ops.axis
            if axis is None:
                ids, numbers, axis = ids.ravel(), numbers.ravel(), 0  # type: ignore[union-attr]
            made = self.recorder.reduce(found[0], spot, ids, numbers, axis, found[1])
        if made is not None:
            first.handle.attn_diag_ids = np.reshape(made, first.handle.data.shape)
        return result

    def _scan(self, call: Callable[..., Any], ops: Any, given: Any) -> Any:
        result = call(ops, given)
        handle = given[0].handle
        if _ids(handle) is not None:
            first = result[0].handle
            first.attn_diag_ids = self.recorder.unknown("scan", self.places.now(), _numbers(first), _ids_of(handle))
        return result

    # --- patches

    def _memory_of(self, values: Any) -> None:
        for x in values:
            if isinstance(x, (tuple, list)):
                self._memory_of(x)
                continue
            x = getattr(x, "base", x) if not hasattr(x, "data_ptr") else x
            if not hasattr(x, "untyped_storage"):
                continue
            storage = x.untyped_storage()
            base = storage.data_ptr()
            if base and self.recorder.region_at(base) is None:
                self.recorder.add_region(Region(base, storage.nbytes(), storage, known=False))

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        module: Any = sys.modules.get("triton.runtime.interpreter")
        if module is None:
            yield
            return
        builder = module.interpreter_builder
        undo: List[Tuple[Any, str, Any]] = []

        def patch(owner: Any, name: str, value: Any) -> None:
            undo.append((owner, name, owner.__dict__.get(name)))
            setattr(owner, name, value)

        special: Dict[str, Any] = {"create_masked_load": self._load, "create_masked_store": self._store,
                                   "create_atomic_rmw": self._atomic}
        for name in dir(type(builder)):
            if not name.startswith("create_"):
                continue
            call = getattr(builder, name)
            if name in special:
                patch(builder, name, functools.partial(special[name], call))
                continue

            def told(*args: Any, call: Any = call, name: str = name[len("create_"):], **kwargs: Any) -> Any:
                result = call(*args, **kwargs)
                self._after(name, call, result, args + tuple(kwargs.values()))
                return result

            patch(builder, name, told)
        for ops, method in ((module.ReduceOps, self._reduce), (module.ScanOps, self._scan)):
            call = ops.apply_impl
            patch(ops, "apply_impl", lambda ops, given, call=call, method=method: method(call, ops, given))

        lang_tensor = module._patch_lang_tensor

        def patch_lang_tensor(tensor: Any, scope: Any) -> None:
            lang_tensor(tensor, scope)
            plain = tensor.T.fget

            def transposed(x: Any) -> Any:
                result = plain(x)
                self._moved("trans", lambda h: builder_trans(h, None), result.handle, (x.handle,))
                return result

            scope.set_attr(tensor, "T", property(transposed))

        builder_trans = type(builder).create_trans.__get__(builder)
        patch(module, "_patch_lang_tensor", patch_lang_tensor)

        set_grid_idx = builder.set_grid_idx

        def next_program(x: int, y: int, z: int) -> None:
            set_grid_idx(x, y, z)
            self.recorder.block = self.recorder.next_block
            self.recorder.next_block += 1

        patch(builder, "set_grid_idx", next_program)
        set_grid_dim = builder.set_grid_dim

        def programs_are(x: int, y: int, z: int) -> None:
            set_grid_dim(x, y, z)
            self.programs = (x, y, z)

        patch(builder, "set_grid_dim", programs_are)
        run = module.GridExecutor.__call__

        def call_of_kernel(executor: Any, *args: Any, **kwargs: Any) -> Any:
            self.kernels += 1
            self._memory_of([*args, *kwargs.values()])
            try:
                with _without_modes():
                    return run(executor, *args, **kwargs)
            finally:
                self.recorder.block = 0
                code = getattr(executor.fn, "__code__", None)
                for remark in [] if code is None else program_remarks(code, self.programs):
                    if remark not in self.recorder.remarks:
                        self.recorder.remarks.append(remark)

        patch(module.GridExecutor, "__call__", call_of_kernel)
        try:
            yield
        finally:
            for owner, name, value in reversed(undo):
                if value is None:
                    delattr(owner, name)
                else:
                    setattr(owner, name, value)


def _ids_of(handle: Any) -> Tuple[Ids, Any]:
    return _ids(handle), _numbers(handle)


def _without_modes() -> Any:
    from torch.utils._python_dispatch import _disable_current_modes
    return _disable_current_modes()
