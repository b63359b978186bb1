"""The usage of containers: their requests, unless an annotation or a rule says otherwise."""

from __future__ import annotations

from typing import Any

from batkube.cluster.pods.usage import PodUsage
from batkube.cluster.store import Key, Store
from batkube.kernel.instants import START, Duration, Instant, rfc3339, seconds
from batkube.kernel.streams import Streams
from batkube.workloads.container_rules.rules import ContainerRule, ContainerRules
from batkube.workloads.container_rules.usage_curves import UsageCurve


def pod(name: str = "p", *, state: str = "running", **annotations: str) -> dict[str, Any]:
    texts = {f"batkube.io/{key}-usage": text for key, text in annotations.items()}
    container = {"name": "c", "image": "web:1", "resources": {"requests": {"cpu": "500m", "memory": "1Mi"}}}
    status = {"name": "c", "restartCount": 0, "state": {state: {"startedAt": rfc3339(START)}}}
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": name, "namespace": "x", "uid": name, "annotations": texts},
        "spec": {"containers": [container]},
        "status": {"phase": "Running", "containerStatuses": [status], "conditions": conditions},
    }


def usage_of(one: dict[str, Any], *rules: ContainerRule, store: Store | None = None, at_s: float = 0) -> dict[str, str]:
    usage = PodUsage(store or Store(), ContainerRules(rules, Streams(0)))
    return {
        f"{name}.{resource}": str(amount)
        for name, amounts in usage.of(one, Instant(START + seconds(at_s))).items()
        for resource, amount in amounts.items()
    }


def curve(*points: tuple[float, int]) -> UsageCurve:
    return UsageCurve(tuple((Duration(seconds(age)), amount) for age, amount in points))


def test_a_running_container_uses_its_requests() -> None:
    assert usage_of(pod()) == {"c.cpu": "500m", "c.memory": "1Mi"}


def test_containers_that_do_not_run_use_nothing() -> None:
    finished = pod()
    finished["status"]["phase"] = "Succeeded"

    assert usage_of(finished) == {}
    assert usage_of(pod(state="waiting")) == {}


def test_a_rule_sets_the_usage_by_the_age_of_the_run() -> None:
    rule = ContainerRule("rules.yaml: [0]", image="web*", cpu=curve((0, 100), (10, 300)))

    assert usage_of(pod(), rule, at_s=5) == {"c.cpu": "200m", "c.memory": "1Mi"}
    assert usage_of(pod(), rule, at_s=60)["c.cpu"] == "300m"


def test_an_annotation_precedes_a_rule_and_counts_as_0_if_malformed() -> None:
    rule = ContainerRule("rules.yaml: [0]", image="web*", cpu=curve((0, 100)))

    assert usage_of(pod(cpu="2"), rule)["c.cpu"] == "2"
    assert usage_of(pod(cpu="much"), rule)["c.cpu"] == "0"


def test_ready_containers_share_a_load_equally() -> None:
    rule = ContainerRule("rules.yaml: [0]", image="web*", cpu_load=curve((0, 900)))
    store, pods = Store(), [pod("a"), pod("b"), pod("c")]
    pods[2]["status"]["conditions"] = []
    store.create("pods", [Key(f"x/{name}") for name in "abc"], pods, START)

    assert [usage_of(each, rule, store=store)["c.cpu"] for each in pods] == ["450m", "450m", "0"]


def test_a_load_that_is_set_counts_from_that_instant_on() -> None:
    rules = ContainerRules(
        (
            ContainerRule("rules.yaml: [0]", image="web*", labels={"app": "w"}, cpu_load=curve((0, 100), (100, 300))),
            ContainerRule("rules.yaml: [1]", image="batch", cpu=curve((0, 100))),
        ),
        Streams(0),
    )
    usage = PodUsage(Store(), rules, Instant(seconds(1000)))

    assert usage.set_load("rules.yaml: [0]", 700, Instant(seconds(1050)))
    assert [
        load.millicores for second in (1000, 1049, 1050, 1200) for load in usage.loads(Instant(seconds(second)))
    ] == [
        100,
        198,
        700,
        700,
    ]
    assert [tuple(load) for load in usage.loads(Instant(seconds(1050)))] == [
        ("rules.yaml: [0]", "image web*, label app w", 700)
    ]
    assert not usage.set_load("rules.yaml: [1]", 700, Instant(seconds(1060))), "it has no load"
    assert not usage.set_load("other", 700, Instant(seconds(1060)))
