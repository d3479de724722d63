"""Prints what h5py sees of a dump, one fact a line, for dump_test.cc to check."""

import sys

import h5py
import numpy


def text(value):
    if isinstance(value, numpy.ndarray):
        return " ".join(text(v) for v in value)
    return value.decode() if isinstance(value, bytes) else str(value)


with h5py.File(sys.argv[1], "r") as f:
    print("schema", f.attrs["schema"])
    print("notes", text(f.attrs["notes"]))
    for name in ("mask", "layout", "dtype", "frame", "seqlen_q", "block_m", "num_splits"):
        print(name, f["problem"].attrs[name])
    print("command_line", f["provenance"].attrs["command_line"])
    print("seed", f["provenance"].attrs["seed"])
    print("exempt", f["stages/reduce"].attrs["exempt_running_m"])
    print("first_never_written", text(f["stages/qk/S"].attrs["first_never_written"]))
    print("runs", f.attrs["runs"])
    print("first_moved", text(f["stages/softmax/P"].attrs["first_moved"]))
    for path in sys.argv[2:]:
        d = f[path]
        print(path, "dtype", d.dtype)
        print(path, "labels", " ".join(dim.label for dim in d.dims))
        print(path, "scales", " ".join(list(dim.keys())[0] for dim in d.dims))
        print(path, "from", " ".join(str(dim[0][0]) for dim in d.dims))
        print(path, "to", " ".join(str(dim[0][-1]) for dim in d.dims))
        last = tuple(n - 1 for n in d.shape)
        print(path, "last", "%.17g" % float(d[last]))
