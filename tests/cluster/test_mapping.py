from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from batkube.cluster.mapping import PodFactory, ResourceModel, as_label_value, kube_name, node_of, pod_base_name, uid_of
from batkube.kernel.instants import Duration, Instant
from batkube.kernel.quantities import CPU, MEMORY, PODS
from batkube.platforms.model import Machine
from batkube.workloads.model import Delay, Job

RFC_1123_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def a_job(name: str, size: int = 1) -> Job:
    return Job(
        workload="w0",
        name=name,
        submit=Instant(0),
        size=size,
        profile=Delay(name="d", duration=Duration(1)),
        requests=((CPU, 188), (MEMORY, 2**30)),
    )


@given(st.text(max_size=300))
def test_any_text_becomes_a_valid_kubernetes_name_and_label(text: str) -> None:
    name = kube_name(text)

    assert RFC_1123_SUBDOMAIN.fullmatch(name)
    assert len(name) <= 253 - len("-999999")
    assert LABEL_VALUE.fullmatch(as_label_value(text))
    assert len(as_label_value(text)) <= 63


@given(st.text(max_size=20), st.text(max_size=20))
def test_different_texts_get_different_names(one: str, other: str) -> None:
    assert (kube_name(one) == kube_name(other)) == (one == other)


def test_valid_names_are_unchanged() -> None:
    assert kube_name("graphene-1.nancy.grid5000.fr") == "graphene-1.nancy.grid5000.fr"
    assert pod_base_name(a_job("12")) == "w0-12"


def test_a_gang_never_shares_a_pod_name_with_a_job_named_like_a_rank() -> None:
    factory = PodFactory(ResourceModel.REQUESTS)

    gang, _ = factory.identities_of(a_job("7", size=2))
    lookalike, _ = factory.identities_of(a_job("7-0"))

    assert gang == ["default/w0-7-0", "default/w0-7-1"]
    assert not set(gang) & set(lookalike)


def test_a_pod_has_its_requests_as_kubernetes_quantities() -> None:
    pod = PodFactory(ResourceModel.REQUESTS).template_of(a_job("1"))

    assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "188m", "memory": "1Gi"}}
    assert pod["metadata"]["labels"] == {"batkube.io/workload": "w0", "batkube.io/job": "1"}
    assert "nodeName" not in pod["spec"]


def test_in_the_whole_machine_model_pods_request_a_machine_and_nodes_offer_one() -> None:
    machine = Machine(id=0, name="a", capacity={CPU: 4000, PODS: 110})

    pod = PodFactory(ResourceModel.MACHINES).template_of(a_job("1"))
    _, node = node_of(machine, ResourceModel.MACHINES, Instant(0))

    resources = pod["spec"]["containers"][0]["resources"]
    assert resources["requests"]["batkube.io/machine"] == resources["limits"]["batkube.io/machine"] == "1"
    assert node["status"]["allocatable"] == {"cpu": "4", "pods": "110", "batkube.io/machine": "1"}


def test_every_pod_has_a_unique_uid() -> None:
    factory = PodFactory(ResourceModel.REQUESTS)

    uids = [uid_of(number) for name in "ab" for number in factory.identities_of(a_job(name, size=3))[1]]

    assert len(set(uids)) == 6
