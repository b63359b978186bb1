"""The flexible walk: slots side by side are alternatives, and any mix of them may make up the count.

Where the simple walk refuses two slots at one level, this one works out which mix of them packs the most slots out of
what is right below a vertex. An `xor_slot` is stricter: all of the job's slots are of one and the same kind, so each
kind is tried in turn, as a jobspec of its own. Fluxion: resource/traversers/dfu_flexible.cpp.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from batkube.graph.requests.compiled import CompiledRequest, RequestLevel
from batkube.graph.requests.jobspec import SLOT, XOR_SLOT, Jobspec, VertexRequest
from batkube.graph.traversal.candidates import Pools, SlotPacker
from batkube.graph.traversal.walk import VertexFit, Walk
from batkube.kernel.errors import InputError

_VARIANTS_MAX = 1000
_Counts = tuple[tuple[str, int], ...]
#: How many slots can be packed from some counts, which kind first, and what remains after it.
_Mix = tuple[int, int, _Counts]


class FlexibleWalk(Walk):
    """A walk that mixes alternative slots."""

    def fit(self, vertex: int, wishes: RequestLevel, pristine: bool) -> VertexFit | None:
        """Return what a vertex is to some wishes; several slots may stand beside each other."""
        type = self.graph.type[vertex]
        wish = wishes.by_type.get(type)
        if wish is not None and (wishes.slots or wishes.types.count(type) > 1):
            return None
        alternatives = wishes if wish is None else wish.inside
        if alternatives.slots:
            if any(self.view.has_types_below(vertex, other.inside.types) for other in alternatives.requests):
                return VertexFit(wish, alternatives.requests)
            return VertexFit(wish, below=wishes, unmatched=True) if pristine else None
        if wish is not None:
            return VertexFit(wish, below=wish.inside)
        return VertexFit(None, below=wishes, unmatched=True) if pristine else None

    def has_enough_below(self, vertex: int, wishes: RequestLevel, wish: CompiledRequest | None) -> bool:
        """Ask the filter of a vertex's subtree; of alternative slots it is the last one that counts."""
        allow, window = self.ledger.filters.may_fit, self.window
        if wish is not None and not allow(vertex, window.start, window.duration, wish.demand):
            return False
        return not wishes.slots or allow(vertex, window.start, window.duration, wishes.slots[-1].demand)

    def pack_slots(self, vertex: int, slots: tuple[CompiledRequest, ...], bonus: int) -> Pools:
        """Pack the mix of alternative slots that makes the most of what is right below a vertex."""
        bundle = RequestLevel(self._merge_requests(slots), {})
        shares = slots[-1].effective_most
        supplies = SlotPacker(self.explore(vertex, bundle, False, True, bonus, shares), self.policy.order_slots)
        counts = tuple((wish.type, supplies.units.get(wish.type, 0)) for wish in bundle.requests)
        return supplies.pack(list(_best_mix(slots, counts, shares)))

    def _merge_requests(self, slots: tuple[CompiledRequest, ...]) -> list[CompiledRequest]:
        """Return a wish for each type in any of the slots, the one that wants most."""
        wishes: dict[str, CompiledRequest] = {}
        for slot in slots:
            for wish in slot.inside.requests:
                if wish.type not in wishes or wishes[wish.type].count.least < wish.count.least:
                    wishes[wish.type] = wish
        return sorted(wishes.values(), key=lambda wish: self.graph.type_order[wish.type])


def _best_mix(slots: tuple[CompiledRequest, ...], counts: _Counts, shares: int) -> Iterator[CompiledRequest]:
    """Yield the slots of the best mix, in the order in which they are packed."""
    if len(slots) == 1:
        amounts = dict(counts)
        taken = [(amounts[wish.type], wish.count.amount(amounts[wish.type])) for wish in slots[0].inside.requests]
        fitting = min((units // amount if amount else 0 for units, amount in taken), default=0)
        yield from slots * min(shares, fitting)
        return
    mixes: dict[_Counts, _Mix] = {}
    length, kind, rest = _longest_mix(slots, counts, mixes)
    for _ in range(length):
        yield slots[kind]
        _, kind, rest = mixes[rest]


def _longest_mix(slots: tuple[CompiledRequest, ...], counts: _Counts, mixes: dict[_Counts, _Mix]) -> _Mix:
    """Work out the longest mix for some counts; without a stack, for there may be thousands of slots."""
    stack = [counts]
    while stack:
        current = stack[-1]
        following = [_remaining_after(slot, current) for slot in slots]
        missing = [rest for rest in following if rest is not None and rest not in mixes]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        best: _Mix = (0, -1, ())
        for kind, rest in enumerate(following):
            if rest is not None and mixes[rest][0] + 1 > best[0]:
                best = (mixes[rest][0] + 1, kind, rest)
        mixes[current] = best
    return mixes[counts]


def _remaining_after(slot: CompiledRequest, counts: _Counts) -> _Counts | None:
    """Return what remains after packing a slot, None if there is too little for it."""
    rest = dict(counts)
    before = dict(counts)
    for wish in slot.inside.requests:
        amount = wish.count.amount(before[wish.type])
        if not amount:
            return None
        rest[wish.type] -= amount
    return tuple(rest.items())


def xor_alternatives(jobspec: Jobspec) -> list[Jobspec]:
    """Return the jobspecs that one with `xor_slot`s stands for, in the order in which they are tried."""
    variants = _variants(jobspec, jobspec.resources)
    return [dataclasses.replace(jobspec, resources=variant) for variant in variants]


def _variants(jobspec: Jobspec, requests: tuple[VertexRequest, ...]) -> list[tuple[VertexRequest, ...]]:
    required: list[tuple[VertexRequest, ...]] = [()]
    options: list[VertexRequest] = []
    for request in requests:
        inner = _variants(jobspec, request.inside)
        if request.type == XOR_SLOT:
            options.extend(dataclasses.replace(request, type=SLOT, inside=inside) for inside in inner)
        else:
            required = [
                (*variant, dataclasses.replace(request, inside=inside)) for variant in required for inside in inner
            ]
        if max(len(required), len(options)) > _VARIANTS_MAX:
            problem = f"its xor_slots stand for more than {_VARIANTS_MAX} alternatives"
            raise InputError(jobspec.source, at=request.place or None, problem=problem, remedy="give fewer of them")
    if options:
        required = [(*variant, option) for variant in required for option in options]
    if len(required) > _VARIANTS_MAX:
        problem = f"its xor_slots stand for more than {_VARIANTS_MAX} alternatives"
        raise InputError(jobspec.source, problem=problem, remedy="give fewer of them")
    return required
