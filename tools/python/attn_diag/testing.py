"""Attention in tests: a failure says what is wrong, in which pattern, and which bug makes such numbers."""

from __future__ import annotations

import os
import re
import tempfile
from math import isfinite
from pathlib import Path
from typing import Any, Optional

from ._api import Comparison, compare
from ._html import page
from ._native import Error

# Where failing cases are written: --attn-diag-dump DIR of pytest. None: a new folder for temporary files.
dump_directory: Optional[str] = None


class AttentionError(AssertionError):
    """A comparison that did not agree: `result` is it."""

    def __init__(self, text: str, result: Comparison):
        super().__init__(text)
        self.result = result


def _free_path(name: str) -> Path:
    global dump_directory
    if dump_directory is None:
        dump_directory = tempfile.mkdtemp(prefix="attn-diag-")
    folder = Path(dump_directory)
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(1, 10000):
        path = folder / f"{name}{'' if i == 1 else f'-{i}'}.safetensors"
        if not path.exists():
            return path
    raise FileExistsError(f"{folder} is full of cases named {name}: empty it")


def _name() -> str:
    """Of the running test, as a file name."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "attention ").rpartition(" ")[0].rpartition("::")[2]
    return re.sub(r"[^\w.=-]+", "_", test).strip("_.")[:100] or "attention"


def assert_attention(o: Any, q: Any, k: Any, v: Any, lse: Any = None, **said: Any) -> Comparison:
    """Passes where compare(q, k, v, o, lse, **said) agrees, and returns that; else raises AttentionError.

    What failed is written to --attn-diag-dump DIR, else to a new temporary folder, as NAME-OF-THE-TEST.safetensors,
    which `attn-diag diagnose` and `attn-diag compare` take, and as .html. A case of which nothing could be judged fails.
    """
    __tracebackhide__ = True
    result = compare(q, k, v, o, lse, **said)
    if result.agrees:
        return result
    lines = [result.headline]
    path = result.save(_free_path(_name()))
    diagnosis = None
    if result.first is not None:
        first = result.first
        error, bound = abs(first["actual"] - first["expected"]), first["bound"]
        ratio = f": {error / bound:.3g}x what rounding can explain" if bound and isfinite(error) else ""
        index = ", ".join(str(first[axis]) for axis in ("batch", "head", "query", "dim") if axis in first)
        lines.append(f"  {first['tensor']}({index}) is {first['actual']:.9g}, expected {first['expected']:.9g} within "
                     f"{bound:.4g}{ratio}")
        lines += [f"  {kind:<6} {text}" for kind, text in result.pattern]
        try:
            diagnosis = result._diagnose(pairs=False)  # which the command below looks for, too
            lines.append(diagnosis.headline)
        except Error as error:  # of a batch entry without keys
            lines.append(f"  {error}")
    report = Path(path).with_suffix(".html")
    report.write_text(page(result, _name(), [] if diagnosis is None else [str(diagnosis)]), encoding="utf-8")
    lines += [f"  Dump: {path}", f"  Page: {report}", f"  Reproduce: {result.reproduce}"]
    if diagnosis is not None:
        lines.append(f"  The bug: {result._line('diagnose')}")
    raise AttentionError("\n".join(lines), result)
