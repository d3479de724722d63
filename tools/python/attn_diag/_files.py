"""q, k and v of a case that was saved."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Tuple, Union

from . import _arrays
from ._native import Error

_DTYPES = {"F16": "fp16", "BF16": "bf16", "F32": "fp32"}


def load_inputs(path: Union[str, "os.PathLike[str]"], *, framework: str = "numpy",
                device: Any = None) -> Tuple[Any, Any, Any]:
    """q, k and v of a .safetensors file that save() wrote, as inputs() makes them: the same bits.

    Error where the file is none of that, OSError where it cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read()
    try:
        end = 8 + int.from_bytes(data[:8], "little")
        header: Dict[str, Any] = json.loads(data[8:end])
        parts = []
        for role in "qkv":
            begin, stop = header[role]["data_offsets"]
            shape, dtype = header[role]["shape"], _DTYPES[header[role]["dtype"]]
            memory = bytearray(data[end + begin:end + stop])
            parts.append(_arrays.made(framework, memory, dtype, shape, device))
    except (KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Error(f"{os.fspath(path)} is no file that attn_diag's save() wrote ({error}): expected safetensors with q, k "
                    "and v of fp16, bf16 or fp32. Files of other programs are for `attn-diag compare FILE`.") from None
    return parts[0], parts[1], parts[2]
