"""Rules: which containers they speak of, what they say, and that chance does not depend on order."""

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


def said(
    some: tuple[ContainerRule, ...], one: dict[str, Any], run: int = 0, seed: int = 0, *, is_init: bool = False
) -> ContainerBehaviour:
    return ContainerRules(some, Streams(seed)).behaviour_of(one, one["spec"]["containers"][0], run, is_init=is_init)


def test_a_rule_says_how_long_how_it_ends_and_what_is_used(tmp_path: Path) -> None:
    text = "- {image: app, duration: 1h30m, exit-code: 3, cpu: 250m, memory: [[0, 100Mi], [10m, 1Gi]]}"
    conduct = said(rules(tmp_path, text), pod())
    assert (conduct.run_time, conduct.exit_code) == (seconds(5400), 3)
    assert conduct.cpu == UsageCurve(((Duration(0), 250),))
    assert conduct.memory == UsageCurve(((Duration(0), 100 * MI), (seconds(600), 1024 * MI)))


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
def test_all_that_a_rule_names_must_match(tmp_path: Path, matches: str, yes: bool) -> None:
    one = pod(labels={"app": "web", "tier": "frontend"})
    conduct = said(rules(tmp_path, f"- {{{matches}, duration: 5}}"), one)
    assert (conduct.run_time == seconds(5)) is yes


@pytest.mark.parametrize(
    ("image", "name"),
    [("host:5000/a/b:1", "host:5000/a/b"), ("a/b@sha256:0", "a/b"), ("a/b:1@sha256:0", "a/b"), ("a", "a")],
)
def test_an_image_is_known_by_its_name_without_tag_and_digest(tmp_path: Path, image: str, name: str) -> None:
    assert said(rules(tmp_path, f"- {{image: '{name}', duration: 5}}"), pod(image=image)).run_time == seconds(5)


def test_the_first_rule_that_matches_counts_and_one_that_never_did_is_noted(tmp_path: Path) -> None:
    some = rules(tmp_path, "- {image: app, duration: 5}\n- {image: '*', duration: 6}\n- {image: none, duration: 7}\n")
    container_rules, notes = ContainerRules(some, Streams(0)), FidelityNotes()
    for one, length in ((pod(), 5), (pod(image="other"), 6)):
        conduct = container_rules.behaviour_of(one, one["spec"]["containers"][0], 0, is_init=False)
        assert conduct.run_time == seconds(length)
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
def test_a_command_is_matched_with_its_arguments_and_an_empty_one_means_none(
    tmp_path: Path, pattern: str, command: object, args: object, yes: bool
) -> None:
    one = pod()
    one["spec"]["containers"][0] |= {"command": command, "args": args}
    conduct = said(rules(tmp_path, f"- {{command: '{pattern}', duration: 5}}"), one)
    assert (conduct.run_time == seconds(5)) is yes


def test_a_load_is_that_of_the_rule_that_matches(tmp_path: Path) -> None:
    some = ContainerRules(
        rules(tmp_path, "- {image: app, cpu-load: [[0s, 1], [10s, 3]]}\n- {image: '*', cpu: 1}\n"), Streams(0)
    )
    load = some.load_of(pod(), pod()["spec"]["containers"][0])
    assert load is not None
    assert [load.cpu.value_at(seconds(second)) for second in (0, 5, 20)] == [1000, 2000, 3000]
    other = pod(image="other")
    assert some.load_of(other, other["spec"]["containers"][0]) is None


def test_an_init_container_is_meant_only_where_it_is_named(tmp_path: Path) -> None:
    assert said(rules(tmp_path, "- {pod: p, duration: 5}"), pod(), is_init=True) == ContainerBehaviour()
    assert said(rules(tmp_path, "- {image: app, pod: p, duration: 5}"), pod(), is_init=True).run_time == seconds(5)


def test_a_container_may_run_for_ever(tmp_path: Path) -> None:
    assert said(rules(tmp_path, f"- {{image: app, duration: {FOREVER}}}"), pod()).run_time == FOREVER


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
def test_a_rule_says_at_which_ages_a_container_is_healthy(tmp_path: Path, text: str, well_s: list[int]) -> None:
    health = said(rules(tmp_path, f"- {{image: app, {text}}}"), pod()).health
    assert health is not None
    assert [age for age in (0, 29, 30, 59, 60, 10**6) if health.is_healthy(seconds(age))] == well_s


def test_that_nobody_looks_whether_a_container_is_healthy_is_noted(tmp_path: Path) -> None:
    some = ContainerRules(rules(tmp_path, "- {image: app, healthy-after: 30s}"), Streams(0))
    notes, one = FidelityNotes(), pod()
    some.behaviour_of(one, {**one["spec"]["containers"][0], "livenessProbe": {"grpc": {"port": 1}}}, 0, is_init=False)
    some.note_unused(notes)
    assert not notes.rows()
    some.behaviour_of(one, one["spec"]["containers"][0], 0, is_init=False)
    some.note_unused(notes)
    assert [row["message"] for row in notes.rows()] == [
        "a rule specifies when a container is healthy, but the container has no probe"
    ]


DRAWN = (
    '- {image: "*", duration: "lognormal:600,0.5", exit-code: "choice:0,0,1", cpu: "uniform:0.1,2", '
    "memory: {name: uniform, low: 1000000, high: 2000000}}"
)


@given(order=st.permutations(range(6)), seed=st.integers(0, 3))
def test_what_is_drawn_for_a_container_does_not_depend_on_what_was_drawn_before(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], seed: int
) -> None:
    some = rules(tmp_path_factory.mktemp("rules"), DRAWN)
    pods = [pod(f"p{number % 3}") for number in range(6)]
    alone = [said(some, pods[number], number // 3, seed) for number in range(6)]
    together = ContainerRules(some, Streams(seed))
    for number in order:
        one = pods[number]
        assert together.behaviour_of(one, one["spec"]["containers"][0], number // 3, is_init=False) == alone[number]
    assert len({conduct.run_time for conduct in alone}) == 6  # each pod and each run of it draws its own


def test_what_is_drawn_is_of_the_distribution(tmp_path: Path) -> None:
    some = rules(tmp_path, DRAWN)
    conducts = [said(some, pod(f"p{number}")) for number in range(300)]
    lengths = sorted(one.run_time for one in conducts if isinstance(one.run_time, int))
    assert 0.85 < lengths[150] / seconds(600) < 1.15
    assert 60 < sum(one.exit_code or 0 for one in conducts) < 140
    assert all(one.cpu is not None and 100 <= one.cpu.points[0][1] <= 2000 for one in conducts)


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
def test_a_wrong_rule_is_refused_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as refusal:
        rules(tmp_path, text)
    assert words in str(refusal.value)


def test_rules_that_can_match_no_container_of_the_objects_are_refused(tmp_path: Path) -> None:
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
def test_a_curve_exceeds_a_limit_exactly_when_its_amount_does(
    points: list[tuple[int, int]], limit: int, since: int
) -> None:
    curve = UsageCurve(tuple(sorted((Duration(age * 1000), amount * 1000) for age, amount in points)))
    age = curve.first_age_above(limit * 1000, Duration(since * 1000))
    ages = [Duration(age) for age in range(since * 1000, 101_000, random.Random(limit).randint(50, 150))]
    beyond = [age for age in ages if curve.value_at(age) > limit * 1000]
    assert (age is None) <= (not beyond)
    if age is not None:
        assert not [one for one in beyond if one < age]
        assert curve.value_at(age) >= limit * 1000
