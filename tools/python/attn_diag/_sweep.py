"""A function over many shapes, dtypes, masks: a verdict a case, in a table and in a file that can be gone on with."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import os
import random
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, TextIO, Tuple, Type, Union

from ._api import Json, check_function, inputs, input_kinds
from ._native import Error
from ._progress import Progress

_SIZES = ("batch", "heads", "kv_heads", "seqlen", "seqlen_q", "seqlen_k", "head_dim", "head_dim_v")
Shapes = Union[Mapping[str, Union[int, Iterable[int]]], Iterable[Mapping[str, int]]]


class Sweep:
    """Rows, a case each. True where every case was run and agrees."""

    def __init__(self, name: str, rows: List[Json]):
        self.name, self.rows = name, rows

    def count(self, verdict: str) -> int:
        return sum(row["verdict"] == verdict for row in self.rows)

    @property
    def verdict(self) -> str:
        """"diverges" where a case does; else "could_not_compare" where one could not be judged or raised; else "agrees"."""
        if self.count("diverges"):
            return "diverges"
        others = self.count("could_not_compare") + self.count("raised")
        return "agrees" if self.count("agrees") and not others else "could_not_compare"

    @property
    def agrees(self) -> bool:
        return self.verdict == "agrees"

    @property
    def failures(self) -> List[Json]:
        """The rows that neither agree nor are unsupported, the smallest case first."""
        rows = [row for row in self.rows if row["verdict"] not in ("agrees", "unsupported")]
        return sorted(rows, key=lambda row: row["case"]["batch"] * row["case"]["heads"] * row["case"]["seqlen_q"]
                      * row["case"]["seqlen_k"] * row["case"]["head_dim"])

    @property
    def headline(self) -> str:
        what = {"agrees": "AGREES", "diverges": "DIVERGES", "could_not_compare": "COULD NOT COMPARE"}[self.verdict]
        words = [("agrees", "agree"), ("diverges", "diverge"), ("could_not_compare", "could not be compared"),
                 ("raised", "raised"), ("unsupported", "are unsupported")]
        said = [f"{self.count(verdict)} {word}" for verdict, word in words if self.count(verdict)]
        return f"{what}: {self.name} in {len(self.rows)} cases: {', '.join(said) or 'none was run'}"

    def to_dict(self) -> Json:
        return {"command": "sweep", "function": self.name, "verdict": self.verdict, "headline": self.headline,
                "rows": self.rows}

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    def __bool__(self) -> bool:
        return self.agrees

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Json]:
        return iter(self.rows)

    def __str__(self) -> str:
        table = [("case", "verdict", "err/bound", "")]
        for row in self.rows:
            ratio = row["err_over_bound"]
            table.append((_text(row["case"]), row["verdict"].replace("_", " "),
                          "" if ratio is None else f"{float(ratio):.3g}", row["what"]))
        wide = [max(len(line[i]) for line in table) for i in range(3)]
        lines = [f"  {a:<{wide[0]}}  {b:<{wide[1]}}  {c:>{wide[2]}}  {d}".rstrip() for a, b, c, d in table]
        return "\n".join([self.headline, *lines])

    def __repr__(self) -> str:
        return f"<Sweep {self.headline}>"


def _text(case: Json) -> str:
    heads = f"H={case['heads']}" + ("" if case["kv_heads"] == case["heads"] else f" Hkv={case['kv_heads']}")
    dims = f"D={case['head_dim']}" + ("" if case["head_dim_v"] == case["head_dim"] else f" Dv={case['head_dim_v']}")
    rest = [case["dtype"], case["mask"], case["kind"]] + ([f"seed {case['seed']}"] if case["seed"] else [])
    rest += [f"kv_lens {','.join(map(str, case['kv_lens']))}"] if "kv_lens" in case else []
    return f"B={case['batch']} {heads} Sq={case['seqlen_q']} Sk={case['seqlen_k']} {dims} {' '.join(rest)}"


def _shapes(shapes: Shapes) -> Iterator[Dict[str, int]]:
    if isinstance(shapes, Mapping):
        axes = {name: [size] if isinstance(size, int) else list(size) for name, size in shapes.items()}
        of_grid = (dict(zip(axes, sizes)) for sizes in itertools.product(*axes.values()))
    else:
        of_grid = (dict(shape) for shape in shapes)
    for shape in of_grid:
        for name in shape:
            if name not in _SIZES:
                raise Error(f"{name!r} is no size; expected {', '.join(_SIZES)}.")
        length = shape.pop("seqlen", 128)
        full = {"batch": 1, "heads": 2, "seqlen_q": length, "seqlen_k": length, "head_dim": 64, **shape}
        full = {**full, "kv_heads": shape.get("kv_heads", full["heads"]),
                "head_dim_v": shape.get("head_dim_v", full["head_dim"])}
        if full["kv_heads"] < 1 or full["heads"] % full["kv_heads"]:
            continue  # of a grid of heads and kv_heads
        yield full


def _words(given: Union[str, Sequence[str]]) -> List[str]:
    return [given] if isinstance(given, str) else list(given)


def _cases(shapes: Shapes, dtypes: List[str], masks: List[str], kinds: List[str], seeds: Iterable[int],
           sample: Optional[int], sample_seed: int) -> List[Json]:
    cases: List[Json] = []
    for shape, dtype, mask, kind, seed in itertools.product(_shapes(shapes), dtypes, masks, kinds, list(seeds)):
        if mask == "causal" and shape["seqlen_q"] != shape["seqlen_k"]:
            continue
        case = {**shape, "dtype": dtype, "mask": mask, "kind": kind, "seed": seed}
        if case not in cases[-64:]:
            cases.append(case)
    if not cases:
        raise Error("There is no case: every shape was left out (heads that kv_heads does not divide, or mask 'causal' with "
                    "other queries than keys).")
    if sample is not None and sample < len(cases):
        chosen = sorted(random.Random(sample_seed).sample(range(len(cases)), sample))
        cases = [cases[i] for i in chosen]
    return cases


def _takes_mask(fn: Callable[..., Any]) -> bool:
    try:
        return "mask" in inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return False


def _source_of(fn: Any) -> Optional[str]:
    """A hash of the file that fn was written in; None: it has none, or it cannot be told."""
    while True:
        fn = inspect.unwrap(fn) if callable(fn) else fn
        inner = getattr(fn, "func", None) or getattr(fn, "fn", None)  # partial; @triton.jit
        if inner is None:
            break
        fn = inner
    try:
        path = inspect.getsourcefile(fn if hasattr(fn, "__code__") else type(fn))
        if path is None:
            return None
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()[:16]
    except (OSError, TypeError):
        return None


class _Log:
    """JSON lines: what was swept, then a row each."""

    def __init__(self, path: Union[str, "os.PathLike[str]"], head: Json):
        self.done: Dict[str, Json] = {}
        exists = os.path.exists(path) and os.path.getsize(path) > 0
        if exists:
            self._read(os.fspath(path), head)
        self._file: TextIO = open(path, "a", encoding="utf-8")
        if not exists:
            self.write(head)

    def _read(self, path: str, head: Json) -> None:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        lines = text.splitlines()
        try:
            before = json.loads(lines[0])
            rows = [json.loads(line) for line in (lines[1:] if text.endswith("\n") else lines[1:-1])]
            self.done = {json.dumps(row["case"], sort_keys=True): row for row in rows}
        except (ValueError, KeyError, TypeError):
            raise Error(f"{path} is no log of a sweep. Name another file.") from None
        if before.get("source") is None or head["source"] is None:
            raise Error(f"{path} is there already, and whether the function is still the one that it was written of cannot "
                        "be told: no source file of it is known. Remove the file, or name another.")
        if before != head:
            raise Error(f"{path} was written of another function, other options, or before the function's source file was "
                        "changed, so that its rows do not hold of this one. Remove it, or name another.")
        if not text.endswith("\n"):  # cut off while a row was written
            with open(path, "w", encoding="utf-8") as file:
                file.write("".join(f"{line}\n" for line in lines[:-1]))

    def write(self, row: Json) -> None:
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def sweep(fn: Callable[..., Any], shapes: Shapes, *, dtypes: Union[str, Sequence[str]] = "fp16",
          masks: Union[str, Sequence[str]] = "none", kinds: Union[str, Sequence[str]] = "randn",
          seeds: Iterable[int] = (0,), sample: Optional[int] = None, sample_seed: int = 0, layout: str = "BHSD",
          framework: str = "numpy", device: Any = None, runs: int = 2, scale: Optional[float] = None,
          atol: Optional[float] = None, rtol: Optional[float] = None,
          kv_lens: Optional[Callable[[int, int], Sequence[int]]] = None,
          unsupported: Tuple[Type[BaseException], ...] = (NotImplementedError,),
          log: Union[str, "os.PathLike[str]", None] = None,
          progress: Union[bool, Callable[[str], None], None] = None) -> Sweep:
    """check_function() of fn on inputs() of every shape, dtype, mask, kind of numbers and seed.

        attn_diag.sweep(fn, dict(heads=[2, 8], kv_heads=[1, 2], seqlen=[1, 63, 64, 65, 200]), dtypes=["fp16", "bf16"])

    shapes       sizes and what they may be (every combination of which kv_heads divides heads), or a list of shapes; the
                 names are those of inputs(), and what is left out is as there
    kv_lens      kv_lens(batch, seqlen_k) says how many keys each batch entry has; fn is called with kv_lens=[...]
    masks        with several, fn(q, k, v, mask=...) is told which; "causal" leaves out Sq != Sk
    sample       so many cases of all, drawn by `sample_seed`
    framework    what fn gets: "numpy", "torch" or "jax"; device: of the latter two
    unsupported  what fn raises for cases that it does not take: they are rows, and nobody's failure
    log          a file of JSON lines, a row each as it is known. Where it is there already, its rows are taken and the
                 rest is run: of the same function, whose source file has not changed, and the same options
    progress     True: on stderr; a function: it gets each line; None: True on a terminal
    runs, scale, layout, atol, rtol  as check_function() has them

    Whatever else fn raises is a row "raised". Ctrl-C ends it; the log then has what is known.
    """
    all_masks = _words(masks)
    takes_mask = _takes_mask(fn)
    if len(all_masks) > 1 and not takes_mask:
        raise Error(f"There are {len(all_masks)} masks, but the function has no parameter `mask` to be told which. Give it one, "
                    "or sweep once for each mask.")
    for kind in _words(kinds):
        if kind not in input_kinds():
            raise Error(f"{kind!r} is no kind of inputs; expected one of {', '.join(input_kinds())}.")
    cases = _cases(shapes, _words(dtypes), all_masks, _words(kinds), seeds, sample, sample_seed)
    if kv_lens is not None:
        cases = [{**case, "kv_lens": [int(n) for n in kv_lens(case["batch"], case["seqlen_k"])]} for case in cases]
    name = getattr(fn, "__qualname__", type(fn).__qualname__)
    options = {"layout": layout, "framework": framework, "device": None if device is None else str(device), "runs": runs,
               "scale": scale, "atol": atol, "rtol": rtol, "unsupported": [kind.__qualname__ for kind in unsupported]}
    head = {"sweep": name, "source": _source_of(fn), "options": options}
    file = None if log is None else _Log(log, head)
    rows: List[Json] = []

    def run(case: Json) -> Json:
        sizes = {key: case[key] for key in _SIZES if key in case}
        q, k, v = inputs(case["kind"], dtype=case["dtype"], layout=layout, mask=case["mask"], scale=scale,
                         seed=case["seed"], framework=framework, device=device, **sizes)
        raised: List[BaseException] = []

        def called(q: Any, k: Any, v: Any) -> Any:
            try:
                more = {"mask": case["mask"]} if takes_mask else {}
                return fn(q, k, v, **more, **({"kv_lens": case["kv_lens"]} if kv_lens is not None else {}))
            except Exception as error:
                raised.append(error)
                raise

        called.__qualname__ = name
        begin = time.monotonic()
        row: Json = {"case": case, "err_over_bound": None}
        try:
            result = check_function(called, q, k, v, runs=runs, mask=case["mask"], scale=scale, layout=layout,
                                    kv_lens=case.get("kv_lens"), atol=atol, rtol=rtol)
            ratios = [t["max_err_over_bound"] for s in result.stages for t in s["tensors"] if t["compared"]]
            row.update(verdict=result.verdict, err_over_bound=max(ratios, key=float, default=None),
                       what="" if result.agrees else result.headline.partition(": ")[2])
        except Exception as error:
            if not raised and not isinstance(error, (Error, TypeError)):
                raise  # none of the function's: of making inputs, of memory
            verdict = "could_not_compare" if not raised else "unsupported" if isinstance(error, unsupported) else "raised"
            row.update(verdict=verdict,
                       what=f"{type(error).__name__}: {error}".partition("\n")[0])
        return {**row, "seconds": round(time.monotonic() - begin, 3)}

    try:
        with Progress(progress) as shown:
            for i, case in enumerate(cases):
                known = None if file is None else file.done.get(json.dumps(case, sort_keys=True))
                if known is None:
                    shown.say(f"{i + 1}/{len(cases)} {_text(case)}")
                    known = run(case)
                    if file is not None:
                        file.write(known)
                rows.append(known)
    finally:
        if file is not None:
            file.close()
    return Sweep(name, rows)
