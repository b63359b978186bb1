"""HorizontalPodAutoscalers: as many replicas as what the pods use asks for, looked at every fifteen seconds.

What is measured is what `kubectl top` shows. Metrics of pods, objects and the world outside need servers of their own,
which nobody runs here: an autoscaler that asks for them says so in its conditions, as on a cluster without such.
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
#: --horizontal-pod-autoscaler-sync-period. The first look is one period after an autoscaler came.
_PERIOD: Duration = seconds(15)


class ScaleClient(Protocol):
    """The sizes of objects of any kind, through the sub-resource `scale`. Both methods may raise Refused."""

    def get_scale(self, reference: KubeObject, namespace: str) -> KubeObject:
        """Return the Scale of the object that a reference names."""

    def update_scale(self, reference: KubeObject, namespace: str, scale: KubeObject) -> None:
        """Give an object the replicas of a Scale."""


class _Recommendation(NamedTuple):
    """How many replicas there should be, why, and what was measured."""

    replicas: int
    reason: str
    metrics: list[KubeObject]


class _ScalingFailed(Exception):
    """A look that came to nothing: what is told of it, and what was measured up to there."""

    def __init__(self, reason: str, message: str, metrics: list[KubeObject]) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.metrics = metrics


class _Reconciliation:
    """One look at an autoscaler, and the conditions it leaves."""

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
        self, size: int, wanted: int, metrics: list[KubeObject], *, is_rescaled: bool = False
    ) -> KubeObject:
        """Return the status after the look."""
        last = rfc3339(self.now) if is_rescaled else self.status.get("lastScaleTime")
        return {
            **({} if last is None else {"lastScaleTime": last}),
            **({"currentReplicas": size} if size else {}),
            "desiredReplicas": wanted,
            "currentMetrics": metrics or None,
            "conditions": self.conditions,
        }


class HorizontalPodAutoscalerController(Controller):
    """Keeps the targets of all autoscalers at the right size."""

    storage = AUTOSCALER

    def __init__(self, world: World, client: Client, events: EventRecorder, use: PodUsage, scales: ScaleClient) -> None:
        # However much happens to an autoscaler, it is looked at once a period.
        super().__init__(world, client, events, reaction=_PERIOD)
        self._use = use
        self._scales = scales
        self._histories: dict[Key, ScaleHistory] = {}
        #: Of every autoscaler that has found its target: whose pods it goes by.
        self._selectors: dict[Key, LabelSelector] = {}

    def reconcile_deleted(self, key: Key, now: Instant) -> None:
        """Forget an autoscaler."""
        self._histories.pop(key, None)
        self._selectors.pop(key, None)

    def reconcile(self, key: Key, autoscaler: KubeObject, now: Instant) -> None:
        """Look at what the target's pods use, and give it the size that follows."""
        self.queue.add_after(key, now, _PERIOD)
        look = _Reconciliation(autoscaler, now)
        try:
            scale = self._scales.get_scale(look.spec["scaleTargetRef"], namespace_of(key))
        except ApiError as refusal:
            self.record_event(autoscaler, "Warning", "FailedGetScale", refusal.message, now)
            message = f"the HPA controller was unable to get the target's current scale: {refusal.message}"
            look.set_condition("AbleToScale", False, "FailedGetScale", message)
            self.write_status(autoscaler, {**look.status, "conditions": look.conditions}, now)
            return
        look.set_condition(
            "AbleToScale", True, "SucceededGetScale", "the HPA controller was able to get the target's current scale"
        )
        size: int = scale["spec"].get("replicas", 0)
        history = self._histories.setdefault(key, ScaleHistory(size, now))
        try:
            wish = self._recommend(key, look, scale, history)
            if wish.replicas != size:
                self._rescale(key, look, scale, wish)
                history.record_change(size, wish.replicas, now)
        except _ScalingFailed as end:
            self.record_event(autoscaler, "Warning", end.reason, end.message, now)
            status = look.build_status(size, look.status.get("desiredReplicas", 0), end.metrics)
        else:
            status = look.build_status(size, wish.replicas, wish.metrics, is_rescaled=wish.replicas != size)
        self.write_status(autoscaler, {name: value for name, value in status.items() if value is not None}, now)

    def _rescale(self, key: Key, look: _Reconciliation, scale: KubeObject, wish: _Recommendation) -> None:
        wanted = {**scale, "spec": {"replicas": wish.replicas}}
        try:
            self._scales.update_scale(look.spec["scaleTargetRef"], namespace_of(key), wanted)
        except ApiError as refusal:
            message = f"the HPA controller was unable to update the target scale: {refusal.message}"
            look.set_condition("AbleToScale", False, "FailedUpdateScale", message)
            told = f"New size: {wish.replicas}; reason: {wish.reason}; error: {refusal.message}"
            raise _ScalingFailed("FailedRescale", told, wish.metrics) from refusal
        message = f"the HPA controller was able to update the target scale to {wish.replicas}"
        look.set_condition("AbleToScale", True, "SucceededRescale", message)
        told = f"New size: {wish.replicas}; reason: {wish.reason}"
        self.record_event(look.autoscaler, "Normal", "SuccessfulRescale", told, look.now)

    def _recommend(self, key: Key, look: _Reconciliation, scale: KubeObject, history: ScaleHistory) -> _Recommendation:
        """Return the size that the target should have now; raises _Gave."""
        size: int = scale["spec"].get("replicas", 0)
        bounds = ReplicaBounds(look.spec.get("minReplicas", 1), look.spec["maxReplicas"])
        if size == 0 and bounds.min_replicas != 0:
            message = "scaling is disabled since the replica count of the target is zero"
            look.set_condition("ScalingActive", False, "ScalingDisabled", message)
            return _Recommendation(size, "", [])
        if size > bounds.max_replicas:
            return _Recommendation(bounds.max_replicas, "Current number of replicas above Spec.MaxReplicas", [])
        if size < bounds.min_replicas:
            return _Recommendation(bounds.min_replicas, "Current number of replicas below Spec.MinReplicas", [])
        wanted, metric, metrics = self._recommend_by_metrics(key, look, self._pods(key, look, scale), size)
        step = history.next_step(size, wanted, bounds, look.spec.get("behavior"), look.now)
        look.set_condition("AbleToScale", True, *step.able_to_scale)
        look.set_condition("ScalingLimited", step.is_limited, *step.scaling_limited)
        reason = f"{metric} above target" if wanted > size else "All metrics below target"
        return _Recommendation(step.replicas, reason, metrics)

    def _recommend_by_metrics(
        self, key: Key, look: _Reconciliation, pods: list[KubeObject], size: int
    ) -> tuple[int, str, list[KubeObject]]:
        """Return the largest size that one of the metrics asks for, the metric's name, and what was measured."""
        specs = look.spec.get("metrics") or ()
        wanted, name, metrics = 0, "", list[KubeObject]()
        failures: list[MetricUnavailable] = []
        for spec in specs:
            try:
                measured = replicas_for_metric(spec, namespace_of(key), pods, self._use, size, look.now)
            except MetricUnavailable as failure:
                self.record_event(look.autoscaler, "Warning", failure.reason, failure.message, look.now)
                failures.append(failure)
                metrics.append({"type": ""})
                continue
            metrics.append(measured.status)
            if wanted == 0 or measured.replicas > wanted:
                wanted, name = measured.replicas, measured.name
        # Fewer pods for want of a measure would be worse than too many.
        if failures and (len(failures) == len(specs) or wanted < size):
            first = failures[0]
            message = f"the HPA was unable to compute the replica count: {first.message}"
            look.set_condition("ScalingActive", False, first.reason, message)
            told = f"invalid metrics ({len(failures)} invalid out of {len(specs)}), first error is: {first}"
            raise _ScalingFailed("FailedComputeMetricsReplicas", told, metrics)
        message = f"the HPA was able to successfully calculate a replica count from {name}"
        look.set_condition("ScalingActive", True, "ValidMetricFound", message)
        return wanted, name, metrics

    def _pods(self, key: Key, look: _Reconciliation, scale: KubeObject) -> list[KubeObject]:
        """Return the pods of the target, which are no other autoscaler's; raises _Gave."""
        text = scale["status"].get("selector", "")
        if not text:
            message = "the HPA target's scale is missing a selector"
            raise self._selector_error(look, "SelectorRequired", "selector is required", "InvalidSelector", message)
        try:
            selector = parse_labels(text)
        except SelectorError as error:
            message = f"couldn't convert selector into a corresponding internal selector object: {error}"
            raise self._selector_error(look, "InvalidSelector", message) from error
        self._selectors[key] = selector
        namespace = namespace_of(key)
        pods = [
            pod for _, pod in self.store.in_namespace(POD, namespace) if selector.matches(pod["metadata"].get("labels"))
        ]
        rivals = [
            rival
            for rival, other in sorted(self._selectors.items())
            if namespace_of(rival) == namespace and any(other.matches(pod["metadata"].get("labels")) for pod in pods)
        ]
        if len(rivals) > 1:
            names = " ".join(f"{{{name_of(rival)} {namespace_of(rival)}}}" for rival in rivals)
            message = f"pods by selector {text} are controlled by multiple HPAs: [{names}]"
            raise self._selector_error(look, "AmbiguousSelector", message)
        return pods

    def _selector_error(
        self, look: _Reconciliation, reason: str, event: str, condition: str = "", message: str = ""
    ) -> _ScalingFailed:
        """Tell why the pods of a target cannot be found, and return what ends the look."""
        self.record_event(look.autoscaler, "Warning", reason, event, look.now)
        look.set_condition("ScalingActive", False, condition or reason, message or event)
        return _ScalingFailed("FailedComputeMetricsReplicas", event, [])
