"""Rules: which containers they match, which behaviour they set, and that random values do not depend on order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNotes
from batkube.kernel.instants import Duration, seconds
from batkube.kernel.streams import Streams
from batkube.workloads.container_rules.reader import read_rules
from batkube.workloads.container_rules.rules import (
    FOREVER,
    ContainerBehaviour,
    ContainerRule,
    ContainerRules,
    reject_unmatched_rules,
)
from batkube.workloads.container_rules.usage_curves import UsageCurve

MI = 1 << 20


def rules(tmp_path: Path, text: str) -> tuple[ContainerRule, ...]:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    return read_rules(path)


def pod(name: str = "p", image: str = "app:1", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    container = {"name": "main", "image": image}
    metadata = {"name": name, "namespace": "default", **more}
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def behaviour_of(
    rules_read: tuple[ContainerRule, ...], pod: dict[str, Any], run: int = 0, seed: int = 0, *, is_init: bool = False
) -> ContainerBehaviour:
    return ContainerRules(rules_read, Streams(seed)).behaviour_of(
        pod, pod["spec"]["containers"][0], run, is_init=is_init
    )


def test_a_rule_sets_run_time_exit_code_and_usage(tmp_path: Path) -> None:
    text = "- {image: app, duration: 1h30m, exit-code: 3, cpu: 250m, memory: [[0, 100Mi], [10m, 1Gi]]}"
    behaviour = behaviour_of(rules(tmp_path, text), pod())
    assert (behaviour.run_time, behaviour.exit_code) == (seconds(5400), 3)
    assert behaviour.cpu == UsageCurve(((Duration(0), 250),))
    assert behaviour.memory == UsageCurve(((Duration(0), 100 * MI), (seconds(600), 1024 * MI)))


@pytest.mark.parametrize(
    ("matches", "yes"),
    [
        ("image: app", True),  # without its tag
        ("image: app:1", True),
        ("image: app:2", False),
        ('image: "*"', True),
        ("image: other*", False),
        ("container: main", True),
        ("container: side*", False),
        ("namespace: default", True),
        ("namespace: kube-system", False),
        ('pod: "p*"', True),
        ("pod: q", False),
        ("labels: {app: web}", True),
        ("labels: {app: web, tier: front*}", True),
        ("labels: {app: web, tier: back}", False),
        ("labels: {stage: test}", False),
        ('labels: {stage: "*"}', False),
    ],
)
def test_all_patterns_of_a_rule_must_match(tmp_path: Path, matches: str, yes: bool) -> None:
    subject = pod(labels={"app": "web", "tier": "frontend"})
    behaviour = behaviour_of(rules(tmp_path, f"- {{{matches}, duration: 5}}"), subject)
    assert (behaviour.run_time == seconds(5)) is yes


@pytest.mark.parametrize(
    ("image", "name"),
    [("host:5000/a/b:1", "host:5000/a/b"), ("a/b@sha256:0", "a/b"), ("a/b:1@sha256:0", "a/b"), ("a", "a")],
)
def test_an_image_pattern_may_omit_tag_and_digest(tmp_path: Path, image: str, name: str) -> None:
    assert behaviour_of(rules(tmp_path, f"- {{image: '{name}', duration: 5}}"), pod(image=image)).run_time == seconds(5)


def test_the_first_matching_rule_applies_and_unused_rules_are_noted(tmp_path: Path) -> None:
    rules_read = rules(
        tmp_path, "- {image: app, duration: 5}\n- {image: '*', duration: 6}\n- {image: none, duration: 7}\n"
    )
    container_rules, notes = ContainerRules(rules_read, Streams(0)), FidelityNotes()
    for subject, length in ((pod(), 5), (pod(image="other"), 6)):
        behaviour = container_rules.behaviour_of(subject, subject["spec"]["containers"][0], 0, is_init=False)
        assert behaviour.run_time == seconds(length)
    container_rules.note_unused(notes)
    (note,) = notes.rows()
    assert (note["count"], str(note["example"]).endswith("rules.yaml: [2]")) == (1, True)


@pytest.mark.parametrize(
    ("pattern", "command", "args", "yes"),
    [
        ("", None, None, True),
        ("", None, ["pause"], False),
        ("pause*", None, ["pause"], True),
        ("python train.py *", ["python"], ["train.py", "--epochs", "3"], True),
        ("python train.py *", ["python", "test.py"], None, False),
        ("*", None, None, True),
        ("*", "no list", 7, True),
    ],
)
def test_a_command_pattern_includes_the_arguments_and_an_empty_one_matches_no_command(
    tmp_path: Path, pattern: str, command: object, args: object, yes: bool
) -> None:
    subject = pod()
    subject["spec"]["containers"][0] |= {"command": command, "args": args}
    behaviour = behaviour_of(rules(tmp_path, f"- {{command: '{pattern}', duration: 5}}"), subject)
    assert (behaviour.run_time == seconds(5)) is yes


def test_the_cpu_load_is_that_of_the_first_matching_rule(tmp_path: Path) -> None:
    rules_read = ContainerRules(
        rules(tmp_path, "- {image: app, cpu-load: [[0s, 1], [10s, 3]]}\n- {image: '*', cpu: 1}\n"), Streams(0)
    )
    load = rules_read.load_of(pod(), pod()["spec"]["containers"][0])
    assert load is not None
    assert [load.cpu.value_at(seconds(second)) for second in (0, 5, 20)] == [1000, 2000, 3000]
    other = pod(image="other")
    assert rules_read.load_of(other, other["spec"]["containers"][0]) is None


def test_an_init_container_needs_a_pattern_for_its_image_or_name(tmp_path: Path) -> None:
    assert behaviour_of(rules(tmp_path, "- {pod: p, duration: 5}"), pod(), is_init=True) == ContainerBehaviour()
    assert behaviour_of(
        rules(tmp_path, "- {image: app, pod: p, duration: 5}"), pod(), is_init=True
    ).run_time == seconds(5)


def test_a_container_may_run_forever(tmp_path: Path) -> None:
    assert behaviour_of(rules(tmp_path, f"- {{image: app, duration: {FOREVER}}}"), pod()).run_time == FOREVER


@pytest.mark.parametrize(
    ("text", "well_s"),
    [
        ("healthy-after: 30s", [30, 59, 60, 10**6]),
        ("healthy-until: 1m", [0, 29, 30, 59]),
        ("healthy-after: 30s, healthy-until: 1m", [30, 59]),
        ("healthy-after: 'uniform:30.1,31', healthy-until: forever", [59, 60, 10**6]),
        ("healthy-after: forever", []),
        ("healthy-until: 0", []),
    ],
)
def test_a_rule_sets_the_ages_at_which_a_container_is_healthy(tmp_path: Path, text: str, well_s: list[int]) -> None:
    health = behaviour_of(rules(tmp_path, f"- {{image: app, {text}}}"), pod()).health
    assert health is not None
    assert [age for age in (0, 29, 30, 59, 60, 10**6) if health.is_healthy(seconds(age))] == well_s


def test_a_rule_on_health_without_a_probe_is_noted(tmp_path: Path) -> None:
    rules_read = ContainerRules(rules(tmp_path, "- {image: app, healthy-after: 30s}"), Streams(0))
    notes, subject = FidelityNotes(), pod()
    rules_read.behaviour_of(
        subject, {**subject["spec"]["containers"][0], "livenessProbe": {"grpc": {"port": 1}}}, 0, is_init=False
    )
    rules_read.note_unused(notes)
    assert not notes.rows()
    rules_read.behaviour_of(subject, subject["spec"]["containers"][0], 0, is_init=False)
    rules_read.note_unused(notes)
    assert [row["message"] for row in notes.rows()] == [
        "a rule specifies when a container is healthy, but the container has no probe"
    ]


DRAWN = (
    '- {image: "*", duration: "lognormal:600,0.5", exit-code: "choice:0,0,1", cpu: "uniform:0.1,2", '
    "memory: {name: uniform, low: 1000000, high: 2000000}}"
)


@given(order=st.permutations(range(6)), seed=st.integers(0, 3))
def test_random_values_of_a_container_do_not_depend_on_earlier_draws(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], seed: int
) -> None:
    rules_read = rules(tmp_path_factory.mktemp("rules"), DRAWN)
    pods = [pod(f"p{number % 3}") for number in range(6)]
    alone = [behaviour_of(rules_read, pods[number], number // 3, seed) for number in range(6)]
    together = ContainerRules(rules_read, Streams(seed))
    for number in order:
        subject = pods[number]
        assert (
            together.behaviour_of(subject, subject["spec"]["containers"][0], number // 3, is_init=False)
            == alone[number]
        )
    assert len({behaviour.run_time for behaviour in alone}) == 6  # each pod and each run of it draws its own


def test_random_values_follow_their_distribution(tmp_path: Path) -> None:
    rules_read = rules(tmp_path, DRAWN)
    behaviours = [behaviour_of(rules_read, pod(f"p{number}")) for number in range(300)]
    lengths = sorted(behaviour.run_time for behaviour in behaviours if isinstance(behaviour.run_time, int))
    assert 0.85 < lengths[150] / seconds(600) < 1.15
    assert 60 < sum(behaviour.exit_code or 0 for behaviour in behaviours) < 140
    assert all(behaviour.cpu is not None and 100 <= behaviour.cpu.points[0][1] <= 2000 for behaviour in behaviours)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "contains no rules"),
        ("image: app", "which is not a list"),
        ("- app", "[0]"),
        ("- {duration: 5}", "matches no container"),
        ("- {image: app}", "specifies no behaviour"),
        ("- {image: app, length: 5}", "[0].length"),
        ("- {image: app, duration: soon}", "[0].duration"),
        ("- {image: app, cpu: 1, cpu-load: 5}", "[0].cpu-load"),
        ("- {image: app, cpu-load: [[5s, 1], [1s, 2]]}", "needs points in order of age"),
        ("- {image: app, duration: -5}", "negative"),
        ("- {image: app, duration: 'uniform:1'}", "uniform"),
        ("- {image: app, exit-code: 256}", "0 to 255"),
        ("- {image: app, exit-code: 'uniform:0,1'}", "0 to 255"),
        ("- {image: app, cpu: lots}", "[0].cpu"),
        ("- {image: app, memory: []}", "needs points"),
        ("- {image: app, memory: [[10, 1Gi], [5, 1Gi]]}", "needs points in order of age"),
        ("- {image: app, memory: [[10]]}", "[0].memory[0]"),
        ("- {labels: web, duration: 5}", "[0].labels"),
        ("- {image: app, healthy-after: soon}", "[0].healthy-after"),
        ("- {image: app, healthy-after: 30s, healthy-until: 30}", "[0].healthy-until: is not later than healthy-after"),
    ],
)
def test_an_invalid_rule_is_rejected_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        rules(tmp_path, text)
    assert words in str(error.value)


def test_rules_that_match_no_container_of_the_objects_are_rejected(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:2"}]}}
    cron = {
        "kind": "CronJob",
        "metadata": {"name": "c"},
        "spec": {"jobTemplate": {"spec": {"template": template}}},
    }
    reject_unmatched_rules(rules(tmp_path, "- {image: web, duration: 5}"), [cron])
    reject_unmatched_rules(rules(tmp_path, "- {labels: {app: web}, pod: c-*, duration: 5}"), [cron])
    with pytest.raises(InputError, match=r"(?s)no rule matches.*the workload's images are: web:2, app:1"):
        reject_unmatched_rules(rules(tmp_path, "- {image: nginx, duration: 5}"), [cron, pod()])
    with pytest.raises(InputError, match="no rule matches"):
        reject_unmatched_rules(rules(tmp_path, "- {pod: q, duration: 5}"), [pod()])


POINTS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 50)), min_size=1, max_size=6)


@given(POINTS, st.integers(0, 50), st.integers(0, 60))
def test_a_curve_exceeds_a_limit_at_the_first_age_with_a_larger_amount(
    points: list[tuple[int, int]], limit: int, since: int
) -> None:
    curve = UsageCurve(tuple(sorted((Duration(age * 1000), amount * 1000) for age, amount in points)))
    age = curve.first_age_above(limit * 1000, Duration(since * 1000))
    ages = [Duration(age) for age in range(since * 1000, 101_000, random.Random(limit).randint(50, 150))]
    beyond = [age for age in ages if curve.value_at(age) > limit * 1000]
    assert (age is None) <= (not beyond)
    if age is not None:
        assert not [later for later in beyond if later < age]
        assert curve.value_at(age) >= limit * 1000
