"""The graph of how numbers were made, as the harness reads it (harness/host/values.h): every element that comes of q, k
or v has the number of a node beside it, in registers as an array of the same shape, in memory by its address."""

from __future__ import annotations

import bisect
from enum import IntEnum
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ._places import Spot, Words, idle, unchanged_remarks, unread

Ids = Optional["np.ndarray[Any, Any]"]  # uint32, 0: comes from no input; None: nothing of it does
Array = "np.ndarray[Any, Any]"


class Op(IntEnum):
    """As value_callouts::Op."""
    INPUT = 0
    LOAD = 1
    STORE = 3
    ADD = 4
    SUBTRACT = 5
    MULTIPLY = 6
    DIVIDE = 7
    FMA = 8
    NEGATE = 9
    ABSOLUTE = 10
    MAXIMUM = 11
    MINIMUM = 12
    EXP = 13
    EXP2 = 14
    LOG = 15
    LOG2 = 16
    ROUND = 17
    PICK = 18
    FUNCTION = 20
    ATOMIC_ADD = 21
    PRODUCT = 22


_NODE = np.dtype([("site", "<u4"), ("where", "<u4"), ("operand", "<u4", (3,)), ("value", "<f4")])
_INPUT = 0xFFFFFFFF
_NOBODY = 0xFFFFFFFF
_MOST_NODES = 24_000_000
_MOST_PRODUCTS = 120_000_000


class Region:
    """Memory of one allocation: by byte, which node lies there, and who stored it."""

    def __init__(self, base: int, size: int, owner: Any, known: bool, buffer: int = 0, itemsize: int = 1):
        self.base, self.size, self.owner = base, size, owner
        self.known = known              # everything that was stored there was seen
        self.buffer, self.itemsize = buffer, itemsize  # of an input: from 1
        self.made: Optional[Spot] = None  # of booleans: where they were computed
        self.stored_twice = 0             # elements that another program had stored to
        if buffer == 0:
            self.ids = np.zeros(size, np.uint32)
            self.blocks = np.full(size, _NOBODY, np.uint32)
            self.sites = np.zeros(size, np.uint32)


def _same(a: Any, b: Any) -> Any:
    return (a == b) | (np.isnan(a) & np.isnan(b))


class Recorder:
    def __init__(self) -> None:
        self.nodes = np.zeros(1 << 16, _NODE)
        self.count = 1
        self.products: List[Any] = []
        self.product_count = 0
        self.sites: List[Tuple[Any, ...]] = []
        self.block = 0                  # 0: the host; from 1 on programs of kernels
        self.next_block = 1
        self.full = False
        self.unseen = 0
        self.stored_twice = 0           # to what was returned
        self.replaced: List[Any] = []
        self.masked: List[Any] = []     # site, buffer and element of what masks kept from being loaded
        self.outside: Dict[int, Tuple[int, int, int, str]] = {}  # by site
        self.remarks: List[Tuple[Words, str]] = []  # what is wrong by itself
        self.untracked: Dict[str, str] = {}  # operations that are not known: where
        self.functions: Dict[Tuple[str, str], Any] = {}  # in which numbers were made
        self._read = np.zeros(1 << 16, bool)
        self._site_numbers: Dict[Tuple[Any, ...], int] = {}
        self._constants: Dict[float, int] = {}
        self._bases: List[int] = []
        self._regions: List[Region] = []

    # --- nodes

    def site(self, op: Op, spot: Spot, role: str = "", made: Optional[Spot] = None) -> int:
        """role: "address" of loads and stores, "condition" of choices (`made`: where that was computed, which is then
        the place); else the number itself."""
        key = (op, spot, role, made)
        found = self._site_numbers.get(key)
        if found is None:
            words = spot.words(role) if made is None else made.words(role, spot)
            self.sites.append((int(op), *words))
            self.functions[spot.level.file, spot.level.name] = spot.level.function
            found = self._site_numbers[key] = len(self.sites)
        return found

    def _grow(self, count: int) -> bool:
        if self.count + count > _MOST_NODES:
            self.full = True
            return False
        while self.count + count > len(self.nodes):
            self.nodes = np.concatenate([self.nodes, np.zeros(len(self.nodes), _NODE)])
            self._read = np.concatenate([self._read, np.zeros(len(self._read), bool)])
        return True

    def _add(self, site: int, operands: Sequence[Any], values: Any) -> Any:
        """Nodes of flat arrays of one length; zeros where there are too many."""
        count = len(values)
        if self.full or not self._grow(count):
            return np.zeros(count, np.uint32)
        part = self.nodes[self.count:self.count + count]
        part["site"] = site
        part["where"] = self.block << 10
        for i, operand in enumerate(operands):
            part["operand"][:, i] = operand
        part["value"] = values
        self.count += count
        return np.arange(self.count - count, self.count, dtype=np.uint32)

    def constants(self, values: Any) -> Any:
        values = np.asarray(values, np.float32)
        unique, inverse = np.unique(values, return_inverse=True)
        if len(unique) > 256:
            return self._add(0, [], values.ravel()).reshape(values.shape)
        numbers = np.zeros(len(unique), np.uint32)
        for i, value in enumerate(unique):
            key = float(value)
            if key not in self._constants or key != key:
                self._constants[key] = int(self._add(0, [], np.array([value], np.float32))[0])
            numbers[i] = self._constants[key]
        return numbers[inverse].reshape(values.shape)

    def compute(self, op: Op, spot: Spot, result: Any, *operands: Tuple[Ids, Any]) -> Ids:
        """A node for each element of `result` of which an operand comes of an input. Operands: ids and numbers."""
        if all(ids is None for ids, _ in operands):
            return None
        shape = np.shape(result)
        all_ids = [np.zeros(shape, np.uint32) if ids is None else np.broadcast_to(ids, shape) for ids, _ in operands]
        tracked = np.logical_or.reduce([ids != 0 for ids in all_ids])
        if not tracked.any():
            return None
        given = []
        for ids, (_, numbers) in zip(all_ids, operands):
            ids = ids[tracked]
            if (ids == 0).any():
                ids = np.where(ids == 0, 0, ids)
                lacks = ids == 0
                ids[lacks] = self.constants(np.broadcast_to(numbers, shape)[tracked][lacks])
            given.append(ids)
        out = np.zeros(shape, np.uint32)
        out[tracked] = self._add(self.site(op, spot), given, np.asarray(result, np.float32)[tracked])
        return out

    def unary(self, op: Op, spot: Spot, result: Any, ids: Ids) -> Ids:
        return self.compute(op, spot, result, (ids, 0))

    def pick(self, spot: Spot, made: Optional[Spot], condition: Any, a: Tuple[Ids, Any], b: Tuple[Ids, Any], result: Any) -> Ids:
        """Where `condition`, which was computed at `made`, a, else b."""
        if a[0] is None and b[0] is None:
            # Numbers that are added to scores to mask some.
            numbers = np.asarray(result, np.float32)
            if made is None or numbers.size < 2 or not (numbers < -1e4).any():
                return None
            site = self.site(Op.PICK, spot, "condition", made)
            picked: Ids = self._add(site, [self.constants(numbers).ravel()], numbers.ravel()).reshape(numbers.shape)
            return picked
        shape = np.shape(result)
        ia, ib = (np.zeros(shape, np.uint32) if ids is None else np.broadcast_to(ids, shape) for ids in (a[0], b[0]))
        condition = np.broadcast_to(condition, shape)
        chosen, other = np.where(condition, ia, ib), np.where(condition, ib, ia)
        tracked = chosen != other
        out = chosen.copy()
        if not tracked.any():
            return out
        numbers = np.asarray(result, np.float32)[tracked]
        chosen, other = chosen[tracked], other[tracked]
        lacks = chosen == 0
        if lacks.any():
            chosen[lacks] = self.constants(numbers[lacks])
        out[tracked] = self._add(self.site(Op.PICK, spot, "condition", made), [chosen, other], numbers)
        return out

    def reduce(self, op: Op, spot: Spot, ids: Ids, numbers: Any, axis: int, combine: Any) -> Ids:
        """One number after the other, along `axis`."""
        if ids is None or numbers.shape[axis] == 0:
            return None
        ids, numbers = np.moveaxis(ids, axis, 0), np.moveaxis(np.asarray(numbers, np.float32), axis, 0)
        sum_ids: Ids = ids[0]
        total = numbers[0]
        with np.errstate(all="ignore"):
            for i in range(1, len(ids)):
                after = combine(total, numbers[i])
                sum_ids = self.compute(op, spot, after, (sum_ids, total), (ids[i], numbers[i]))
                total = after
        return sum_ids

    def product(self, spot: Spot, a: Tuple[Ids, Any], b: Tuple[Ids, Any], d: Tuple[Ids, Any], result: Any) -> Ids:
        """Of matrices [..., M, K] and [..., K, N], and an addend."""
        if a[0] is None and b[0] is None:
            return self.compute(Op.ADD, spot, result, d, (None, 0)) if d[0] is not None else None
        shape = np.shape(result)

        def whole(x: Tuple[Ids, Any]) -> Any:
            ids = np.zeros(np.shape(x[1]), np.uint32) if x[0] is None else np.array(x[0])
            lacks = (ids == 0) & (x[1] != 0)
            if lacks.any():
                ids[lacks] = self.constants(x[1][lacks])
            return ids

        ia, ib = whole(a), whole(b)
        m, depth, n = ia.shape[-2], ia.shape[-1], ib.shape[-1]
        cells = int(np.prod(shape))
        if 2 * (self.product_count + cells * depth) > _MOST_PRODUCTS:
            self.full = True
            return None
        batch = shape[:-2]
        ia = np.broadcast_to(ia, (*batch, m, depth))
        ib = np.broadcast_to(np.swapaxes(ib, -1, -2), (*batch, n, depth))
        pairs = np.empty((*batch, m, n, depth, 2), np.uint32)
        pairs[..., 0] = ia[..., :, None, :]
        pairs[..., 1] = ib[..., None, :, :]
        addend = np.zeros(shape, np.uint32) if d[0] is None else np.array(np.broadcast_to(d[0], shape))
        lacks = (addend == 0) & (np.broadcast_to(d[1], shape) != 0)
        if lacks.any():
            addend[lacks] = self.constants(np.broadcast_to(d[1], shape)[lacks])
        begin = self.product_count + depth * np.arange(cells, dtype=np.uint32)
        self.products.append(pairs.ravel())
        self.product_count += pairs.size // 2
        made: Ids = self._add(self.site(Op.PRODUCT, spot), [addend.ravel(), begin, np.full(cells, depth, np.uint32)],
                              np.asarray(result, np.float32).ravel()).reshape(shape)
        return made

    def unknown(self, name: str, spot: Spot, result: Any, *operands: Tuple[Ids, Any]) -> Ids:
        """An operation that is not known: numbers of which nothing can be told, where shapes allow even that."""
        if all(ids is None for ids, _ in operands):
            return None
        self.untracked.setdefault(name, spot.text())
        shape = np.shape(result)
        first = next(int(ids.max()) for ids, _ in operands if ids is not None)
        made: Ids = self._add(self.site(Op.FUNCTION, spot), [np.full(int(np.prod(shape)), first, np.uint32)],
                              np.asarray(result, np.float32).ravel()).reshape(shape)
        return made

    # --- memory

    def add_region(self, region: Region) -> Region:
        at = bisect.bisect_left(self._bases, region.base)
        if at < len(self._bases) and self._bases[at] == region.base:
            self._regions[at] = region
        else:
            self._bases.insert(at, region.base)
            self._regions.insert(at, region)
        return region

    def region_at(self, address: int) -> Optional[Region]:
        at = bisect.bisect_right(self._bases, address) - 1
        if at < 0:
            return None
        region = self._regions[at]
        return region if address < region.base + region.size else None

    def _split(self, addresses: Any) -> List[Tuple[Region, Any]]:
        """Flat indices by region; addresses in none are left out."""
        out: List[Tuple[Region, Any]] = []
        if len(addresses) == 0:
            return out
        bases = np.array(self._bases, np.uint64)
        at = np.searchsorted(bases, addresses, side="right").astype(np.int64) - 1
        for number in np.unique(at):
            if number < 0:
                continue
            region = self._regions[number]
            inside = np.flatnonzero((at == number) & (addresses < np.uint64(region.base + region.size)))
            if len(inside):
                out.append((region, inside))
        return out

    def inside(self, spot: Spot, op: Op, addresses: Any, mask: Any, itemsize: int) -> Any:
        """`mask` without what lies outside of all memory that is known, of which that is told."""
        mask = np.array(np.broadcast_to(mask, addresses.shape))
        where = np.flatnonzero(mask)
        known = np.zeros(len(where), bool)
        wanted = addresses.ravel()[where]
        for region, at in self._split(wanted):
            known[at] = wanted[at] + np.uint64(itemsize) <= np.uint64(region.base + region.size)
        if known.all():
            return mask
        outside = wanted[~known]
        mask.ravel()[where[~known]] = False
        bases = np.array(self._bases, np.uint64)
        before = np.searchsorted(bases, outside[:1], side="right")[0]
        end = self._regions[before - 1].base + self._regions[before - 1].size if before else 0
        near = before > 0 and int(outside[0]) - end < 1 << 20
        site = self.site(op, spot, "address")
        verb = "writes" if op == Op.STORE else "reads"
        self.outside.setdefault(site, (site, int(outside[0]) - end if near else -1, len(outside),
                                       f"{verb} {len(outside)} elements outside of every tensor that the kernel was given"))
        return mask

    def _note_masked(self, site: int, addresses: Any) -> None:
        for region, inside in self._split(addresses):
            if region.buffer != 0:
                element = (addresses[inside] - np.uint64(region.base)).astype(np.int64) // region.itemsize
                self.masked.append(np.stack([np.full(len(inside), site, np.uint32), np.full(len(inside), region.buffer, np.uint32),
                                             element.astype(np.uint32), np.full(len(inside), self.block, np.uint32)], 1))

    def load(self, spot: Spot, addresses: Any, mask: Any, values: Any) -> Ids:
        """values: what was loaded, as fp32."""
        shape = addresses.shape
        mask = np.broadcast_to(mask, shape).ravel()
        where = np.flatnonzero(mask)
        if len(where) < len(mask):
            self._note_masked(self.site(Op.LOAD, spot, "address"), addresses.ravel()[~mask])
        wanted = addresses.ravel()[where]
        numbers = np.broadcast_to(values, shape).ravel()
        out = np.zeros(addresses.size, np.uint32)
        self.site(Op.LOAD, spot, "address")  # even if it makes no node
        for region, inside in self._split(wanted):
            at = where[inside]
            offset = (wanted[inside] - np.uint64(region.base)).astype(np.int64)
            if region.buffer != 0:
                count = len(at)
                out[at] = self._add(self.site(Op.INPUT, spot, "address"),
                                    [np.full(count, region.buffer, np.uint32), offset // region.itemsize,
                                     np.full(count, _INPUT, np.uint32)], numbers[at])
                continue
            ids = region.ids[offset]
            # Overwritten since by code that records nothing.
            changed = (ids != 0) & ~_same(self.nodes["value"][ids], numbers[at])
            if changed.any():
                self.unseen += int(changed.sum())
                ids[changed] = 0
            self._read[ids] = True
            unwritten = (ids == 0) & (region.blocks[offset] == _NOBODY) & np.isnan(numbers[at]) & region.known
            tells = (ids != 0) | unwritten
            if tells.any():
                out[at[tells]] = self._add(self.site(Op.LOAD, spot, "address"), [ids[tells]], numbers[at][tells])
        return out.reshape(shape) if out.any() else None

    def store(self, spot: Spot, addresses: Any, mask: Any, itemsize: int, ids: Ids, values: Any) -> None:
        shape = addresses.shape
        where = np.flatnonzero(np.broadcast_to(mask, shape).ravel())
        wanted = addresses.ravel()[where]
        kept = np.zeros(len(where), np.uint32)
        site = self.site(Op.STORE, spot, "address")
        if ids is not None:
            flat = np.broadcast_to(ids, shape).ravel()[where]
            tells = flat != 0
            numbers = np.broadcast_to(values, shape).ravel()[where]
            kept[tells] = self._add(site, [flat[tells]], np.asarray(numbers, np.float32)[tells])
        self.put(site, wanted, itemsize, kept)

    def put(self, site: int, addresses: Any, itemsize: int, ids: Any) -> None:
        """Flat: from now on these lie there."""
        for region, inside in self._split(addresses):
            if region.buffer != 0:
                continue
            offset = (addresses[inside] - np.uint64(region.base)).astype(np.int64)
            old = region.ids[offset]
            lost = (old != 0) & ~self._read[old]
            if lost.any() and len(self.replaced) < 1000:
                self.replaced.append(np.stack([old[lost], ids[inside][lost],
                                               np.full(int(lost.sum()), site, np.uint32)], 1))
            before = region.blocks[offset]
            region.stored_twice += int(((before != _NOBODY) & (before != 0) & (before != self.block)).sum())
            for byte in range(1, itemsize):
                region.ids[offset + byte] = 0
            region.ids[offset] = ids[inside]
            region.blocks[offset] = self.block
            region.sites[offset] = site

    # --- what the harness takes

    def output(self, addresses: Any) -> Tuple[Any, Any, Any, bool]:
        """Node, block and site of what lies there, and whether all of it was seen."""
        node, site = np.zeros(len(addresses), np.uint32), np.zeros(len(addresses), np.uint32)
        block = np.full(len(addresses), _NOBODY, np.uint32)
        seen = np.zeros(len(addresses), bool)
        for region, inside in self._split(addresses):
            if region.buffer != 0:
                continue
            offset = (addresses[inside] - np.uint64(region.base)).astype(np.int64)
            node[inside], block[inside], site[inside] = region.ids[offset], region.blocks[offset], region.sites[offset]
            self.stored_twice += region.stored_twice
            seen[inside] = region.known | (region.blocks[offset] != _NOBODY)
        return node, block, site, bool(seen.all())

    def _silent(self, op: Op, words: Words) -> int:
        """A site that made no number."""
        self.sites.append((-1 - int(op), *words))
        return len(self.sites)

    def graph(self, outputs: Sequence[Tuple[Any, Any, Any]], reason: str) -> Dict[str, Any]:
        never_read: List[int] = []
        # What is assigned in functions that ran, though no number that comes from an input was made there.
        for function in {id(f): f for f in self.functions.values() if f is not None}.values():
            assigned = "".join(f"{name}@{one.line}," for name, all_ in function.assigned.items() for one in all_)
            self._silent(Op.FUNCTION, (getattr(function.node, "lineno", 0), 0, function.file, function.name, "", "", assigned, ""))
            for words in idle(function, ("exp", "exp2"), {site[1] for site in self.sites}):
                self._silent(Op.EXP, words)
            self.remarks += unchanged_remarks(function)
            never_read += [self._silent(Op.FUNCTION, words) for words in unread(function)]
        remarks = [(self._silent(Op.FUNCTION, words), text) for words, text in self.remarks]
        products = np.concatenate(self.products) if self.products else np.zeros(0, np.uint32)
        replaced = np.concatenate(self.replaced) if self.replaced else np.zeros((0, 3), np.uint32)
        return {"sites": self.sites, "nodes": self.nodes[:self.count].view(np.uint8), "products": products,
                "outputs": list(outputs), "replaced": np.ascontiguousarray(replaced, np.uint32), "unseen": self.unseen,
                "stored_twice": self.stored_twice, "full": self.full, "masked": np.concatenate(self.masked) if self.masked else np.zeros((0, 4), np.uint32),
                "outside": list(self.outside.values()), "remarks": remarks, "unread": never_read, "reason": reason}
