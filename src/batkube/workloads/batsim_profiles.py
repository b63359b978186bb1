"""Reading the profiles of a Batsim workload.

Every type that Batsim 4 documents is read (Batsim documentation, "Workload", profile types), and the names of its
earlier versions with them. What cannot be run yet is kept as `Foreign`: whether that matters is for the run to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import NoReturn

from batkube.workloads import fields as take
from batkube.workloads import names
from batkube.workloads.extensions import Extension, is_extension_key, read_extension
from batkube.workloads.fields import Place
from batkube.workloads.message_patterns import compiled
from batkube.workloads.model import (
    Composed,
    Delay,
    Foreign,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
)

DELAY, COMPOSED = "delay", "composed"
PARALLEL, HOMOGENEOUS, TOTAL = "parallel", "parallel_homogeneous", "parallel_homogeneous_total"
_PFS, _RECV = "parallel_homogeneous_pfs", "recv"
#: Read and kept, not run.
FOREIGN_TYPES = (_PFS, "data_staging", "smpi", "usage_trace", "send", _RECV)
#: In these `cpu` counts flops and `com` bytes; requests of cpu can stand on their jobs only.
TYPES_WITH_FLOPS = (PARALLEL, HOMOGENEOUS, TOTAL, _PFS)
#: Names that Batsim used before version 2, and what they are called since.
_OLD_NAMES = {
    "msg_par": PARALLEL,
    "msg_par_hg": HOMOGENEOUS,
    "msg_par_hg_tot": TOTAL,
    "msg_par_hg_pfs": _PFS,
    "msg_par_hg_pfs0": _PFS,
    "msg_par_hg_pfs_tiers": _PFS,
}
_KNOWN_TYPES = (DELAY, PARALLEL, HOMOGENEOUS, TOTAL, COMPOSED, *FOREIGN_TYPES)
#: Far deeper than any real file; a guard against files that would exhaust the interpreter's stack.
_DEEPEST_NESTING = 50
_SHOWN_NAMES = 8


#: What Batsim calls the profiles that have a class of their own.
_TYPES: dict[type[Profile], str] = {
    Delay: DELAY,
    Parallel: PARALLEL,
    ParallelHomogeneous: HOMOGENEOUS,
    ParallelHomogeneousTotal: TOTAL,
    Composed: COMPOSED,
}


def type_of(profile: Profile) -> str:
    """Return what Batsim calls a profile's type."""
    return profile.kind if isinstance(profile, Foreign) else _TYPES[type(profile)]


class Profiles:
    """The profiles of one file, one shared object per name."""

    def __init__(self, place: Place, raw: Mapping[str, object]) -> None:
        self._place = place
        self._raw = raw
        self._read: dict[str, Profile] = {}
        self._extensions: dict[str, Extension] = {}
        for name in raw:
            if problem := names.unfit(name):
                place.refuse(f"a profile's name {problem}", names.REMEDY)
            self._profile(name, ())

    @property
    def known(self) -> Mapping[str, Profile]:
        """All of them by name."""
        return self._read

    @property
    def descriptions(self) -> Mapping[str, Mapping[str, object]]:
        """What the file says of each."""
        return {name: take.mapping(self._place / name, raw) for name, raw in self._raw.items()}

    def named(self, name: object, used_at: Place) -> tuple[Profile, Extension]:
        """Return the profile called `name`, which is used at `used_at`, and its extension keys."""
        if not isinstance(name, str) or name not in self._read:
            self._refuse_unknown(name, used_at)
        return self._read[name], self._extensions[name]

    def _refuse_unknown(self, name: object, used_at: Place) -> NoReturn:
        some = ", ".join(list(self._raw)[:_SHOWN_NAMES]) or "none"
        more = ", …" if len(self._raw) > _SHOWN_NAMES else ""
        problem = "is missing" if name is None else f"names the profile {name!r}, which is not defined"
        used_at.refuse(problem, f"defined profiles: {some}{more}")

    def _profile(self, name: str, within: tuple[str, ...]) -> Profile:
        if name in self._read:
            return self._read[name]
        place = self._place / name
        if name in within:
            place.refuse(f"contains itself: {' → '.join((*within[within.index(name) :], name))}")
        if len(within) > _DEEPEST_NESTING:
            place.refuse(f"is nested more than {_DEEPEST_NESTING} profiles deep")
        fields = take.mapping(place, self._raw[name])
        kind = self._kind(place, fields)
        ret = take.whole(place / "ret", fields.get("ret", 0))
        ours = {key: value for key, value in fields.items() if not (key == "cpu" and kind in TYPES_WITH_FLOPS)}
        self._extensions[name] = read_extension(place, ours)
        if kind == COMPOSED:
            self._read[name] = self._composed(place, name, ret, fields, (*within, name))
        else:
            self._read[name] = _simple(place, name, kind, ret, fields)
        return self._read[name]

    def _kind(self, place: Place, fields: Mapping[str, object]) -> str:
        kind = take.text(place / "type", fields.get("type"))
        kind = _OLD_NAMES.get(kind, kind)
        if kind not in _KNOWN_TYPES:
            (place / "type").refuse(f"is {kind!r}, which Batsim does not know", f"types: {', '.join(_KNOWN_TYPES)}")
        return kind

    def _composed(
        self, place: Place, name: str, ret: int, fields: Mapping[str, object], within: tuple[str, ...]
    ) -> Composed:
        names = take.items(place / "seq", fields.get("seq"))
        if not names:
            (place / "seq").refuse("is empty", "name at least one profile")
        parts = []
        for index, part in enumerate(names):
            if not isinstance(part, str) or part not in self._raw:
                self._refuse_unknown(part, (place / "seq")[index])
            parts.append(self._profile(part, within))
        # `repeat` was called `nb` before Batsim 2.
        key = "nb" if "nb" in fields and "repeat" not in fields else "repeat"
        repeat = take.positive_whole(place / key, fields.get(key, 1))
        return Composed(name=name, ret=ret, parts=tuple(parts), repeat=repeat)


def _simple(place: Place, name: str, kind: str, ret: int, fields: Mapping[str, object]) -> Profile:
    """Return a profile that refers to no other."""
    if kind == DELAY:
        return Delay(name=name, ret=ret, duration=take.time(place / "delay", fields.get("delay")))
    if kind == PARALLEL:
        return _parallel(place, name, ret, fields)
    if kind in (HOMOGENEOUS, TOTAL):
        cpu = take.real(place / "cpu", fields.get("cpu", 0))
        com = take.real(place / "com", fields.get("com", 0))
        shape = ParallelHomogeneous if kind == HOMOGENEOUS else ParallelHomogeneousTotal
        return shape(name=name, ret=ret, cpu_flops=cpu, com_bytes=com)
    kept = {
        key: _plain(value)
        for key, value in fields.items()
        if key not in ("type", "ret") and (not is_extension_key(key) or (key == "cpu" and kind in TYPES_WITH_FLOPS))
    }
    if kind == _RECV:
        _check_pattern(place / "regex", kept.get("regex", ""))
    return Foreign(name=name, ret=ret, kind=kind, fields=kept)


def _check_pattern(place: Place, pattern: object) -> None:
    try:
        compiled(take.text(place, pattern))
    except ValueError as error:
        place.refuse(str(error))


def _plain(value: object) -> object:
    """Return a decoded value with floats where the decoder left exact decimals."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return value


def _parallel(place: Place, name: str, ret: int, fields: Mapping[str, object]) -> Parallel:
    cpu, com = (
        tuple(
            take.real((place / key)[index], value)
            for index, value in enumerate(take.items(place / key, fields.get(key, [])))
        )
        for key in ("cpu", "com")
    )
    if not cpu:
        (place / "cpu").refuse("is missing or empty", "give the flops of each machine")
    if com and len(com) != len(cpu) ** 2:
        (place / "com").refuse(f"has {len(com)} values; {len(cpu)} machines exchange {len(cpu) ** 2}")
    return Parallel(name=name, ret=ret, cpu_flops=cpu, com_bytes=com)
