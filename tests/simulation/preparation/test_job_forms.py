"""The form in which jobs are submitted to a scheduler: from its catalogue entry, --submit-as, or the defined kinds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from batkube.cluster.jobs.outcomes import PastAttempts
from batkube.cluster.jobs.submission_forms import POD_GROUP_APIS, PodGroupApi, SubmissionForm
from batkube.cluster.mapping import POD, ResourceModel
from batkube.cluster.store import Key, KubeObject, Store
from batkube.cluster.store_client import StoreClient
from batkube.cluster.world import World
from batkube.kernel.errors import InputError
from batkube.kernel.instants import START, Duration, Instant
from batkube.kernel.streams import Streams
from batkube.programs.program import ExternalProgram
from batkube.scenarios.keys import make_scenario
from batkube.schedulers.catalogue import read_catalogue
from batkube.schedulers.named_programs import ProgramStart, program_start
from batkube.simulation.preparation.job_forms import JobForm, job_creator_of, job_forms_of, require_job_controller
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
def test_each_scheduler_of_the_catalogue_has_its_form_and_pod_group_api(
    name: str, form: str, version: str | None
) -> None:
    start = program_start(name)
    kinds = {"kueue-job": "localqueues.kueue.x-k8s.io", "pod-group": f"podgroups.{str(version).partition('/')[0]}"}
    objects = definitions(kinds.get(form, ""))

    [job_form] = job_forms_of(None, [scheduler(start, name)], objects).values()

    assert job_form.form == form
    if version is not None:
        assert job_form.dialect == POD_GROUP_APIS[version]


def test_submit_as_takes_precedence_over_the_catalogue_entry() -> None:
    [job_form] = job_forms_of("volcano-job", [scheduler(program_start("volcano"))], VOLCANO_KINDS).values()

    assert job_form.form is SubmissionForm.VOLCANO_JOB


def test_an_unknown_pod_group_api_is_as_the_catalogue_entry_describes_it() -> None:
    start = ProgramStart((), {}, "mine", submit_as="pod-group", pod_group="mine.org/v1", pod_group_key="mine.org/group")

    [job_form] = job_forms_of(None, [scheduler(start)], definitions("podgroups.mine.org")).values()

    assert job_form.dialect == PodGroupApi("mine.org/v1", "mine.org/group", "mine.org/group")


@pytest.mark.parametrize("version", ["scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"])
def test_a_key_replaces_the_annotation_or_label_of_a_known_api(version: str) -> None:
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
def test_pods_name_their_group_in_the_annotation_or_label_of_the_entry(
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
    creator = job_creator_of(world, ResourceModel.REQUESTS, StoreClient(world.store), forms)
    job = Job(
        workload="w0", name="7", submit=START, size=2, profile=Delay(name="d", duration=Duration(1)), scheduler="mine"
    )
    creator.create(job, START, PastAttempts())

    for pod in world.store.all(POD).values():
        metadata = pod["metadata"]
        assert ("mine.org/group" in metadata["annotations"]) is is_annotation
        assert ("mine.org/group" in metadata["labels"]) is is_label


def test_an_undefined_pod_group_kind_is_an_input_error() -> None:
    start = ProgramStart((), {}, "mine", submit_as="pod-group", pod_group="mine.org/v1", pod_group_key="mine.org/group")

    with pytest.raises(InputError, match=r"mine uses PodGroups of mine.org/v1, but that kind is not defined"):
        job_forms_of(None, [scheduler(start)], VOLCANO_KINDS)


def test_a_scheduler_without_an_entry_uses_the_defined_pod_group_kind() -> None:
    objects = definitions("podgroups.scheduling.x-k8s.io")

    [job_form] = job_forms_of("pod-group", [scheduler(program_start("kube-scheduler"))], objects).values()

    assert job_form.dialect == POD_GROUP_APIS["scheduling.x-k8s.io/v1alpha1"]


@pytest.mark.parametrize("form", ["pod-group", "volcano-job", "kueue-job"])
def test_a_form_that_the_scheduler_does_not_support_is_an_input_error(form: str) -> None:
    with pytest.raises(InputError) as refusal:
        job_forms_of(form, [scheduler(program_start("kube-scheduler"), "kube-scheduler@1.34.4")], [])

    assert refusal.value.problem == f"kube-scheduler@1.34.4 does not support jobs as '{form}'"
    assert refusal.value.remedy == "use one of pods, indexed-job"


def test_indexed_jobs_require_a_job_controller() -> None:
    job_forms = job_forms_of("indexed-job", [scheduler(program_start("kube-scheduler"))], [])

    with pytest.raises(InputError, match="jobs submitted as 'indexed-job' need the Job controller"):
        require_job_controller(job_forms)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"submit-as": "podgroup"}, "'podgroup' is unknown"),
        ({"submit-as": "pod-group"}, "policy:fcfs does not support jobs as 'pod-group'"),
        ({"on-deadlock": "hope"}, "'hope' is unknown"),
    ],
)
def test_an_invalid_value_in_a_scenario_is_rejected(values: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError) as refusal:
        make_scenario({"workload": "w.json", "platform": "1x1", **values}, "scenario.yaml")

    assert refusal.value.problem == problem


class UidRecorder(StoreClient):
    """Records the uids of the pods that are created; the store has none of them in runs without an API."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.uids: list[str] = []

    def create_copies(
        self, storage: str, template: KubeObject, keys: Sequence[Key], uids: Iterable[str], now: Instant
    ) -> None:
        self.uids += uids
        super().create_copies(storage, template, keys, uids, now)


def test_pods_of_all_forms_have_unique_uids() -> None:
    """The cache of kube-scheduler identifies pods by uid, including pods of other schedulers."""
    world = World(Streams(0))
    client = UidRecorder(world.store)
    job_forms = {"first": JobForm(SubmissionForm.PODS), "second": JobForm(SubmissionForm.POD_GROUP)}
    creator = job_creator_of(world, ResourceModel.REQUESTS, client, job_forms)

    for number, scheduler in enumerate(["first", "second", "first", "second"]):
        profile = Delay(name="d", duration=Duration(1))
        job = Job(workload="w0", name=str(number), submit=START, size=2, profile=profile, scheduler=scheduler)
        creator.create(job, START, PastAttempts())

    assert len(client.uids) == len(set(client.uids)) == len(world.store.all(POD)) == 8
