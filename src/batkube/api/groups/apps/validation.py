"""Validation of Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers.

Kubernetes: pkg/apis/apps/validation, and for ReplicationControllers pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.apps.replica_counts import (
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    status_counts_validator,
)
from batkube.api.groups.core.pods.validation.spec import check_pod_annotations, check_template
from batkube.api.groups.core.volumes.claim_validation import check_claim_spec
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.int_or_percent import (
    IntOrPercent,
    check_at_most_100_percent,
    check_positive_int_or_percent,
    int_value,
)
from batkube.api.validation.metadata import (
    check_annotations,
    check_built_in_metadata,
    check_built_in_metadata_update,
    check_labels,
    check_selector,
)
from batkube.api.validation.names import dns_label, label_name, subdomain_name
from batkube.api.validation.problems import IMMUTABLE, Problems
from batkube.api.validation.rules import (
    Object,
    ValidateCreate,
    ValidateUpdate,
    ValidationRules,
    create_then_update,
    metadata_update_then,
    validate_metadata_update,
    with_metadata,
)
from batkube.cluster.selectors import SelectorError, selector_of

_NO_MATCH = "`selector` does not match template `labels`"
_STATEFUL_SET_MUTABLE_FIELDS = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)
_STATEFUL_SET_UPDATE_FORBIDDEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def check_selector_unchanged(new: Object, old: Object, problems: Problems) -> None:
    """Check that the selector has not changed."""
    after, before = new["spec"].get("selector"), old["spec"].get("selector")
    if after != before:
        problems.invalid("spec.selector", go_struct("*meta.LabelSelector", after), IMMUTABLE)


def check_template_labels(
    selector: Mapping[str, Any] | None, template: Mapping[str, Any], path: str, problems: Problems
) -> bool:
    """Check that a selector matches the labels of its template; return whether the selector is valid."""
    labels = template.get("metadata", {}).get("labels")
    try:
        parsed = selector_of(selector)
    except SelectorError:
        return False
    if not parsed.matches(labels):
        problems.invalid(f"{path}.metadata.labels", labels, _NO_MATCH)
    return True


def _check_required_selector(selector: Mapping[str, Any] | None, kind: str, path: str, problems: Problems) -> None:
    if selector is None:
        problems.required(f"{path}.selector")
        return
    check_selector(selector, f"{path}.selector", problems)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        go_text = go_struct("meta.LabelSelector", selector)
        problems.invalid(f"{path}.selector", go_text, f"empty selector is invalid for {kind}")


def _check_restart_policy_always(template: Mapping[str, Any], owner: str, path: str, problems: Problems) -> None:
    spec = template.get("spec", {})
    if (policy := spec.get("restartPolicy", "")) != "Always":
        problems.not_supported(f"{path}.spec.restartPolicy", policy, ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {owner} is not Supported"
        problems.forbidden(f"{path}.spec.activeDeadlineSeconds", detail)


def _check_replicated_template(spec: Mapping[str, Any], problems: Problems) -> None:
    template, selector = spec.get("template", {}), spec.get("selector")
    if check_template_labels(selector, template, "spec.template", problems):
        check_template(template, "spec.template", problems)
        _check_restart_policy_always(template, "ReplicaSet", "spec.template", problems)
    else:
        problems.invalid("spec.selector", go_struct("meta.LabelSelector", selector), "invalid label selector")


def _check_optional_count(spec: Mapping[str, Any], field: str, problems: Problems, path: str = "spec") -> None:
    if (count := spec.get(field)) is not None:
        problems.not_negative(f"{path}.{field}", count)


def _validate_deployment(value: Object, problems: Problems) -> None:
    spec = value.get("spec", {})
    problems.not_negative("spec.replicas", spec.get("replicas", 0))
    _check_required_selector(spec.get("selector"), "deployment", "spec", problems)
    _check_replicated_template(spec, problems)
    _check_deployment_strategy(spec.get("strategy", {}), problems)
    ready = spec.get("minReadySeconds", 0)
    problems.not_negative("spec.minReadySeconds", ready)
    _check_optional_count(spec, "revisionHistoryLimit", problems)
    if (deadline := spec.get("progressDeadlineSeconds")) is not None:
        problems.not_negative("spec.progressDeadlineSeconds", deadline)
        if deadline <= ready:
            problems.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _check_deployment_strategy(strategy: Mapping[str, Any], problems: Problems) -> None:
    kind, rolling, path = strategy.get("type", ""), strategy.get("rollingUpdate"), "spec.strategy.rollingUpdate"
    if kind == "Recreate":
        if rolling is not None:
            problems.forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
    elif kind != "RollingUpdate":
        go_text = go_struct("apps.DeploymentStrategy", strategy)
        problems.not_supported("spec.strategy", go_text, ("Recreate", "RollingUpdate"))
    elif rolling is None:
        problems.required(path, "this should be defaulted and never be nil")
    else:
        missing, extra = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
        check_positive_int_or_percent(missing, f"{path}.maxUnavailable", problems)
        check_positive_int_or_percent(extra, f"{path}.maxSurge", problems)
        if int_value(missing) == 0 and int_value(extra) == 0:
            problems.invalid(f"{path}.maxUnavailable", missing, "may not be 0 when `maxSurge` is 0")
        check_at_most_100_percent(missing, f"{path}.maxUnavailable", problems)


def _validate_replica_set(value: Object, problems: Problems) -> None:
    spec = value.get("spec", {})
    problems.not_negative("spec.replicas", spec.get("replicas", 0))
    problems.not_negative("spec.minReadySeconds", spec.get("minReadySeconds", 0))
    _check_required_selector(spec.get("selector"), "deployment", "spec", problems)
    _check_replicated_template(spec, problems)


def _validate_replication_controller(value: Object, problems: Problems) -> None:
    spec = value.get("spec", {})
    problems.not_negative("spec.minReadySeconds", spec.get("minReadySeconds", 0))
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        problems.required("spec.selector")
    if (replicas := spec.get("replicas")) is None:
        problems.required("spec.replicas")
    else:
        problems.not_negative("spec.replicas", replicas)
    if template is None:
        problems.required("spec.template")
        return
    labels = template.get("metadata", {}).get("labels")
    if not selector.items() <= (labels or {}).items():
        problems.invalid("spec.template.metadata.labels", labels, _NO_MATCH)
    check_template(template, "spec.template", problems)
    _check_restart_policy_always(template, "ReplicationController", "spec.template", problems)


def _validate_stateful_set(value: Object, problems: Problems, *, created: bool = True) -> None:
    spec = value.get("spec", {})
    _check_stateful_set_policies(spec, problems)
    if created:
        for index, claim in enumerate(spec.get("volumeClaimTemplates", ())):
            check_claim_spec(claim.get("spec", {}), f"spec.volumeClaimTemplates[{index}].spec", problems)
    problems.not_negative("spec.replicas", spec.get("replicas", 0))
    problems.not_negative("spec.minReadySeconds", spec.get("minReadySeconds", 0))
    if (ordinals := spec.get("ordinals")) is not None:
        problems.not_negative("spec.ordinals.start", ordinals.get("start", 0))
    if created and (service := spec.get("serviceName")):
        problems.all_invalid("spec.serviceName", service, dns_label(service))
    selector, template = spec.get("selector"), spec.get("template", {})
    _check_required_selector(selector, "statefulset", "spec", problems)
    if check_template_labels(selector, template, "spec.template", problems):
        _check_stateful_set_template(_effective_template(spec), problems)
    else:
        problems.invalid("spec.selector", go_struct("meta.LabelSelector", selector), "")
    _check_restart_policy_always(template, "StatefulSet", "spec.template", problems)


def _check_stateful_set_policies(spec: Mapping[str, Any], problems: Problems) -> None:
    management = spec.get("podManagementPolicy", "")
    if not management:
        problems.required("spec.podManagementPolicy")
    elif management not in ("OrderedReady", "Parallel"):
        problems.invalid("spec.podManagementPolicy", management, "must be 'OrderedReady' or 'Parallel'")
    strategy, path = spec.get("updateStrategy", {}), "spec.updateStrategy"
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if not kind:
        problems.required(path)
    elif kind == "OnDelete":
        if rolling is not None:
            go_text = go_struct("apps.RollingUpdateStatefulSetStrategy", rolling)
            problems.invalid(f"{path}.rollingUpdate", go_text, "only allowed for updateStrategy 'RollingUpdate'")
    elif kind != "RollingUpdate":
        go_text = go_struct("apps.StatefulSetUpdateStrategy", strategy)
        problems.invalid(path, go_text, "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None:
        _check_stateful_set_rolling_update(rolling, f"{path}.rollingUpdate", problems)
    if (policy := spec.get("persistentVolumeClaimRetentionPolicy")) is not None:
        for field in ("whenDeleted", "whenScaled"):
            if (word := policy.get(field, "")) not in ("Retain", "Delete"):
                at = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
                problems.not_supported(at, word, ("Retain", "Delete"))


def _check_stateful_set_rolling_update(rolling: Mapping[str, Any], path: str, problems: Problems) -> None:
    problems.not_negative(f"{path}.partition", rolling.get("partition") or 0)
    if (missing := rolling.get("maxUnavailable")) is not None:
        check_positive_int_or_percent(missing, f"{path}.maxUnavailable", problems)
        if int_value(missing) == 0:
            problems.invalid(f"{path}.maxUnavailable", missing, "cannot be 0")
        check_at_most_100_percent(missing, f"{path}.maxUnavailable", problems)


def _effective_template(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the template with the volumes of claim templates, and without the names that the set assigns."""
    template: Mapping[str, Any] = spec.get("template", {})
    inner, claims = template.get("spec", {}), spec.get("volumeClaimTemplates", ())
    if not claims and "subdomain" not in inner and "hostname" not in inner:
        return template
    inner = {key: value for key, value in inner.items() if key not in ("subdomain", "hostname")}
    if claims:
        names = dict.fromkeys(claim.get("metadata", {}).get("name", "") for claim in claims)
        made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
        inner["volumes"] = made + [v for v in inner.get("volumes", ()) if v.get("name", "") not in names]
    return {**template, "spec": inner}


def _check_stateful_set_template(template: Mapping[str, Any], problems: Problems) -> None:
    check_template(template, "spec.template", problems)
    meta = template.get("metadata", {})
    check_labels(meta.get("labels") or {}, "spec.template.labels", problems)
    if annotations := meta.get("annotations"):
        check_annotations(annotations, "spec.template.annotations", problems)
        check_pod_annotations(annotations, template.get("spec", {}), "spec.template.annotations", problems)


def _validate_stateful_set_update(new: Object, old: Object, problems: Problems) -> None:
    check_built_in_metadata_update(new["metadata"], old["metadata"], problems)
    _validate_stateful_set(new, problems, created=False)
    after, before = (
        {k: v for k, v in obj["spec"].items() if k not in _STATEFUL_SET_MUTABLE_FIELDS} for obj in (new, old)
    )
    if after != before:
        problems.forbidden("spec", _STATEFUL_SET_UPDATE_FORBIDDEN)


def _validate_daemon_set(value: Object, problems: Problems) -> None:
    spec = value.get("spec", {})
    selector, template = spec.get("selector"), spec.get("template", {})
    check_selector(selector, "spec.selector", problems)
    check_template_labels(selector, template, "spec.template", problems)
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        go_text = go_struct("meta.LabelSelector", selector)
        problems.invalid("spec.selector", go_text, "empty selector is invalid for daemonset")
    check_template(template, "spec.template", problems)
    _check_restart_policy_always(template, "DaemonSet", "spec.template", problems)
    problems.not_negative("spec.minReadySeconds", spec.get("minReadySeconds", 0))
    _check_daemon_strategy(spec.get("updateStrategy", {}), problems)
    _check_optional_count(spec, "revisionHistoryLimit", problems)


def _check_daemon_strategy(strategy: Mapping[str, Any], problems: Problems) -> None:
    kind, rolling, path = strategy.get("type", ""), strategy.get("rollingUpdate"), "spec.updateStrategy.rollingUpdate"
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        go_text = go_struct("apps.DaemonSetUpdateStrategy", strategy)
        problems.not_supported("spec.updateStrategy", go_text, ("RollingUpdate", "OnDelete"))
    elif rolling is None:
        problems.required(path)
    else:
        fields: dict[str, IntOrPercent] = {name: rolling.get(name, 0) for name in ("maxUnavailable", "maxSurge")}
        for name, portion in fields.items():
            check_positive_int_or_percent(portion, f"{path}.{name}", problems)
        for name, portion in fields.items():
            check_at_most_100_percent(portion, f"{path}.{name}", problems)
        missing, extra = (int_value(portion) for portion in fields.values())
        if missing and extra:
            detail = "may not be set when maxUnavailable is non-zero"
            problems.invalid(f"{path}.maxSurge", fields["maxSurge"], detail)
        elif not missing and not extra:
            problems.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _validate_daemon_set_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    check_selector_unchanged(new, old, problems)
    _validate_daemon_set(new, problems)


def _validate_replicated_update(check: ValidateCreate) -> ValidateUpdate:
    def update(new: Object, old: Object, problems: Problems) -> None:
        validate_metadata_update(new, old, problems)
        check(new, problems)
        check_selector_unchanged(new, old, problems)

    return update


def _validate_controller_revision(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    problems.not_negative("revision", value.get("revision", 0))


def _validate_revision_create(value: Object, problems: Problems) -> None:
    _validate_controller_revision(value, problems)
    if (data := value.get("data")) is None:
        problems.required("data", "data is mandatory")
    elif not isinstance(data, Mapping):
        problems.required("data", "data must be a valid JSON object")


def _validate_revision_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    _validate_controller_revision(new, problems)
    problems.unchanged("data", new.get("data"), old.get("data"))


CONTROLLER_REVISION_RULES = ValidationRules(_validate_revision_create, _validate_revision_update)
DAEMON_SET_RULES = ValidationRules(
    with_metadata(subdomain_name, True, _validate_daemon_set),
    _validate_daemon_set_update,
    status_counts_validator(DAEMON_SET),
)
DEPLOYMENT_RULES = ValidationRules(
    with_metadata(subdomain_name, True, _validate_deployment),
    _validate_replicated_update(_validate_deployment),
    status_counts_validator(DEPLOYMENT),
)
REPLICA_SET_RULES = ValidationRules(
    with_metadata(subdomain_name, True, _validate_replica_set),
    _validate_replicated_update(_validate_replica_set),
    status_counts_validator(REPLICA_SET),
)
REPLICATION_CONTROLLER_RULES = ValidationRules(
    with_metadata(subdomain_name, True, _validate_replication_controller),
    create_then_update(
        with_metadata(subdomain_name, True, _validate_replication_controller),
        metadata_update_then(_validate_replication_controller),
    ),
    status_counts_validator(REPLICA_SET),
)
STATEFUL_SET_RULES = ValidationRules(
    with_metadata(label_name, True, _validate_stateful_set),
    _validate_stateful_set_update,
    status_counts_validator(STATEFUL_SET, metadata_last=True),
)
