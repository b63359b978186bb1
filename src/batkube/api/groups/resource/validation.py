"""Validation of dynamic resource allocation: DeviceClasses, ResourceSlices, ResourceClaims and templates.

Kubernetes: pkg/apis/resource/validation.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.groups.core.node_selectors import check_node_selector
from batkube.api.groups.core.volumes.claim_validation import check_template_metadata
from batkube.api.groups.core.volumes.source_validation import check_csi_driver_name
from batkube.api.groups.resource import device_validation
from batkube.api.groups.resource.device_validation import check_items, check_unique_items
from batkube.api.validation.field_errors import Verbatim
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.metadata import check_built_in_metadata, check_conditions
from batkube.api.validation.names import byte_length, dns_label, dns_subdomain, subdomain_name
from batkube.api.validation.problems import IMMUTABLE, Problems
from batkube.api.validation.rules import Object, ValidationRules, create_then_update, validate_metadata_update

Names = Mapping[str, Sequence[str]]
"""The requests of a claim, each with its subrequests."""

_ONE_NODE_SELECTION = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_NOT_A_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
#: Device identifiers are unique handles in Go, whose JSON is an empty object.
_EMPTY_DEVICE_ID = Verbatim('{"Driver":{},"Pool":{},"Device":{},"ShareID":{}}')
_PER_DEVICE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)


def _check_claim(claim: Mapping[str, Any], path: str, problems: Problems) -> None:
    requests = claim.get("requests") or ()
    names = _request_names(claim)
    check_unique_items(requests, 32, _check_request, "name", f"{path}.requests", problems)

    def constraint(item: Mapping[str, Any], at: str, problems: Problems) -> None:
        _check_references(item.get("requests") or (), names, at, problems)
        for field in ("matchAttribute", "distinctAttribute"):
            if (attribute := item.get(field)) is not None:
                device_validation.check_fully_qualified(attribute, f"{at}.{field}", problems)
                return
        problems.required(f"{at}.matchAttribute")

    def config(item: Mapping[str, Any], at: str, problems: Problems) -> None:
        _check_references(item.get("requests") or (), names, at, problems)
        device_validation.check_configuration(item, at, problems)

    check_items(claim.get("constraints") or (), 32, constraint, f"{path}.constraints", problems)
    check_items(claim.get("config") or (), 32, config, f"{path}.config", problems)


def _request_names(claim: Mapping[str, Any]) -> Names:
    return {
        request.get("name", ""): [part.get("name", "") for part in request.get("firstAvailable") or ()]
        for request in claim.get("requests") or ()
    }


def _check_request(request: Mapping[str, Any], path: str, problems: Problems) -> None:
    name, alternatives, exactly = request.get("name", ""), request.get("firstAvailable"), request.get("exactly")
    problems.all_invalid(f"{path}.name", name, dns_label(name))
    if alternatives:
        check_unique_items(alternatives, 8, _check_alternative, "name", f"{path}.firstAvailable", problems)
    if exactly is not None:
        _check_exact(exactly, f"{path}.exactly", problems)
    if not alternatives and exactly is None:
        problems.required(path, "exactly one of `exactly` or `firstAvailable` is required")
    elif alternatives and exactly is not None:
        detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        problems.invalid(path, None, detail)


def _check_alternative(request: Mapping[str, Any], path: str, problems: Problems) -> None:
    problems.all_invalid(f"{path}.name", request.get("name", ""), dns_label(request.get("name", "")))
    _check_exact(request, path, problems)


def _check_exact(request: Mapping[str, Any], path: str, problems: Problems) -> None:
    if not (name := request.get("deviceClassName")):
        problems.required(f"{path}.deviceClassName")
    else:
        problems.all_invalid(f"{path}.deviceClassName", name, dns_subdomain(name))
    device_validation.check_selectors(request.get("selectors") or (), f"{path}.selectors", problems)
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "All":
        if count:
            problems.invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount":
        problems.positive(f"{path}.count", count)
    else:
        problems.not_supported(f"{path}.allocationMode", mode, ("All", "ExactCount"))
    for index, toleration in enumerate(request.get("tolerations") or ()):
        device_validation.check_toleration(toleration, f"{path}.tolerations[{index}]", problems)


def _check_references(references: Sequence[str], names: Names, path: str, problems: Problems) -> None:
    def check(name: str, at: str, problems: Problems) -> None:
        _check_reference(name, names, at, problems)

    check_unique_items(references, 32, check, "", f"{path}.requests", problems)


def _check_reference(name: str, names: Names, path: str, problems: Problems) -> None:
    parts = name.split("/")
    if len(parts) > 2:
        problems.invalid(path, name, _NOT_A_REQUEST)
        return
    for part in parts:
        problems.all_invalid(path, part, dns_label(part))
    if parts[0] not in names or (len(parts) == 2 and parts[1] not in names[parts[0]]):
        problems.invalid(path, name, _NOT_A_REQUEST)


def _validate_claim(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    _check_claim(value.get("spec", {}).get("devices", {}), "spec.devices", problems)


def _validate_claim_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    spec = new.get("spec", {})
    if spec != old.get("spec", {}):
        problems.invalid("spec", go_struct("resource.ResourceClaimSpec", spec), IMMUTABLE)
    _check_claim(spec.get("devices", {}), "spec.devices", problems)


def _validate_claim_status_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    status, before = new.get("status", {}), old.get("status", {})
    allocation, reserved = status.get("allocation"), status.get("reservedFor") or ()
    names = _request_names(new.get("spec", {}).get("devices", {}))
    check_unique_items(reserved, 256, _check_consumer, "uid", "status.reservedFor", problems)
    _check_device_statuses(status.get("devices") or (), allocation, problems)
    if reserved and allocation is None:
        problems.forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    added = [consumer for consumer in reserved if consumer not in (before.get("reservedFor") or ())]
    if added and allocation is not None and "deletionTimestamp" in new["metadata"]:
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        problems.forbidden("status.reservedFor", detail)
    if allocation is not None and before.get("allocation") is not None:
        if allocation != before["allocation"]:
            go_text = go_struct("resource.AllocationResult", allocation)
            problems.invalid("status.allocation", go_text, IMMUTABLE)
    elif allocation is not None:
        _check_allocation(allocation, names, "status.allocation", problems)


def _check_consumer(consumer: Mapping[str, Any], path: str, problems: Problems) -> None:
    for field in ("resource", "name", "uid"):
        if not consumer.get(field):
            problems.required(f"{path}.{field}")


def _check_named_device(device: Mapping[str, Any], path: str, problems: Problems) -> None:
    check_csi_driver_name(device.get("driver", ""), f"{path}.driver", problems)
    device_validation.check_pool_name(device.get("pool", ""), f"{path}.pool", problems)
    problems.all_invalid(f"{path}.device", device.get("device", ""), dns_label(device.get("device", "")))


def _check_device_statuses(
    statuses: Sequence[Mapping[str, Any]], allocation: Mapping[str, Any] | None, problems: Problems
) -> None:
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    allocated = {device_validation.device_id(result) for result in results}
    seen: set[str] = set()
    for index, device in enumerate(statuses):
        path, conditions = f"status.devices[{index}]", device.get("conditions") or ()
        _check_named_device(device, path, problems)
        if device_validation.device_id(device) not in allocated:
            problems.invalid(path, _EMPTY_DEVICE_ID, "must be an allocated device in the claim")
        if len(conditions) > 8:
            problems.too_many(f"{path}.conditions", len(conditions), 8)
        check_conditions(conditions, f"{path}.conditions", problems)
        if device.get("data") is not None:
            device_validation.check_opaque_parameters(device["data"], f"{path}.data", problems)
        _check_network(device.get("networkData") or {}, f"{path}.networkData", problems)
    for index, device in enumerate(statuses):
        if device_validation.device_id(device) in seen:
            problems.duplicate(f"status.devices[{index}].deviceID", _EMPTY_DEVICE_ID)
        seen.add(device_validation.device_id(device))


def _check_network(data: Mapping[str, Any], path: str, problems: Problems) -> None:
    for field, limit in (("interfaceName", 256), ("hardwareAddress", 128)):
        if byte_length(data.get(field, "")) > limit:
            problems.too_long(f"{path}.{field}", limit)
    check_unique_items(data.get("ips") or (), 16, _check_interface_address, "", f"{path}.ips", problems)


def _check_interface_address(text: str, path: str, problems: Problems) -> None:
    try:
        canonical = str(ipaddress.ip_interface(text)) if "/" in text else ""
    except ValueError:
        canonical = ""
    if not canonical:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        problems.invalid(path, text, detail)
    elif text != canonical:
        problems.invalid(path, text, f'must be in canonical form ("{canonical}")')


def _check_allocation(allocation: Mapping[str, Any], names: Names, path: str, problems: Problems) -> None:
    def result(item: Mapping[str, Any], at: str, problems: Problems) -> None:
        _check_reference(item.get("request", ""), names, f"{at}.request", problems)
        _check_named_device(item, at, problems)

    def config(item: Mapping[str, Any], at: str, problems: Problems) -> None:
        source = item.get("source", "")
        if not source:
            problems.required(f"{at}.source")
        elif source not in ("FromClaim", "FromClass"):
            problems.not_supported(f"{at}.source", source, ("FromClaim", "FromClass"))
        _check_references(item.get("requests") or (), names, at, problems)
        device_validation.check_configuration(item, at, problems)

    section = allocation.get("devices") or {}
    check_items(section.get("results") or (), 32, result, f"{path}.devices.results", problems)
    check_items(section.get("config") or (), 64, config, f"{path}.devices.config", problems)
    if (selector := allocation.get("nodeSelector")) is not None:
        check_node_selector(selector, f"{path}.nodeSelector", problems)


def _validate_template(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    _check_template_spec(value.get("spec", {}), problems)


def _check_template_spec(spec: Mapping[str, Any], problems: Problems) -> None:
    check_template_metadata(spec.get("metadata") or {}, "spec.metadata", problems)
    _check_claim(spec.get("spec", {}).get("devices", {}), "spec.spec.devices", problems)


def _validate_template_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    if new.get("spec", {}) != old.get("spec", {}):
        go_text = go_struct("resource.ResourceClaimTemplateSpec", new.get("spec", {}))
        problems.invalid("spec", go_text, IMMUTABLE)
    _check_template_spec(new.get("spec", {}), problems)


def _check_class_spec(value: Object, problems: Problems) -> None:
    spec = value.get("spec", {})
    device_validation.check_selectors(spec.get("selectors") or (), "spec.selectors", problems)
    check_items(spec.get("config") or (), 32, device_validation.check_configuration, "spec.config", problems)


def _validate_device_class(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, False, problems)
    _check_class_spec(value, problems)


def _validate_device_class_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    _check_class_spec(new, problems)


def _check_slice_spec(spec: Mapping[str, Any], old: Mapping[str, Any] | None, problems: Problems) -> None:
    pool = spec.get("pool", {})
    check_csi_driver_name(spec.get("driver", ""), "spec.driver", problems)
    device_validation.check_pool_name(pool.get("name", ""), "spec.pool.name", problems)
    problems.positive("spec.pool.resourceSliceCount", pool.get("resourceSliceCount", 0))
    if (generation := pool.get("generation", 0)) < 0:
        problems.invalid("spec.pool.generation", generation, "must be greater than or equal to zero")
    if old is not None:
        problems.unchanged("spec.pool.name", pool.get("name"), old.get("pool", {}).get("name"))
        problems.unchanged("spec.driver", spec.get("driver"), old.get("driver"))
        problems.unchanged("spec.nodeName", spec.get("nodeName"), old.get("nodeName"))
    _check_node_selection(spec, problems)
    check_unique_items(spec.get("devices") or (), 128, _check_device, "name", "spec.devices", problems)


def _check_node_selection(spec: Mapping[str, Any], problems: Problems) -> None:
    """Check that a slice sets exactly one of nodeName, nodeSelector and allNodes."""
    places: list[str] = []
    node, selector = spec.get("nodeName"), spec.get("nodeSelector")
    if node:
        places.append("`nodeName`")
        problems.all_invalid("spec.nodeName", node, subdomain_name(node, False))
    elif node is not None:
        problems.invalid("spec.nodeName", node, "must be either unset or set to a non-empty string")
    if selector is not None:
        places.append("`nodeSelector`")
        check_node_selector(selector, "spec.nodeSelector", problems)
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            go_text = go_struct("[]core.NodeSelectorTerm", terms)
            problems.invalid("spec.nodeSelector.nodeSelectorTerms", go_text, "must have exactly one node selector term")
    if spec.get("allNodes"):
        places.append("`allNodes`")
    elif spec.get("allNodes") is not None:
        problems.invalid("spec.allNodes", False, "must be either unset or set to true")
    if not places:
        problems.required("spec", _ONE_NODE_SELECTION)
    elif len(places) > 1:
        fields_text = "{" + ", ".join(places) + "}"
        problems.invalid("spec", fields_text, f"{_ONE_NODE_SELECTION}, but multiple fields are set")


def _check_device(device: Mapping[str, Any], path: str, problems: Problems) -> None:
    problems.all_invalid(f"{path}.name", device.get("name", ""), dns_label(device.get("name", "")))
    device_validation.check_attributes(device, path, problems)
    if any(device.get(field) is not None for field in ("nodeName", "nodeSelector", "allNodes")):
        problems.invalid(path, None, _PER_DEVICE)


def _validate_slice(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, False, problems)
    _check_slice_spec(value.get("spec", {}), None, problems)


def _validate_slice_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    _check_slice_spec(new.get("spec", {}), old.get("spec", {}), problems)


DEVICE_CLASS_RULES = ValidationRules(
    _validate_device_class, create_then_update(_validate_device_class, _validate_device_class_update)
)
RESOURCE_CLAIM_RULES = ValidationRules(
    _validate_claim, create_then_update(_validate_claim, _validate_claim_update), _validate_claim_status_update
)
RESOURCE_CLAIM_TEMPLATE_RULES = ValidationRules(
    _validate_template, create_then_update(_validate_template, _validate_template_update)
)
RESOURCE_SLICE_RULES = ValidationRules(_validate_slice, _validate_slice_update)
