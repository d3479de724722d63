"""kv_lens of what needs a function: each batch entry by itself, with its own keys, in its place among the others."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Sequence, Tuple

from . import _arrays, _native

_WORDS = {"agrees": "AGREES", "diverges": "DIVERGES", "could_not_compare": "COULD NOT COMPARE"}


class Entries:
    """What was found of several batch entries, in the shape of what is found of one (_native.Rendered)."""

    line = ""

    def __init__(self, lens: Sequence[int], found: List[Tuple[int, _native.Rendered]]):
        self._lens, self._found = list(lens), found
        worst = next((one for verdict in ("diverges", "could_not_compare", "agrees") for one in found
                      if one[1].verdict == verdict))
        self.verdict = worst[1].verdict
        said = worst[1].headline.partition(": ")[2]
        self.headline = f"{_WORDS[self.verdict]}: {self._place(worst[0])}: {said}"
        if self.verdict == "agrees":
            self.headline = f"AGREES: {len(found)} batch entries, each by itself: {said}"

    def _place(self, batch: int) -> str:
        return f"batch entry {batch} with its {self._lens[batch]} keys"

    @property
    def text(self) -> str:
        lines = [self.headline]
        for batch, one in self._found:
            lines += ["", f"Of {self._place(batch)}:", *(f"  {line}".rstrip() for line in one.text.splitlines())]
        without = [batch for batch, keys in enumerate(self._lens) if keys == 0]
        if without:
            lines += ["", f"Of batch entries without keys ({', '.join(map(str, without))}) compare() says whether o is 0."]
        return "\n".join(lines)

    @property
    def json(self) -> str:
        entries = [{"batch": batch, "keys": self._lens[batch], **json.loads(one.json)} for batch, one in self._found]
        return json.dumps({"verdict": self.verdict, "headline": self.headline, "kv_lens": self._lens, "entries": entries})


def entry(fn: Callable[..., Any], arrays: Dict[str, Any], layout: str, batch: int, keys: int) -> Tuple[Any, Dict[str, Any]]:
    """fn as a function of that entry's q, k and v alone, and these."""
    whole = len(arrays["q"].shape) == 4
    axis = len(arrays["q"].shape) - (2 if layout == "BHSD" else 3)

    def place(role: str) -> Tuple[Any, ...]:
        length = slice(None) if role == "q" else slice(keys)
        at = [slice(None)] * len(arrays[role].shape)
        if len(at) > 1 and axis >= 0:
            at[axis] = length
        if whole:
            at[0] = slice(batch, batch + 1)
        return tuple(at)

    own = {role: _arrays.copied(x[place(role)]) for role, x in arrays.items()}

    def of_entry(q: Any, k: Any, v: Any) -> Any:
        given = {"q": q, "k": k, "v": v}
        for role, x in given.items():
            if tuple(x.shape) != tuple(own[role].shape):
                raise NotImplementedError(f"with kv_lens sizes stay as they are: {role} is {tuple(x.shape)}, and was "
                                          f"{tuple(own[role].shape)}")
        full = {role: _arrays.placed(arrays[role], place(role), x) for role, x in given.items()}
        o, lse = _arrays.outputs(fn(*full.values()))
        # What fn wrote into its inputs is seen.
        for role, x in given.items():
            _arrays.overwrite(x, full[role][place(role)])
        at = slice(batch, batch + 1) if whole else slice(None)
        return (o[at], lse[at]) if lse is not None else o[at]

    of_entry.__qualname__ = getattr(fn, "__qualname__", type(fn).__qualname__)
    return of_entry, own


def each(fn: Callable[..., Any], arrays: Dict[str, Any], layout: str, lens: List[int],
         look: Callable[[Any, Dict[str, Any]], _native.Rendered]) -> Entries:
    """look() at every entry that has keys."""
    found = [(batch, look(*entry(fn, arrays, layout, batch, keys))) for batch, keys in enumerate(lens) if keys > 0]
    if not found:
        raise _native.Error("No batch entry of kv_lens has keys: there is nothing to look at. compare() says whether o is 0.")
    return Entries(lens, found)
