"""Rules for the behaviour of containers: run time, exit code, resource usage and health.

A simulated container executes nothing, and its image does not say how long it runs. A rule specifies this for all
containers whose image, name, pod, labels or command match its patterns. The first rule that matches applies.

Random values come from a stream that is named after the container and the number of its run. They therefore depend
neither on other events nor on their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from batkube.kernel.distributions import Distribution
from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import Duration, seconds
from batkube.kernel.streams import Streams
from batkube.workloads.container_rules.usage_curves import UsageCurve

FOREVER: Literal["forever"] = "forever"
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
"""The fields of a container that define its probes."""
RunLength = Duration | Literal["forever"]


class ContainerIdentity(NamedTuple):
    """The properties of a container that rules match."""

    image: str
    container: str
    namespace: str
    #: None for a pod template: a controller chooses the name later.
    pod: str | None
    labels: Mapping[str, str]
    is_init: bool = False
    #: Its command and arguments, joined by spaces; empty if it runs the entrypoint of its image.
    command: str = ""

    @property
    def image_names(self) -> tuple[str, str]:
        """The image as written, and without tag and digest."""
        return self.image, image_repository(self.image)

    def may_have_label(self, label: str, pattern: str) -> bool:
        """Return whether the pod's label matches. A template may lack it: a controller can still add the label."""
        value = self.labels.get(label)
        return self.pod is None if value is None else fnmatchcase(value, pattern)


@dataclass(frozen=True, slots=True)
class ContainerRule:
    """The behaviour of the containers that match. Patterns use `*`, `?` and `[…]`; an empty one matches everything."""

    #: Its file and position, for messages: `rules.yaml: [2]`.
    place: str
    image: str = ""
    container: str = ""
    namespace: str = ""
    pod: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Unlike for the other patterns, an empty text matches only containers without a command.
    command: str | None = None
    #: In seconds.
    duration: Distribution | Literal["forever"] | None = None
    exit_code: Distribution | None = None
    #: In millicores, or drawn in cores.
    cpu: UsageCurve | Distribution | None = None
    #: In bytes.
    memory: UsageCurve | Distribution | None = None
    #: In millicores, over the time of the cluster: a load that all ready matching containers share.
    cpu_load: UsageCurve | None = None
    #: Whether pulling the image fails because it does not exist.
    pull_fails: bool = False
    #: In seconds since the start of a run: probes fail before `healthy_after`, and from `healthy_until` on.
    healthy_after: Distribution | Literal["forever"] | None = None
    healthy_until: Distribution | Literal["forever"] | None = None

    def pattern_text(self) -> str:
        """Return the patterns as in a rules file: `image nginx*, namespace web`."""
        patterns = {name: getattr(self, name) for name in ("image", "container", "pod", "namespace", "command")}
        patterns |= {f"label {key}": value for key, value in self.labels.items()}
        return ", ".join(f"{name} {pattern}" for name, pattern in patterns.items() if pattern)

    def matches(self, subject: ContainerIdentity) -> bool:
        """Return whether the rule applies. It applies to an init container only with a pattern for image or name."""
        if subject.is_init and not (self.image or self.container):
            return False
        return (
            (not self.image or any(fnmatchcase(name, self.image) for name in subject.image_names))
            and _matches(self.container, subject.container)
            and (self.command is None or fnmatchcase(subject.command, self.command))
            and _matches(self.namespace, subject.namespace)
            and (subject.pod is None or _matches(self.pod, subject.pod))
            and all(subject.may_have_label(key, value) for key, value in self.labels.items())
        )


def _matches(pattern: str, name: str) -> bool:
    return not pattern or fnmatchcase(name, pattern)


def image_repository(image: str) -> str:
    """Return the image without tag and digest."""
    path, slash, last = image.partition("@")[0].rpartition("/")
    return f"{path}{slash}{last.partition(':')[0]}"


class SharedLoad(NamedTuple):
    """A CPU load that containers share: the place of its rule, and its millicores over the time of the cluster."""

    rule: str
    cpu: UsageCurve


class HealthWindow(NamedTuple):
    """The ages of a run between which the container's probes succeed."""

    after: RunLength
    until: RunLength

    def is_healthy(self, age: Duration) -> bool:
        """Return whether a probe at this age succeeds."""
        return self.after != FOREVER and self.after <= age and (self.until == FOREVER or age < self.until)


class ContainerBehaviour(NamedTuple):
    """The behaviour of one run of a container; None for everything that no rule specifies."""

    run_time: RunLength | None = None
    exit_code: int | None = None
    cpu: UsageCurve | None = None
    memory: UsageCurve | None = None
    load: SharedLoad | None = None
    #: Whether pulling the image fails, so that the container cannot start.
    pull_fails: bool = False
    health: HealthWindow | None = None


_UNSPECIFIED = ContainerBehaviour()
_UNUSED_RULE = FidelityNote("rules", "a rule applied to no container: none matched, or an earlier rule matched first")
_NO_PROBE = FidelityNote("rules", "a rule specifies when a container is healthy, but the container has no probe")


class ContainerRules:
    """The rules of one run or served cluster, with its random streams."""

    def __init__(self, rules: Sequence[ContainerRule], streams: Streams) -> None:
        self._rules = list(rules)
        self._streams = streams
        self._has_loads = any(rule.cpu_load is not None for rule in rules)
        #: The places of the rules that have not applied to any container yet.
        self._unused = dict.fromkeys(rule.place for rule in rules)
        #: The places of the rules that specify the health of a container without probes.
        self._unprobed: dict[str, None] = {}

    def behaviour_of(
        self, pod: Mapping[str, Any], container: Mapping[str, Any], run: int, *, is_init: bool
    ) -> ContainerBehaviour:
        """Return the behaviour of run number `run`, counted from 0, of a pod's container."""
        if not self._rules:
            return _UNSPECIFIED
        subject = _identity_of(container, pod["metadata"], pod["metadata"]["name"], is_init=is_init)
        rule = self._matching_rule(subject)
        if rule is None:
            return _UNSPECIFIED
        self._unused.pop(rule.place, None)
        behaviour = self._draw_behaviour(rule, f"{subject.namespace}/{subject.pod}/{subject.container}/{run}")
        if behaviour.health is not None and not any(container.get(probe) for probe in PROBES):
            self._unprobed[rule.place] = None
        return behaviour

    def load_of(self, pod: Mapping[str, Any], container: Mapping[str, Any]) -> SharedLoad | None:
        """Return the load that a pod's container shares with others, if any."""
        if not self._has_loads:
            return None
        rule = self._matching_rule(_identity_of(container, pod["metadata"], pod["metadata"]["name"], is_init=False))
        return None if rule is None else _load(rule)

    def loads(self) -> list[tuple[ContainerRule, UsageCurve]]:
        """Return the rules that define a load, each with its load."""
        return [(rule, rule.cpu_load) for rule in self._rules if rule.cpu_load is not None]

    def set_load(self, place: str, millicores: int, age: Duration) -> bool:
        """Let the load of the rule at `place` be this from `age` on; return False if there is no such load."""
        for number, rule in enumerate(self._rules):
            if rule.place == place and rule.cpu_load is not None:
                self._rules[number] = replace(rule, cpu_load=rule.cpu_load.with_step(age, millicores))
                return True
        return False

    def _matching_rule(self, subject: ContainerIdentity) -> ContainerRule | None:
        return next((rule for rule in self._rules if rule.matches(subject)), None)

    def note_unused(self, notes: FidelityNotes) -> None:
        """Report, at the end of the run, rules without effect: unused ones, and health without a probe."""
        if self._unused:
            notes.add(_UNUSED_RULE, example=next(iter(self._unused)), count=len(self._unused))
        if self._unprobed:
            notes.add(_NO_PROBE, example=next(iter(self._unprobed)), count=len(self._unprobed))

    def _draw_behaviour(self, rule: ContainerRule, run: str) -> ContainerBehaviour:
        def draw(key: str, distribution: Distribution) -> float:
            return max(0.0, distribution.draw(self._streams.create(f"rules/{key}/{run}")))

        def curve(key: str, value: UsageCurve | Distribution | None, unit: int) -> UsageCurve | None:
            return _constant_curve(round(draw(key, value) * unit)) if isinstance(value, Distribution) else value

        def length(key: str, value: Distribution | Literal["forever"]) -> RunLength:
            return value if value == FOREVER else _drawn_duration(rule, key, draw(key, value))

        health = None
        if rule.healthy_after is not None or rule.healthy_until is not None:
            after = Duration(0) if rule.healthy_after is None else length("healthy-after", rule.healthy_after)
            health = HealthWindow(after, length("healthy-until", rule.healthy_until or FOREVER))
        run_time = None if rule.duration is None else length("duration", rule.duration)
        code = None if rule.exit_code is None else round(draw("exit-code", rule.exit_code)) % 256
        usage = curve("cpu", rule.cpu, 1000), curve("memory", rule.memory, 1)
        return ContainerBehaviour(run_time, code, *usage, _load(rule), rule.pull_fails, health)


def _load(rule: ContainerRule) -> SharedLoad | None:
    return None if rule.cpu_load is None else SharedLoad(rule.place, rule.cpu_load)


def _constant_curve(amount: int) -> UsageCurve:
    return UsageCurve(((Duration(0), amount),))


def _drawn_duration(rule: ContainerRule, key: str, value_s: float) -> Duration:
    try:
        return seconds(value_s)
    except ValueError as error:
        raise RunFailed(f"{rule.place}: {key} was drawn as {value_s:g} s, which is too long") from error


def _identity_of(
    container: Mapping[str, Any], metadata: Mapping[str, Any], pod: str | None, *, is_init: bool, namespace: str = ""
) -> ContainerIdentity:
    return ContainerIdentity(
        image=container.get("image") or "",
        container=container["name"],
        namespace=metadata.get("namespace") or namespace or "default",
        pod=pod,
        labels=metadata.get("labels") or {},
        is_init=is_init,
        command=" ".join((*_command_words(container.get("command")), *_command_words(container.get("args")))),
    )


def _command_words(value: object) -> list[str]:
    """Return the words of a command. A manifest that is not validated yet may hold any other value instead."""
    return [str(word) for word in value] if isinstance(value, list) else []


# Checking that rules can have an effect


def reject_unmatched_rules(rules: Sequence[ContainerRule], objects: Iterable[Mapping[str, Any]]) -> None:
    """Raise InputError if no rule can match any container of `objects`, the source of all pods of a run."""
    subjects = [subject for manifest in objects for subject in _containers_in(manifest)]
    if not rules or any(rule.matches(subject) for rule in rules for subject in subjects):
        return
    images = ", ".join(dict.fromkeys(subject.image for subject in subjects)) or "none"
    path, _, _ = rules[0].place.rpartition(": ")
    raise InputError(
        path, problem="no rule matches any container of the workload", remedy=f"the workload's images are: {images}"
    )


def _containers_in(manifest: Mapping[str, Any]) -> Iterator[ContainerIdentity]:
    """Yield the containers of a pod, or of the pod templates anywhere in an object."""
    namespace = (manifest.get("metadata") or {}).get("namespace") or ""

    def within(value: object) -> Iterator[ContainerIdentity]:
        if isinstance(value, list):
            for item in value:
                yield from within(item)
        elif isinstance(value, Mapping):
            spec = value.get("spec")
            if isinstance(spec, Mapping) and isinstance(spec.get("containers"), list):
                metadata = value.get("metadata") or {}
                name = metadata.get("name") if value.get("kind") == "Pod" else None
                for key in ("initContainers", "containers"):
                    for container in spec.get(key) or ():
                        yield _identity_of(container, metadata, name, is_init=key != "containers", namespace=namespace)
            else:
                for item in value.values():
                    yield from within(item)

    yield from within(manifest)
