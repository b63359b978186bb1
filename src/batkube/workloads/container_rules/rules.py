"""What containers do, said by rules: which containers a rule speaks of, and what it says of each of their runs.

Nothing is executed, and most images say nothing of how long they run. A rule does, for all containers whose image, name
or pod it matches; the first that matches counts. What a rule leaves to chance is drawn from a stream that is named for
the container and its run, so that it does not depend on what else happens, nor in which order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
"""The fields of a container that say how a kubelet finds out about its health."""
RunLength = Duration | Literal["forever"]


class ContainerIdentity(NamedTuple):
    """A container, as rules look at it."""

    image: str
    container: str
    namespace: str
    #: None while nobody knows what the pod will be called.
    pod: str | None
    labels: Mapping[str, str]
    is_init: bool = False
    #: The words of its command and arguments; none where it does what its image does by itself.
    command: str = ""

    @property
    def image_names(self) -> tuple[str, str]:
        """Its image as it is written, and without tag and digest."""
        return self.image, image_repository(self.image)

    def may_have_label(self, label: str, pattern: str) -> bool:
        """Return whether its pod has such a label; one that is to be made may still get it from its controller."""
        value = self.labels.get(label)
        return self.pod is None if value is None else fnmatchcase(value, pattern)


@dataclass(frozen=True, slots=True)
class ContainerRule:
    """What the containers that match it do. Texts are patterns with `*`, `?` and `[…]`; an empty one matches all."""

    #: Where it stands: `rules.yaml: [2]`.
    place: str
    image: str = ""
    container: str = ""
    namespace: str = ""
    pod: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Unlike the others, an empty one matches only those that have none.
    command: str | None = None
    #: In seconds.
    duration: Distribution | Literal["forever"] | None = None
    exit_code: Distribution | None = None
    #: In millicores, or drawn in cores.
    cpu: UsageCurve | Distribution | None = None
    #: In bytes.
    memory: UsageCurve | Distribution | None = None
    #: In millicores, by the time of the cluster: what all ready containers that it matches share.
    cpu_load: UsageCurve | None = None
    #: Whether there is no such image.
    pull_fails: bool = False
    #: In seconds, by the age of a run: probes fail before the one, and from the other on.
    healthy_after: Distribution | Literal["forever"] | None = None
    healthy_until: Distribution | Literal["forever"] | None = None

    def matches(self, subject: ContainerIdentity) -> bool:
        """Return whether it speaks of a container; of an init container only if it names it, or its image."""
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
    """Return an image's name without its tag and digest."""
    path, slash, last = image.partition("@")[0].rpartition("/")
    return f"{path}{slash}{last.partition(':')[0]}"


class SharedLoad(NamedTuple):
    """Work that containers share, by the rule that brings it, and its millicores over the time of the cluster."""

    rule: str
    cpu: UsageCurve


class HealthWindow(NamedTuple):
    """At which ages of its run probes find a container well."""

    after: RunLength
    until: RunLength

    def is_healthy(self, age: Duration) -> bool:
        """Return what a probe finds."""
        return self.after != FOREVER and self.after <= age and (self.until == FOREVER or age < self.until)


class ContainerBehaviour(NamedTuple):
    """What a rule says of one run of a container; None where it says nothing."""

    run_time: RunLength | None = None
    exit_code: int | None = None
    cpu: UsageCurve | None = None
    memory: UsageCurve | None = None
    #: What it shares with others.
    load: SharedLoad | None = None
    #: Whether there is no such image, so that the container cannot be started.
    pull_fails: bool = False
    health: HealthWindow | None = None


_UNSPECIFIED = ContainerBehaviour()
_UNUSED_RULE = FidelityNote("rules", "a rule matched no container, or only such as an earlier rule matched")
_NO_PROBE = FidelityNote("rules", "a rule says when a container is healthy, and it has no probe that would find out")


class ContainerRules:
    """The rules of one run or served cluster, with its randomness."""

    def __init__(self, rules: Sequence[ContainerRule], streams: Streams) -> None:
        self._rules = rules
        self._streams = streams
        self._has_loads = any(rule.cpu_load is not None for rule in rules)
        #: The rules that spoke of no container yet.
        self._unused = dict.fromkeys(rule.place for rule in rules)
        #: The rules that spoke of the health of a container that nobody probes.
        self._unprobed: dict[str, None] = {}

    def behaviour_of(
        self, pod: Mapping[str, Any], container: Mapping[str, Any], run: int, *, is_init: bool
    ) -> ContainerBehaviour:
        """Return what is said of a run of a pod's container; its runs are counted from 0."""
        if not self._rules:
            return _UNSPECIFIED
        subject = _identity_of(container, pod["metadata"], pod["metadata"]["name"], is_init=is_init)
        rule = self._matching_rule(subject)
        if rule is None:
            return _UNSPECIFIED
        self._unused.pop(rule.place, None)
        conduct = self._draw_behaviour(rule, f"{subject.namespace}/{subject.pod}/{subject.container}/{run}")
        if conduct.health is not None and not any(container.get(probe) for probe in PROBES):
            self._unprobed[rule.place] = None
        return conduct

    def load_of(self, pod: Mapping[str, Any], container: Mapping[str, Any]) -> SharedLoad | None:
        """Return the load that a container of a pod has part in, if any."""
        if not self._has_loads:
            return None
        rule = self._matching_rule(_identity_of(container, pod["metadata"], pod["metadata"]["name"], is_init=False))
        return None if rule is None else _load(rule)

    def _matching_rule(self, subject: ContainerIdentity) -> ContainerRule | None:
        return next((rule for rule in self._rules if rule.matches(subject)), None)

    def note_unused(self, notes: FidelityNotes) -> None:
        """Say, when all is over, which rules spoke of no container, or of what nobody looks at."""
        if self._unused:
            notes.add(_UNUSED_RULE, example=next(iter(self._unused)), count=len(self._unused))
        if self._unprobed:
            notes.add(_NO_PROBE, example=next(iter(self._unprobed)), count=len(self._unprobed))

    def _draw_behaviour(self, rule: ContainerRule, run: str) -> ContainerBehaviour:
        def draw(what: str, distribution: Distribution) -> float:
            return max(0.0, distribution.draw(self._streams.create(f"rules/{what}/{run}")))

        def curve(what: str, use: UsageCurve | Distribution | None, unit: int) -> UsageCurve | None:
            return _constant_curve(round(draw(what, use) * unit)) if isinstance(use, Distribution) else use

        def length(what: str, wanted: Distribution | Literal["forever"]) -> RunLength:
            return wanted if wanted == FOREVER else _drawn_duration(rule, what, draw(what, wanted))

        health = None
        if rule.healthy_after is not None or rule.healthy_until is not None:
            after = Duration(0) if rule.healthy_after is None else length("healthy-after", rule.healthy_after)
            health = HealthWindow(after, length("healthy-until", rule.healthy_until or FOREVER))
        lasts = None if rule.duration is None else length("duration", rule.duration)
        code = None if rule.exit_code is None else round(draw("exit-code", rule.exit_code)) % 256
        uses = curve("cpu", rule.cpu, 1000), curve("memory", rule.memory, 1)
        return ContainerBehaviour(lasts, code, *uses, _load(rule), rule.pull_fails, health)


def _load(rule: ContainerRule) -> SharedLoad | None:
    return None if rule.cpu_load is None else SharedLoad(rule.place, rule.cpu_load)


def _constant_curve(amount: int) -> UsageCurve:
    return UsageCurve(((Duration(0), amount),))


def _drawn_duration(rule: ContainerRule, what: str, drawn: float) -> Duration:
    try:
        return seconds(drawn)
    except ValueError as error:
        raise RunFailed(f"{rule.place}: {what} was drawn as {drawn:g} s, which no run can last") from error


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
    """Return the words of a command; manifests that nobody has checked yet may have anything in its place."""
    return [str(word) for word in value] if isinstance(value, list) else []


# Whether rules can have any effect


def reject_unmatched_rules(rules: Sequence[ContainerRule], objects: Iterable[Mapping[str, Any]]) -> None:
    """Refuse rules of which none can match a container of any of these objects, which make all the pods there are."""
    subjects = [subject for one in objects for subject in _containers_in(one)]
    if not rules or any(rule.matches(subject) for rule in rules for subject in subjects):
        return
    images = ", ".join(dict.fromkeys(subject.image for subject in subjects)) or "none"
    path, _, _ = rules[0].place.rpartition(": ")
    raise InputError(
        path, problem="no rule matches any container of the workload", remedy=f"the images there are: {images}"
    )


def _containers_in(one: Mapping[str, Any]) -> Iterator[ContainerIdentity]:
    """Yield the containers that an object describes: its own, if it is a pod, or those of the templates in it."""
    namespace = (one.get("metadata") or {}).get("namespace") or ""

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

    yield from within(one)
