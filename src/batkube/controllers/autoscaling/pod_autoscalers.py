"""HorizontalPodAutoscalers: scale their targets by the usage of pods, every fifteen seconds.

Usage is that of `kubectl top`. Pod, object and external metrics need API servers that the simulated cluster does not
have; the conditions of an autoscaler with such metrics say so, as on a real cluster without them.
Kubernetes: pkg/controller/podautoscaler/horizontal.go.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from batkube.cluster.client import ApiError, Client
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.object_meta import name_of, namespace_of, new_condition, with_condition
from batkube.cluster.pods.usage import PodUsage
from batkube.cluster.selectors import LabelSelector, SelectorError, parse_labels
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.autoscaling.metrics import MetricUnavailable, replicas_for_metric
from batkube.controllers.autoscaling.scale_limits import ReplicaBounds, ScaleHistory
from batkube.controllers.framework.controller import Controller
from batkube.controllers.framework.pod_control import POD
from batkube.kernel.instants import Duration, Instant, rfc3339, seconds

AUTOSCALER = "horizontalpodautoscalers.autoscaling"
#: --horizontal-pod-autoscaler-sync-period. A new autoscaler is first reconciled after one period.
_PERIOD: Duration = seconds(15)


class ScaleClient(Protocol):
    """Access to the scale subresource of objects of any kind. Both methods may raise ApiError."""

    def get_scale(self, reference: KubeObject, namespace: str) -> KubeObject:
        """Return the Scale of the referenced object."""

    def update_scale(self, reference: KubeObject, namespace: str, scale: KubeObject) -> None:
        """Set the replicas of the referenced object."""


class _Recommendation(NamedTuple):
    """The recommended number of replicas, the reason, and the current metrics."""

    replicas: int
    reason: str
    metrics: list[KubeObject]


class _ScalingFailed(Exception):
    """The replica count could not be determined or set: the event's reason and message, and the metrics read so far."""

    def __init__(self, reason: str, message: str, metrics: list[KubeObject]) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.metrics = metrics


class _Reconciliation:
    """One reconciliation of an autoscaler, and the conditions it sets."""

    def __init__(self, autoscaler: KubeObject, now: Instant) -> None:
        self.autoscaler = autoscaler
        self.spec: KubeObject = autoscaler["spec"]
        self.status: KubeObject = autoscaler.get("status", {})
        self.now = now
        self.conditions = list(self.status.get("conditions") or ())

    def set_condition(self, kind: str, holds: bool, reason: str, message: str) -> None:
        """Set a condition."""
        condition = new_condition(kind, "True" if holds else "False", reason, message, self.now)
        self.conditions = with_condition(self.conditions, condition, self.now)

    def build_status(
        self, size: int, desired: int, metrics: list[KubeObject], *, is_rescaled: bool = False
    ) -> KubeObject:
        """Return the status after the reconciliation."""
        last_scale_time = rfc3339(self.now) if is_rescaled else self.status.get("lastScaleTime")
        return {
            **({} if last_scale_time is None else {"lastScaleTime": last_scale_time}),
            **({"currentReplicas": size} if size else {}),
            "desiredReplicas": desired,
            "currentMetrics": metrics or None,
            "conditions": self.conditions,
        }


class HorizontalPodAutoscalerController(Controller):
    """Scales the targets of all autoscalers."""

    storage = AUTOSCALER

    def __init__(self, world: World, client: Client, events: EventRecorder, use: PodUsage, scales: ScaleClient) -> None:
        # An autoscaler is reconciled once a period, however often it changes.
        super().__init__(world, client, events, reaction=_PERIOD)
        self._use = use
        self._scales = scales
        self._histories: dict[Key, ScaleHistory] = {}
        #: The pod selector of each autoscaler whose target was found.
        self._selectors: dict[Key, LabelSelector] = {}

    def reconcile_deleted(self, key: Key, now: Instant) -> None:
        """Remove the history and the selector of a deleted autoscaler."""
        self._histories.pop(key, None)
        self._selectors.pop(key, None)

    def reconcile(self, key: Key, autoscaler: KubeObject, now: Instant) -> None:
        """Calculate the target's replicas from the usage of its pods, and scale it."""
        self.queue.add_after(key, now, _PERIOD)
        reconciliation = _Reconciliation(autoscaler, now)
        try:
            scale = self._scales.get_scale(reconciliation.spec["scaleTargetRef"], namespace_of(key))
        except ApiError as error:
            self.record_event(autoscaler, "Warning", "FailedGetScale", error.message, now)
            message = f"the HPA controller was unable to get the target's current scale: {error.message}"
            reconciliation.set_condition("AbleToScale", False, "FailedGetScale", message)
            self.write_status(autoscaler, {**reconciliation.status, "conditions": reconciliation.conditions}, now)
            return
        reconciliation.set_condition(
            "AbleToScale", True, "SucceededGetScale", "the HPA controller was able to get the target's current scale"
        )
        size: int = scale["spec"].get("replicas", 0)
        history = self._histories.setdefault(key, ScaleHistory(size, now))
        try:
            recommendation = self._recommend(key, reconciliation, scale, history)
            if recommendation.replicas != size:
                self._rescale(key, reconciliation, scale, recommendation)
                history.record_change(size, recommendation.replicas, now)
        except _ScalingFailed as failure:
            self.record_event(autoscaler, "Warning", failure.reason, failure.message, now)
            status = reconciliation.build_status(size, reconciliation.status.get("desiredReplicas", 0), failure.metrics)
        else:
            status = reconciliation.build_status(
                size, recommendation.replicas, recommendation.metrics, is_rescaled=recommendation.replicas != size
            )
        self.write_status(autoscaler, {name: value for name, value in status.items() if value is not None}, now)

    def _rescale(
        self, key: Key, reconciliation: _Reconciliation, scale: KubeObject, recommendation: _Recommendation
    ) -> None:
        new_scale = {**scale, "spec": {"replicas": recommendation.replicas}}
        try:
            self._scales.update_scale(reconciliation.spec["scaleTargetRef"], namespace_of(key), new_scale)
        except ApiError as error:
            message = f"the HPA controller was unable to update the target scale: {error.message}"
            reconciliation.set_condition("AbleToScale", False, "FailedUpdateScale", message)
            event_message = (
                f"New size: {recommendation.replicas}; reason: {recommendation.reason}; error: {error.message}"
            )
            raise _ScalingFailed("FailedRescale", event_message, recommendation.metrics) from error
        message = f"the HPA controller was able to update the target scale to {recommendation.replicas}"
        reconciliation.set_condition("AbleToScale", True, "SucceededRescale", message)
        event_message = f"New size: {recommendation.replicas}; reason: {recommendation.reason}"
        self.record_event(reconciliation.autoscaler, "Normal", "SuccessfulRescale", event_message, reconciliation.now)

    def _recommend(
        self, key: Key, reconciliation: _Reconciliation, scale: KubeObject, history: ScaleHistory
    ) -> _Recommendation:
        """Return the recommended size of the target (Kubernetes: reconcileAutoscaler). Raises _ScalingFailed."""
        size: int = scale["spec"].get("replicas", 0)
        bounds = ReplicaBounds(reconciliation.spec.get("minReplicas", 1), reconciliation.spec["maxReplicas"])
        if size == 0 and bounds.min_replicas != 0:
            message = "scaling is disabled since the replica count of the target is zero"
            reconciliation.set_condition("ScalingActive", False, "ScalingDisabled", message)
            return _Recommendation(size, "", [])
        if size > bounds.max_replicas:
            return _Recommendation(bounds.max_replicas, "Current number of replicas above Spec.MaxReplicas", [])
        if size < bounds.min_replicas:
            return _Recommendation(bounds.min_replicas, "Current number of replicas below Spec.MinReplicas", [])
        desired, metric, metrics = self._recommend_by_metrics(
            key, reconciliation, self._pods(key, reconciliation, scale), size
        )
        step = history.next_step(size, desired, bounds, reconciliation.spec.get("behavior"), reconciliation.now)
        reconciliation.set_condition("AbleToScale", True, *step.able_to_scale)
        reconciliation.set_condition("ScalingLimited", step.is_limited, *step.scaling_limited)
        reason = f"{metric} above target" if desired > size else "All metrics below target"
        return _Recommendation(step.replicas, reason, metrics)

    def _recommend_by_metrics(
        self, key: Key, reconciliation: _Reconciliation, pods: list[KubeObject], size: int
    ) -> tuple[int, str, list[KubeObject]]:
        """Return the largest size that a metric requires, the metric's name, and the current metrics.

        Kubernetes: computeReplicasForMetrics.
        """
        specs = reconciliation.spec.get("metrics") or ()
        desired, name, metrics = 0, "", list[KubeObject]()
        failures: list[MetricUnavailable] = []
        for spec in specs:
            try:
                result = replicas_for_metric(spec, namespace_of(key), pods, self._use, size, reconciliation.now)
            except MetricUnavailable as failure:
                self.record_event(
                    reconciliation.autoscaler, "Warning", failure.reason, failure.message, reconciliation.now
                )
                failures.append(failure)
                metrics.append({"type": ""})
                continue
            metrics.append(result.status)
            if desired == 0 or result.replicas > desired:
                desired, name = result.replicas, result.name
        # With some metrics missing, never scale down: the missing ones might require more pods.
        if failures and (len(failures) == len(specs) or desired < size):
            first = failures[0]
            message = f"the HPA was unable to compute the replica count: {first.message}"
            reconciliation.set_condition("ScalingActive", False, first.reason, message)
            event_message = f"invalid metrics ({len(failures)} invalid out of {len(specs)}), first error is: {first}"
            raise _ScalingFailed("FailedComputeMetricsReplicas", event_message, metrics)
        message = f"the HPA was able to successfully calculate a replica count from {name}"
        reconciliation.set_condition("ScalingActive", True, "ValidMetricFound", message)
        return desired, name, metrics

    def _pods(self, key: Key, reconciliation: _Reconciliation, scale: KubeObject) -> list[KubeObject]:
        """Return the pods of the target. Raises _ScalingFailed if another autoscaler selects them, too.

        Kubernetes: validateAndParseSelector.
        """
        text = scale["status"].get("selector", "")
        if not text:
            message = "the HPA target's scale is missing a selector"
            raise self._selector_error(
                reconciliation, "SelectorRequired", "selector is required", "InvalidSelector", message
            )
        try:
            selector = parse_labels(text)
        except SelectorError as error:
            message = f"couldn't convert selector into a corresponding internal selector object: {error}"
            raise self._selector_error(reconciliation, "InvalidSelector", message) from error
        self._selectors[key] = selector
        namespace = namespace_of(key)
        pods = [
            pod for _, pod in self.store.in_namespace(POD, namespace) if selector.matches(pod["metadata"].get("labels"))
        ]
        selecting = [
            autoscaler
            for autoscaler, other in sorted(self._selectors.items())
            if namespace_of(autoscaler) == namespace
            and any(other.matches(pod["metadata"].get("labels")) for pod in pods)
        ]
        if len(selecting) > 1:
            names = " ".join(f"{{{name_of(autoscaler)} {namespace_of(autoscaler)}}}" for autoscaler in selecting)
            message = f"pods by selector {text} are controlled by multiple HPAs: [{names}]"
            raise self._selector_error(reconciliation, "AmbiguousSelector", message)
        return pods

    def _selector_error(
        self, reconciliation: _Reconciliation, reason: str, event: str, condition: str = "", message: str = ""
    ) -> _ScalingFailed:
        """Report a target whose pods cannot be determined, and return the error that ends the reconciliation."""
        self.record_event(reconciliation.autoscaler, "Warning", reason, event, reconciliation.now)
        reconciliation.set_condition("ScalingActive", False, condition or reason, message or event)
        return _ScalingFailed("FailedComputeMetricsReplicas", event, [])
