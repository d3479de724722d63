"""Arrays of any framework: their memory, as the harness reads it, and new ones of the same kind."""

from __future__ import annotations

from math import prod
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

_HOST = (1, 3)  # DLPack's kDLCPU, kDLCUDAHost
_NAMES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}

Exported = Tuple[object, bool]


def exported(role: str, x: Any) -> Exported:
    """An object with the memory of x on this machine, and whether its 16-bit integers are bfloat16.

    Nothing is copied but what lies on a device.
    """
    if hasattr(x, "detach"):  # torch refuses tensors that require a gradient
        x = x.detach()
    if hasattr(x, "__dlpack_device__") and x.__dlpack_device__()[0] not in _HOST:
        x = x.cpu() if hasattr(x, "cpu") else _numpy().asarray(x)
    if hasattr(x, "__array_interface__"):
        # NumPy has no letter for bfloat16, so such an array has no buffer.
        bf16 = getattr(x.dtype, "name", "") == "bfloat16"
        return (x.view("uint16"), True) if bf16 else (x, False)
    if hasattr(x, "__dlpack__"):
        return x.__dlpack__(), False
    try:
        return memoryview(x), False
    except TypeError:
        raise TypeError(f"{role} is of type {type(x).__name__}; expected an array with DLPack or the buffer protocol: "
                        "numpy, torch, JAX ...") from None


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise ImportError("attn_diag makes arrays with numpy, which is not installed: pip install numpy") from None
    return numpy


def _numpy_array(memory: Any, dtype: str, shape: Sequence[int]) -> Any:
    numpy = _numpy()
    kind: Any = _NAMES[dtype]
    if dtype == "bf16":
        try:
            import ml_dtypes
        except ImportError:
            raise ImportError("numpy has bf16 by ml_dtypes, which is not installed: pip install ml_dtypes") from None
        kind = ml_dtypes.bfloat16
    return numpy.frombuffer(memory, dtype=kind).reshape(shape)


def _torch_array(memory: Any, dtype: str, shape: Sequence[int]) -> Any:
    import torch
    return torch.frombuffer(memory, dtype=getattr(torch, _NAMES[dtype])).reshape(shape)


def made(framework: str, memory: Any, dtype: str, shape: Sequence[int], device: Any = None) -> Any:
    """A new array over `memory`, a bytearray. JAX and devices take a copy."""
    if framework == "numpy":
        if device is not None:
            raise ValueError(f"device is {device!r}, but numpy has none; leave it out, or say framework='torch'")
        return _numpy_array(memory, dtype, shape)
    if framework == "torch":
        tensor = _torch_array(memory, dtype, shape)
        return tensor if device is None else tensor.to(device)
    if framework == "jax":
        import jax
        return jax.device_put(_numpy_array(memory, dtype, shape), device)
    raise ValueError(f"framework is {framework!r}; expected 'numpy', 'torch' or 'jax'")


def framework_of(x: Any) -> str:
    module = type(x).__module__.partition(".")[0]
    return {"torch": "torch", "jax": "jax", "jaxlib": "jax"}.get(module, "numpy")


def zeros(dtype: str, shape: Sequence[int]) -> Any:
    """Of numpy."""
    size = prod(shape) * (4 if dtype == "fp32" else 2)
    return _numpy_array(bytearray(size), dtype, shape)


def like(x: Any, dtype: str) -> Callable[[Any, Sequence[int]], Any]:
    """Makes arrays of x's framework, type and device from a copy of memory that holds `dtype`."""
    framework = framework_of(x)
    device = getattr(x, "device", None) if framework != "numpy" else None

    def make(memory: Any, shape: Sequence[int]) -> Any:
        array = made(framework, bytearray(memory), dtype, shape, device)
        if array.dtype == x.dtype:
            return array
        return array.to(x.dtype) if framework == "torch" else array.astype(x.dtype)

    return make


def copied(x: Any) -> Any:
    return x.detach().clone() if hasattr(x, "detach") else x.copy()


def placed(whole: Any, at: Tuple[Any, ...], part: Any) -> Any:
    """A copy of `whole` in which `part` stands at `at`."""
    if framework_of(whole) == "jax":
        return whole.at[at].set(part)
    out = copied(whole)
    out[at] = part
    return out


def overwrite(x: Any, by: Any) -> None:
    if framework_of(x) != "jax":  # which writes nothing
        x[...] = by


def dense(x: Any) -> Any:
    """A copy without gaps, in the order of its shape."""
    if hasattr(x, "contiguous"):
        return copied(x.detach().contiguous())
    return x.copy(order="C") if hasattr(x, "flags") else copied(x)


def alike(a: Any, b: Any) -> bool:
    """Whether two results of one function have the same bits."""
    if hasattr(a, "detach"):
        a, b = (x.detach().cpu().float().numpy() for x in (a, b))
    return bool(_numpy().array_equal(_numpy().asarray(a).astype("float32").view("uint32"),
                                     _numpy().asarray(b).astype("float32").view("uint32")))


def shapes(sizes: Sequence[int], layout: str, rank: int = 4) -> Dict[str, Tuple[int, ...]]:
    """Of q, k and v, from (batch, heads, kv_heads, seqlen_q, seqlen_k, head_dim, head_dim_v)."""
    batch, heads, kv_heads, queries, keys, dims, dims_v = sizes

    def shape(heads: int, length: int, dims: int) -> Tuple[int, ...]:
        full = (batch, heads, length, dims) if layout == "BHSD" else (batch, length, heads, dims)
        if rank == 4:
            return full
        return full[1:] if rank == 3 else (length, dims)

    return {"q": shape(heads, queries, dims), "k": shape(kv_heads, keys, dims), "v": shape(kv_heads, keys, dims_v)}


def adapted(fn: Callable[..., Any], q: Any, k: Any, v: Any, dtype: str, layout: str) -> Callable[..., Dict[str, Exported]]:
    """fn as the harness calls it: with memory, on arrays of the kind of q, k and v."""
    makers = {"q": like(q, dtype), "k": like(k, dtype), "v": like(v, dtype)}
    rank = len(q.shape)

    def call(q: Any, k: Any, v: Any, sizes: Sequence[int]) -> Dict[str, Exported]:
        of = shapes(sizes, layout, rank)
        arrays = {role: makers[role](memory, of[role]) for role, memory in (("q", q), ("k", k), ("v", v))}
        o, lse = outputs(fn(*arrays.values()))
        arrays["o"] = o
        if lse is not None:
            arrays["lse"] = lse
        return {role: exported(role, array) for role, array in arrays.items()}

    return call


def outputs(returned: Any) -> Tuple[Any, Optional[Any]]:
    if returned is None:
        raise TypeError("the function returned None; expected o or (o, lse)")
    if not isinstance(returned, (tuple, list)):
        return returned, None
    if len(returned) != 2:
        raise TypeError(f"the function returned {len(returned)} values; expected o or (o, lse)")
    return returned[0], returned[1]
