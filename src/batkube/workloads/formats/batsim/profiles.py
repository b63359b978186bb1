"""Read the profiles of a Batsim workload.

All types that Batsim 4 documents are read (Batsim documentation, "Workload", profile types), also under the names of
earlier versions. Types without a class of their own are kept as `RawProfile`; a run rejects those it cannot execute.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import NoReturn

from batkube.workloads import fields as require
from batkube.workloads import names
from batkube.workloads.fields import Place
from batkube.workloads.formats.batsim.extensions import Extension, is_extension_key, read_extension
from batkube.workloads.formats.batsim.message_patterns import compile_pattern
from batkube.workloads.model import (
    Composed,
    Delay,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    RawProfile,
)

DELAY, COMPOSED = "delay", "composed"
PARALLEL, HOMOGENEOUS, TOTAL = "parallel", "parallel_homogeneous", "parallel_homogeneous_total"
_PFS, _RECV = "parallel_homogeneous_pfs", "recv"
#: Types that are read as `RawProfile`.
RAW_TYPES = (_PFS, "data_staging", "smpi", "usage_trace", "send", _RECV)
#: In these types, `cpu` counts flops and `com` bytes, so CPU requests are only possible on their jobs.
TYPES_WITH_FLOPS = (PARALLEL, HOMOGENEOUS, TOTAL, _PFS)
#: Names that Batsim used before version 2, and their current names.
_OLD_NAMES = {
    "msg_par": PARALLEL,
    "msg_par_hg": HOMOGENEOUS,
    "msg_par_hg_tot": TOTAL,
    "msg_par_hg_pfs": _PFS,
    "msg_par_hg_pfs0": _PFS,
    "msg_par_hg_pfs_tiers": _PFS,
}
_TYPE_NAMES = (DELAY, PARALLEL, HOMOGENEOUS, TOTAL, COMPOSED, *RAW_TYPES)
#: Far deeper than any real file; protects the interpreter's stack.
_MAX_NESTING = 50
_MAX_NAMES_IN_MESSAGE = 8


#: Batsim's type names of the profiles that have a class of their own.
_TYPES: dict[type[Profile], str] = {
    Delay: DELAY,
    Parallel: PARALLEL,
    ParallelHomogeneous: HOMOGENEOUS,
    ParallelHomogeneousTotal: TOTAL,
    Composed: COMPOSED,
}


def batsim_type_of(profile: Profile) -> str:
    """Return Batsim's type name of a profile."""
    return profile.kind if isinstance(profile, RawProfile) else _TYPES[type(profile)]


class BatsimProfiles:
    """The profiles of one file, one shared object per name."""

    def __init__(self, place: Place, raw: Mapping[str, object]) -> None:
        self._place = place
        self._raw = raw
        self._profiles: dict[str, Profile] = {}
        self._extensions: dict[str, Extension] = {}
        for name in raw:
            if problem := names.name_problem(name):
                place.reject(f"a profile's name {problem}", names.REMEDY)
            self._profile(name, ())

    @property
    def by_name(self) -> Mapping[str, Profile]:
        """All profiles by name."""
        return self._profiles

    @property
    def descriptions(self) -> Mapping[str, Mapping[str, object]]:
        """The JSON object of each profile, by name."""
        return {name: require.mapping(self._place / name, raw) for name, raw in self._raw.items()}

    def lookup(self, name: object, used_at: Place) -> tuple[Profile, Extension]:
        """Return the profile `name`, to which `used_at` refers, and its extension keys."""
        if not isinstance(name, str) or name not in self._profiles:
            self._reject_unknown(name, used_at)
        return self._profiles[name], self._extensions[name]

    def _reject_unknown(self, name: object, used_at: Place) -> NoReturn:
        examples = ", ".join(list(self._raw)[:_MAX_NAMES_IN_MESSAGE]) or "none"
        more = ", …" if len(self._raw) > _MAX_NAMES_IN_MESSAGE else ""
        problem = "is missing" if name is None else f"names the profile {name!r}, which is not defined"
        used_at.reject(problem, f"define it, or use one of the defined profiles: {examples}{more}")

    def _profile(self, name: str, within: tuple[str, ...]) -> Profile:
        if name in self._profiles:
            return self._profiles[name]
        place = self._place / name
        if name in within:
            place.reject(f"contains itself: {' → '.join((*within[within.index(name) :], name))}")
        if len(within) > _MAX_NESTING:
            place.reject(f"is nested more than {_MAX_NESTING} profiles deep")
        fields = require.mapping(place, self._raw[name])
        kind = self._kind(place, fields)
        ret = require.integer(place / "ret", fields.get("ret", 0))
        extension_fields = {
            key: value for key, value in fields.items() if not (key == "cpu" and kind in TYPES_WITH_FLOPS)
        }
        self._extensions[name] = read_extension(place, extension_fields)
        if kind == COMPOSED:
            self._profiles[name] = self._composed(place, name, ret, fields, (*within, name))
        else:
            self._profiles[name] = _leaf_profile(place, name, kind, ret, fields)
        return self._profiles[name]

    def _kind(self, place: Place, fields: Mapping[str, object]) -> str:
        kind = require.string(place / "type", fields.get("type"))
        kind = _OLD_NAMES.get(kind, kind)
        if kind not in _TYPE_NAMES:
            (place / "type").reject(
                f"is {kind!r}, which is not a profile type", f"write one of {', '.join(_TYPE_NAMES)}"
            )
        return kind

    def _composed(
        self, place: Place, name: str, ret: int, fields: Mapping[str, object], within: tuple[str, ...]
    ) -> Composed:
        names = require.array(place / "seq", fields.get("seq"))
        if not names:
            (place / "seq").reject("is empty", "name at least one profile")
        parts = []
        for index, part in enumerate(names):
            if not isinstance(part, str) or part not in self._raw:
                self._reject_unknown(part, (place / "seq")[index])
            parts.append(self._profile(part, within))
        # Before Batsim 2, `repeat` was called `nb`.
        key = "nb" if "nb" in fields and "repeat" not in fields else "repeat"
        repeat = require.positive_integer(place / key, fields.get(key, 1))
        return Composed(name=name, ret=ret, parts=tuple(parts), repeat=repeat)


def _leaf_profile(place: Place, name: str, kind: str, ret: int, fields: Mapping[str, object]) -> Profile:
    """Return a profile that is not composed of others."""
    if kind == DELAY:
        return Delay(name=name, ret=ret, duration=require.duration(place / "delay", fields.get("delay")))
    if kind == PARALLEL:
        return _parallel(place, name, ret, fields)
    if kind in (HOMOGENEOUS, TOTAL):
        cpu = require.non_negative_float(place / "cpu", fields.get("cpu", 0))
        com = require.non_negative_float(place / "com", fields.get("com", 0))
        shape = ParallelHomogeneous if kind == HOMOGENEOUS else ParallelHomogeneousTotal
        return shape(name=name, ret=ret, cpu_flops=cpu, com_bytes=com)
    raw_fields = {
        key: _with_floats(value)
        for key, value in fields.items()
        if key not in ("type", "ret") and (not is_extension_key(key) or (key == "cpu" and kind in TYPES_WITH_FLOPS))
    }
    if kind == _RECV:
        _check_pattern(place / "regex", raw_fields.get("regex", ""))
    return RawProfile(name=name, ret=ret, kind=kind, fields=raw_fields)


def _check_pattern(place: Place, pattern: object) -> None:
    try:
        compile_pattern(require.string(place, pattern))
    except ValueError as error:
        place.reject(str(error))


def _with_floats(value: object) -> object:
    """Return a decoded value with its exact decimals as floats."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_with_floats(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _with_floats(entry) for key, entry in value.items()}
    return value


def _parallel(place: Place, name: str, ret: int, fields: Mapping[str, object]) -> Parallel:
    cpu, com = (
        tuple(
            require.non_negative_float((place / key)[index], value)
            for index, value in enumerate(require.array(place / key, fields.get(key, [])))
        )
        for key in ("cpu", "com")
    )
    if not cpu:
        (place / "cpu").reject("is missing or empty", "write the flops of each machine")
    if com and len(com) != len(cpu) ** 2:
        (place / "com").reject(f"has {len(com)} values, but {len(cpu)} machines (`cpu`) need {len(cpu) ** 2}")
    return Parallel(name=name, ret=ret, cpu_flops=cpu, com_bytes=com)
