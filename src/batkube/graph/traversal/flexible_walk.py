"""The flexible walk: slots at one level are alternatives, and any mix of them that adds up to the count is valid.

The simple walk rejects two slots at one level. This one determines which mix of them packs the most
slots from the children of a vertex. With `xor_slot`, all slots of the job are of the same kind:
each kind is tried as a jobspec of its own. Imitates flux-sched
resource/traversers/dfu_flexible.cpp.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from batkube.graph.requests.compiled import CompiledRequest, RequestLevel
from batkube.graph.requests.jobspec import SLOT, XOR_SLOT, CountRange, Jobspec, VertexRequest
from batkube.graph.traversal.candidates import Pools, SlotPacker
from batkube.graph.traversal.walk import VertexFit, Walk
from batkube.kernel.errors import InputError

_VARIANTS_MAX = 1000
_Counts = tuple[tuple[str, int], ...]
#: The number of slots that can be packed from some counts, the index of the first one, and the
#: counts that remain after it.
_Mix = tuple[int, int, _Counts]


class FlexibleWalk(Walk):
    """A walk that mixes alternative slots."""

    def fit(self, vertex: int, level: RequestLevel, unmatched: bool) -> VertexFit | None:
        """Return how a vertex fits a level, which may contain several slots."""
        type = self.graph.type[vertex]
        request = level.by_type.get(type)
        if request is not None and (level.slots or level.types.count(type) > 1):
            return None
        alternatives = level if request is None else request.inside
        if alternatives.slots:
            if any(self.view.has_types_below(vertex, other.inside.types) for other in alternatives.requests):
                return VertexFit(request, alternatives.requests)
            return VertexFit(request, below=level, unmatched=True) if unmatched else None
        if request is not None:
            return VertexFit(request, below=request.inside)
        return VertexFit(None, below=level, unmatched=True) if unmatched else None

    def has_enough_below(self, vertex: int, level: RequestLevel, request: CompiledRequest | None) -> bool:
        """Return whether the filter of a subtree has enough free units; of the slots, the last one counts."""
        may_fit, window = self.ledger.filters.may_fit, self.window
        if request is not None and not may_fit(vertex, window.start, window.duration, request.demand):
            return False
        return not level.slots or may_fit(vertex, window.start, window.duration, level.slots[-1].demand)

    def pack_slots(self, vertex: int, slots: tuple[CompiledRequest, ...], bonus: int) -> Pools:
        """Pack the mix of alternative slots that uses the children of a vertex best."""
        bundle = RequestLevel(self._merge_requests(slots), {})
        shares = slots[-1].effective_most
        packer = SlotPacker(self.explore(vertex, bundle, False, True, bonus, shares), self.policy.order_slots)
        counts = tuple((request.type, packer.units.get(request.type, 0)) for request in bundle.requests)
        return packer.pack(list(_best_mix(slots, counts, shares)))

    def _merge_requests(self, slots: tuple[CompiledRequest, ...]) -> list[CompiledRequest]:
        """Return one request for each type in the slots: the one for the most units."""
        requests: dict[str, CompiledRequest] = {}
        for slot in slots:
            for request in slot.inside.requests:
                if request.type not in requests or requests[request.type].count.least < request.count.least:
                    requests[request.type] = request
        return sorted(requests.values(), key=lambda request: self.graph.type_order[request.type])


def _best_mix(slots: tuple[CompiledRequest, ...], counts: _Counts, shares: int) -> Iterator[CompiledRequest]:
    """Yield the slots of the best mix in the order in which they are packed."""
    if len(slots) == 1:
        available = dict(counts)
        packable = (_packable(request.count, available[request.type]) for request in slots[0].inside.requests)
        yield from slots * min(shares, min(packable, default=0))
        return
    mixes: dict[_Counts, _Mix] = {}
    length, index, rest = _longest_mix(slots, counts, mixes)
    for _ in range(length):
        yield slots[index]
        _, index, rest = mixes[rest]


def _packable(count: CountRange, available: int) -> int:
    """Return how often a count can be taken from the available units."""
    amount = count.amount(available)
    return available // amount if amount else 0


def _longest_mix(slots: tuple[CompiledRequest, ...], counts: _Counts, mixes: dict[_Counts, _Mix]) -> _Mix:
    """Return the mix of most slots that can be packed from `counts`. Iterative: there may be thousands of slots."""
    stack = [counts]
    while stack:
        current = stack[-1]
        remainders = [_remaining_after(slot, current) for slot in slots]
        missing = [rest for rest in remainders if rest is not None and rest not in mixes]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        best: _Mix = (0, -1, ())
        for index, rest in enumerate(remainders):
            if rest is not None and mixes[rest][0] + 1 > best[0]:
                best = (mixes[rest][0] + 1, index, rest)
        mixes[current] = best
    return mixes[counts]


def _remaining_after(slot: CompiledRequest, counts: _Counts) -> _Counts | None:
    """Return the counts that remain after packing a slot, or None if they do not suffice."""
    rest = dict(counts)
    before = dict(counts)
    for request in slot.inside.requests:
        amount = request.count.amount(before[request.type])
        if not amount:
            return None
        rest[request.type] -= amount
    return tuple(rest.items())


def xor_alternatives(jobspec: Jobspec) -> list[Jobspec]:
    """Return the jobspecs without `xor_slot` that a jobspec stands for, in the order to try them."""
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
        if len(required) * max(len(options), 1) > _VARIANTS_MAX:
            problem = f"its xor_slots stand for more than {_VARIANTS_MAX} alternatives"
            raise InputError(jobspec.source, at=request.place or None, problem=problem, remedy="remove some of them")
    return [(*variant, option) for variant in required for option in options] if options else required
