"""Service accounts of pods."""

from __future__ import annotations

import random

from tests.api.admission.admission_cluster import Cluster, pod


def test_pods_get_a_service_account_only_if_the_plugin_is_enabled() -> None:
    bare, full = Cluster(), Cluster(random.Random(1))

    without, spec = bare.write(pod())["spec"], full.write(pod())["spec"]

    assert "serviceAccountName" not in without
    assert spec["serviceAccountName"] == "default"
    (volume,), (mount,) = spec["volumes"], spec["containers"][0]["volumeMounts"]
    assert volume["name"] == mount["name"]
    assert volume["name"].startswith("kube-api-access-")
    assert 'serviceaccount "robot" not found' in full.refusal(pod(serviceAccountName="robot"))
