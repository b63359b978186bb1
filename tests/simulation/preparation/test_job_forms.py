"""What jobs are to their schedulers: by the scheduler's entry, by wish, and by what is defined."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.cluster.jobs.outcomes import PastAttempts
from batkube.cluster.jobs.submission_forms import POD_GROUP_APIS, PodGroupApi, SubmissionForm
from batkube.cluster.mapping import POD, ResourceModel
from batkube.cluster.store import KubeObject
from batkube.cluster.store_client import StoreClient
from batkube.cluster.world import World
from batkube.kernel.errors import InputError
from batkube.kernel.instants import START, Duration
from batkube.kernel.streams import Streams
from batkube.programs.program import ExternalProgram
from batkube.scenarios.keys import make_scenario
from batkube.schedulers.catalogue import read_catalogue
from batkube.schedulers.named_programs import ProgramStart, program_start
from batkube.simulation.preparation.job_forms import JobForm, job_forms_of, job_maker_of, require_job_controller
from batkube.workloads.model import Delay, Job


def scheduler(start: ProgramStart, name: str = "mine") -> ExternalProgram:
    return ExternalProgram(name, Path("/mine"), start)


def definitions(*names: str) -> list[KubeObject]:
    return [{"kind": "CustomResourceDefinition", "metadata": {"name": name}} for name in names]


VOLCANO_KINDS = definitions("podgroups.scheduling.volcano.sh", "jobs.batch.volcano.sh")


@pytest.mark.parametrize(
    ("name", "form", "version"),
    [
        ("kube-scheduler@1.34.4", "pods", None),
        ("volcano@1.10.0", "pod-group", "scheduling.volcano.sh/v1beta1"),
        ("kube-batch@0.5.0", "pod-group", "scheduling.incubator.k8s.io/v1alpha1"),
        ("scheduler-plugins@0.30.6", "pod-group", "scheduling.x-k8s.io/v1alpha1"),
        ("kueue@0.10.0", "kueue-job", None),
    ],
)
def test_each_scheduler_of_the_catalogue_gets_jobs_in_its_own_words(name: str, form: str, version: str | None) -> None:
    start = program_start(name)
    kinds = {"kueue-job": "localqueues.kueue.x-k8s.io", "pod-group": f"podgroups.{str(version).partition('/')[0]}"}
    objects = definitions(kinds.get(form, ""))

    [job_form] = job_forms_of(None, [scheduler(start, name)], objects).values()

    assert job_form.form == form
    if version is not None:
        assert job_form.dialect == POD_GROUP_APIS[version]


def test_a_wish_comes_before_the_entry() -> None:
    [job_form] = job_forms_of("volcano-job", [scheduler(program_start("volcano"))], VOLCANO_KINDS).values()

    assert job_form.form is SubmissionForm.VOLCANO_JOB


def test_a_dialect_of_the_users_own_is_taken_as_its_entry_describes_it() -> None:
    start = ProgramStart((), {}, "mine", submit_as="pod-group", pod_group="mine.org/v1", pod_group_key="mine.org/group")

    [job_form] = job_forms_of(None, [scheduler(start)], definitions("podgroups.mine.org")).values()

    assert job_form.dialect == PodGroupApi("mine.org/v1", "mine.org/group", "mine.org/group")


@pytest.mark.parametrize("version", ["scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"])
def test_another_key_of_a_known_dialect_is_an_annotation_or_a_label_as_its_own(version: str) -> None:
    start = ProgramStart((), {}, "mine", submit_as="pod-group", pod_group=version, pod_group_key="mine.org/group")

    [job_form] = job_forms_of(None, [scheduler(start)], definitions(f"podgroups.{version.partition('/')[0]}")).values()

    known = POD_GROUP_APIS[version]
    assert job_form.dialect == known._replace(
        annotation="mine.org/group" if known.annotation else "", label="mine.org/group" if known.label else ""
    )


@pytest.mark.parametrize(
    ("keys", "is_annotation", "is_label"),
    [
        ("pod-group: mine.org/v1, pod-group-key: mine.org/group", True, True),
        ("pod-group: mine.org/v1, pod-group-label: mine.org/group", False, True),
        ("pod-group: scheduling.volcano.sh/v1beta1, pod-group-key: mine.org/group", True, False),
        ("pod-group: scheduling.x-k8s.io/v1alpha1, pod-group-key: mine.org/group", False, True),
    ],
)
def test_pods_name_their_group_by_an_annotation_or_a_label_as_the_entry_says(
    keys: str, is_annotation: bool, is_label: bool, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        f"mine: {{about: mine, scheduler-name: mine, command: [./x], clock: preload, submit-as: pod-group, {keys}}}"
    )
    start = program_start("mine", read_catalogue([file]))
    kinds = (f"podgroups.{version.partition('/')[0]}" for version in ("mine.org", *POD_GROUP_APIS))
    forms = job_forms_of(None, [scheduler(start)], definitions(*kinds))
    world = World(Streams(0))
    maker = job_maker_of(world, ResourceModel.REQUESTS, StoreClient(world.store), forms)
    job = Job(
        workload="w0", name="7", submit=START, size=2, profile=Delay(name="d", duration=Duration(1)), scheduler="mine"
    )
    maker.create(job, START, PastAttempts())

    for pod in world.store.all(POD).values():
        metadata = pod["metadata"]
        assert ("mine.org/group" in metadata["annotations"]) is is_annotation
        assert ("mine.org/group" in metadata["labels"]) is is_label


def test_a_dialect_that_nobody_defines_is_one_message() -> None:
    start = ProgramStart((), {}, "mine", submit_as="pod-group", pod_group="mine.org/v1", pod_group_key="mine.org/group")

    with pytest.raises(InputError, match=r"mine uses PodGroups of mine.org/v1, but that kind is not defined"):
        job_forms_of(None, [scheduler(start)], VOLCANO_KINDS)


def test_a_scheduler_without_an_entry_has_the_dialect_that_is_defined() -> None:
    objects = definitions("podgroups.scheduling.x-k8s.io")

    [job_form] = job_forms_of("pod-group", [scheduler(program_start("kube-scheduler"))], objects).values()

    assert job_form.dialect == POD_GROUP_APIS["scheduling.x-k8s.io/v1alpha1"]


@pytest.mark.parametrize("form", ["pod-group", "volcano-job", "kueue-job"])
def test_a_form_that_the_scheduler_does_not_know_is_one_message(form: str) -> None:
    with pytest.raises(InputError) as refusal:
        job_forms_of(form, [scheduler(program_start("kube-scheduler"), "kube-scheduler@1.34.4")], [])

    assert refusal.value.problem == f"kube-scheduler@1.34.4 does not support jobs as '{form}'"
    assert refusal.value.remedy == "use one of pods, indexed-job"


def test_jobs_without_a_job_controller_are_refused() -> None:
    job_forms = job_forms_of("indexed-job", [scheduler(program_start("kube-scheduler"))], [])

    with pytest.raises(InputError, match="jobs submitted as 'indexed-job' need the Job controller"):
        require_job_controller(job_forms)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"submit-as": "podgroup"}, "'podgroup' is not possible"),
        ({"submit-as": "pod-group"}, "policy:fcfs does not support jobs as 'pod-group'"),
        ({"on-deadlock": "hope"}, "'hope' is not possible"),
    ],
)
def test_a_wrong_key_is_refused(values: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError) as refusal:
        make_scenario({"workload": "w.json", "platform": "1x1", **values}, "scenario.yaml")

    assert refusal.value.problem == problem


def test_pods_of_all_forms_have_uids_of_their_own() -> None:
    """kube-scheduler's cache has pods by their uids, those that others schedule among them."""
    world = World(Streams(0))
    job_forms = {"first": JobForm(SubmissionForm.PODS), "second": JobForm(SubmissionForm.POD_GROUP)}
    maker = job_maker_of(world, ResourceModel.REQUESTS, StoreClient(world.store), job_forms)

    for number, scheduler in enumerate(["first", "second", "first", "second"]):
        profile = Delay(name="d", duration=Duration(1))
        job = Job(workload="w0", name=str(number), submit=START, size=2, profile=profile, scheduler=scheduler)
        maker.create(job, START, PastAttempts())

    uids = [pod["metadata"]["uid"] for pod in world.store.all(POD).values()]
    assert len(uids) == len(set(uids)) == 8
