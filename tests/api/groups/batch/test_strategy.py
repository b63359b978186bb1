"""Strategy of Jobs: labels and selectors of their pods."""

from __future__ import annotations

from tests.api.groups.prepared_objects import TEMPLATE, created, made


def test_a_job_selects_its_own_pods() -> None:
    labels = {"metadata": {"labels": {"mine": "1"}}, "spec": TEMPLATE["spec"]}
    job = created(made("Job", "batch/v1", spec={"template": labels}))

    own = job["spec"]["template"]["metadata"]["labels"]
    assert own["batch.kubernetes.io/controller-uid"] == own["controller-uid"] == "the-uid"
    assert own["job-name"] == own["batch.kubernetes.io/job-name"] == "x"
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "the-uid"}}
    assert job["metadata"]["labels"] == own


def test_a_manual_selector_is_kept() -> None:
    selector = {"matchLabels": {"a": "b"}}
    job = created(made("Job", "batch/v1", spec={"template": TEMPLATE, "manualSelector": True, "selector": selector}))

    assert job["spec"]["selector"] == selector
    assert job["spec"]["template"]["metadata"]["labels"] == {"a": "b"}
