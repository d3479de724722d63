"""Is an attention kernel wrong, or is it rounding? Where is it wrong first, and what is the bug?

    import attn_diag
    print(attn_diag.compare(q, k, v, o, mask="causal"))      # what a kernel made of q, k and v
    print(attn_diag.check_function(fn, q, k, v))             # or the function: fn(q, k, v) -> o or (o, lse)

Arrays are of numpy (bf16 by ml_dtypes), torch, JAX, or of anything with DLPack or the buffer protocol. They are
dense in any strides, on the host or, copied from there, on a device. docs/python.md has more.
"""

from ._api import (Comparison, Diagnosis, Properties, Result, Xray, check_function, compare, diagnose, input_kinds,
                   inputs, properties, xray)
from ._files import load_inputs
from ._lines import LineTrace, trace_lines
from ._native import Error, __version__
from ._shrink import Shrunk, shrink
from ._sweep import Sweep, sweep

__all__ = ["Comparison", "Diagnosis", "Error", "LineTrace", "Properties", "Result", "Shrunk", "Sweep", "Xray", "__version__",
           "check_function", "compare", "diagnose", "input_kinds", "inputs", "load_inputs", "properties", "shrink",
           "sweep", "trace_lines", "xray"]
