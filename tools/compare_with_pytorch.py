#!/usr/bin/env python3
"""Times PyTorch's scaled_dot_product_attention as `attn-diag bench` times kernels, for
`attn-diag bench --against FILE`; or compares its output with that of a kernel in a dump.

Each backend is timed that PyTorch has for the problem: its own choice (default), flash, efficient
and cudnn. One sample is the time of a CUDA graph with many calls, between two events, divided by
the calls; the calls go through inputs at different addresses, together larger than twice the L2
cache. Where a call cannot be captured in a graph, the calls are made one by one.

Inputs are standard normal numbers from a fixed seed: the same distribution as attn-diag's randn,
not the same numbers. With --dump FILE.h5 they are the q, k and v of the dump, its problem is the
only one, and PyTorch's o is compared with the kernel's o in the dump (needs h5py).

exit code: 0 written; 1 the dump's o and PyTorch's differ by more than --atol; 2 could not run
"""

import argparse
import json
import statistics
import sys

SCHEMA = "attn-diag-pytorch/1"
BACKENDS = ("default", "flash", "efficient", "cudnn")
DTYPES = ("fp16", "bf16", "fp32")
MASKS = ("none", "causal")


class CannotRun(Exception):
    """What the user can mend; the message says how."""


def problems_of(arguments):
    """Every combination of the lists, as attn-diag's reports write a problem."""
    return [{"batch": arguments.batch, "heads": arguments.heads, "kv_heads": arguments.heads,
             "seqlen_q": seqlen, "seqlen_k": seqlen, "head_dim": arguments.head_dim,
             "head_dim_v": arguments.head_dim, "dtype": arguments.dtype, "mask": mask}
            for seqlen in arguments.seqlen for mask in arguments.mask]


def input_sets(problem, element_bytes, l2_bytes):
    """How many sets of q, k and v are together larger than twice the L2 cache; at least two."""
    dims = problem["head_dim"] + problem["head_dim_v"]
    one = problem["batch"] * element_bytes * (
        problem["heads"] * problem["seqlen_q"] * problem["head_dim"]
        + problem["kv_heads"] * problem["seqlen_k"] * dims)
    return max(2, -(-2 * l2_bytes // one))


def summarise(seconds):
    """Order statistics as `attn-diag bench` takes them."""
    ordered = sorted(seconds)

    def quantile(q):
        at = q * (len(ordered) - 1)
        below = int(at)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (at - below) * (ordered[above] - ordered[below])

    return {"median": statistics.median(ordered), "min": ordered[0],
            "lower_quartile": quantile(0.25), "upper_quartile": quantile(0.75)}


def problem_of_dump(attributes):
    """The problem a dump's /problem attributes state, if PyTorch's function can be given it."""
    text = {key: value.decode() if isinstance(value, bytes) else value
            for key, value in attributes.items()}
    problem = {key: int(text[key]) for key in
               ("batch", "heads", "kv_heads", "seqlen_q", "seqlen_k", "head_dim", "head_dim_v")}
    problem["dtype"] = str(text["dtype"])
    mask = str(text["mask"]).split(":")[0]
    square = problem["seqlen_q"] == problem["seqlen_k"]
    top_left = square or not str(text["mask"]).endswith("bottom_right")
    if mask not in MASKS or (mask == "causal" and not top_left):
        raise CannotRun(f"the dump's mask is {text['mask']}: PyTorch's is_causal is top_left only.")
    problem["mask"] = mask
    return problem, str(text["layout"]), float(text["softmax_scale"])


def import_torch():
    try:
        import torch
    except ImportError as error:
        raise CannotRun(f"PyTorch is not installed for {sys.executable} ({error}). Run this script "
                        "with a Python that has torch; nothing was timed.") from error
    if not torch.cuda.is_available():
        raise CannotRun(f"PyTorch {torch.__version__} finds no usable GPU; nothing was timed.")
    return torch


class Attention:
    """Calls of scaled_dot_product_attention on one problem with one backend."""

    def __init__(self, torch, problem, backend, scale=None):
        self.torch, self.problem, self.scale = torch, problem, scale
        self.backends = None
        if backend != "default":
            from torch.nn.attention import SDPBackend
            self.backends = [{"flash": SDPBackend.FLASH_ATTENTION,
                              "efficient": SDPBackend.EFFICIENT_ATTENTION,
                              "cudnn": SDPBackend.CUDNN_ATTENTION}[backend]]

    def __call__(self, q, k, v):
        import contextlib
        from torch.nn.attention import sdpa_kernel
        chosen = sdpa_kernel(self.backends) if self.backends else contextlib.nullcontext()
        grouped = {"enable_gqa": True} if self.problem["kv_heads"] != self.problem["heads"] else {}
        with chosen:
            return self.torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=self.problem["mask"] == "causal", scale=self.scale, **grouped)


def torch_dtype(torch, name):
    return {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}[name]


def make_inputs(torch, problem):
    """q, k, v as BHSD, from a fixed seed."""
    generator = torch.Generator(device="cuda").manual_seed(0)
    dtype = torch_dtype(torch, problem["dtype"])

    def normal(heads, seqlen, dim):
        shape = (problem["batch"], heads, seqlen, dim)
        return torch.randn(shape, generator=generator, device="cuda").to(dtype)

    return (normal(problem["heads"], problem["seqlen_q"], problem["head_dim"]),
            normal(problem["kv_heads"], problem["seqlen_k"], problem["head_dim"]),
            normal(problem["kv_heads"], problem["seqlen_k"], problem["head_dim_v"]))


def measure(torch, call, inputs, sets, samples):
    """Samples of seconds a call, whether they are from a graph."""
    copies = [tuple(x.clone() for x in inputs) for _ in range(sets)]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # capturing wants a warm-up on a stream of its own
        for one in copies[:3]:
            call(*one)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()

    def one_by_one():  # the outputs are kept, so that each has an address of its own
        return [call(*one) for one in copies]

    graph = None
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = one_by_one()
        replay = graph.replay
    except RuntimeError as error:
        print(f"  not captured in a graph: {first_line(error)}", file=sys.stderr)
        torch.cuda.synchronize()
        graph, outputs, replay = None, None, one_by_one
    for _ in range(3):
        replay()
    seconds = []
    for _ in range(samples):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        replay()
        end.record()
        end.synchronize()
        seconds.append(begin.elapsed_time(end) * 1e-3 / sets)
    del outputs
    return seconds, graph is not None


def first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def time_problem(torch, problem, inputs, arguments, scale=None):
    """One row for each backend; "seconds" is null with a reason where it does not take the problem."""
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    sets = input_sets(problem, inputs[0].element_size(), l2_bytes)
    rows = []
    for backend in arguments.backend:
        row = {"backend": backend, "problem": problem, "seconds": None, "why": None,
               "samples": arguments.samples, "launches_per_sample": sets, "input_sets": sets}
        try:
            call = Attention(torch, problem, backend, scale)
            seconds, row["graph"] = measure(torch, call, inputs, sets, arguments.samples)
            row["seconds"] = summarise(seconds)
            print(f"  {backend}: {row['seconds']['median'] * 1e6:.2f} us", file=sys.stderr)
        except RuntimeError as error:
            row["why"] = first_line(error)
            print(f"  {backend}: {row['why']}", file=sys.stderr)
        rows.append(row)
    return rows


def read_dump(torch, path):
    """The problem, its scale, q, k, v (BHSD, on the GPU) and the kernel's o of a dump."""
    try:
        import h5py
    except ImportError as error:
        raise CannotRun(f"--dump needs h5py, which {sys.executable} does not have.") from error
    try:
        with h5py.File(path, "r") as file:
            problem, layout, scale = problem_of_dump(dict(file["problem"].attrs))
            dtype = torch_dtype(torch, problem["dtype"])  # bf16 is read as float32, exactly
            tensors = [torch.from_numpy(file[f"inputs/{name}"][...]).cuda().to(dtype)
                       for name in "qkv"]
            if layout == "BSHD":
                tensors = [t.transpose(1, 2).contiguous() for t in tensors]
            if "stages/reduce/o" not in file:
                raise CannotRun(f"{path} holds no o (stages/reduce/o): dump with --stage reduce.")
            o = torch.from_numpy(file["stages/reduce/o"][...]).cuda()
            if list(o.shape[:3]) != [problem[x] for x in ("batch", "heads", "seqlen_q")]:
                raise CannotRun(f"{path} holds some rows of o only: dump them all.")
    except (OSError, KeyError) as error:
        raise CannotRun(f"{path} is not a dump of attn-diag: {error}") from error
    return problem, scale, tensors, o


def compare_outputs(torch, problem, scale, inputs, o, backends):
    """The largest difference between the kernel's o and each backend's; null where it has none."""
    found = {}
    for backend in backends:
        try:
            other = Attention(torch, problem, backend, scale)(*inputs)
            found[backend] = (o.double() - other.double()).abs().max().item()
        except RuntimeError as error:
            print(f"  {backend}: {first_line(error)}", file=sys.stderr)
            found[backend] = None
    return found


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)

    def list_of(kind, choices=None):
        def parse_list(text):
            values = [kind(word) for word in text.split(",")]
            for value in values:
                if choices and value not in choices:
                    raise argparse.ArgumentTypeError(f"'{value}' is not one of {', '.join(choices)}")
                if kind is int and value < 1:
                    raise argparse.ArgumentTypeError(f"{value} is not positive")
            return values
        return parse_list

    parser.add_argument("-o", "--output", help="the JSON file to write (else stdout)")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--seqlen", type=list_of(int), default=[128, 512, 2048, 8192])
    parser.add_argument("--dtype", choices=DTYPES, default="fp16")
    parser.add_argument("--mask", type=list_of(str, MASKS), default=["none", "causal"])
    parser.add_argument("--backend", type=list_of(str, BACKENDS), default=list(BACKENDS))
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--dump", metavar="FILE.h5")
    parser.add_argument("--atol", type=float, default=2e-3, help="of --dump (2e-3)")
    return parser.parse_args(arguments)


def run(arguments):
    torch = import_torch()
    report = {"schema": SCHEMA, "device": torch.cuda.get_device_name(0),
              "torch": torch.__version__, "cuda": torch.version.cuda,
              "cudnn": torch.backends.cudnn.version(), "rows": []}
    agrees = True
    with torch.inference_mode():
        if arguments.dump:
            problem, scale, inputs, o = read_dump(torch, arguments.dump)
            report["dump"] = arguments.dump
            report["max_abs_difference"] = compare_outputs(torch, problem, scale, inputs, o,
                                                           arguments.backend)
            compared = [x for x in report["max_abs_difference"].values() if x is not None]
            if not compared:
                raise CannotRun("no backend takes the dump's problem: nothing was compared.")
            agrees = all(x <= arguments.atol for x in compared)
            report["rows"] = time_problem(torch, problem, inputs, arguments, scale)
        else:
            for problem in problems_of(arguments):
                print(f"S={problem['seqlen_q']} {problem['mask']}", file=sys.stderr)
                report["rows"] += time_problem(torch, problem, make_inputs(torch, problem), arguments)
    text = json.dumps(report, indent=1) + "\n"
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)
    return 0 if agrees else 1


def main():
    try:
        return run(parse(sys.argv[1:]))
    except (CannotRun, OSError) as error:
        print(f"compare_with_pytorch.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
