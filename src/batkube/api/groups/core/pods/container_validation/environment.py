"""Validation of environment variables (Kubernetes: pkg/apis/core/validation, ValidateEnv and ValidateEnvFrom)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.groups.core.pods.container_validation.downward_api import (
    ENVIRONMENT_FIELDS,
    check_field_selector,
    check_resource_field_selector,
)
from batkube.api.validation.names import config_key, environment_variable, subdomain_name
from batkube.api.validation.problems import Problems

_NO_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
_TWO_SOURCES = "may not have more than one field specified at a time"


def check_environment(variables: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> None:
    """Check the environment variables of a container."""
    for index, variable in enumerate(variables):
        name = variable.get("name")
        if not name:
            problems.required(f"{path}[{index}].name")
        elif wrong := environment_variable(name):
            problems.all_invalid(f"{path}[{index}].name", name, wrong)
        if (source := variable.get("valueFrom")) is not None:
            _check_source(source, variable.get("value", ""), f"{path}[{index}].valueFrom", problems)


def _check_source(source: Mapping[str, Any], value: str, path: str, problems: Problems) -> None:
    count = 0
    if (field := source.get("fieldRef")) is not None:
        count += 1
        check_field_selector(field, ENVIRONMENT_FIELDS, f"{path}.fieldRef", problems)
    if (resource := source.get("resourceFieldRef")) is not None:
        count += 1
        check_resource_field_selector(resource, f"{path}.resourceFieldRef", problems)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if (key := source.get(kind)) is not None:
            count += 1
            _check_key(key, f"{path}.{kind}", problems)
    if count == 0:
        problems.invalid(path, "", _NO_SOURCE)
    elif value:
        problems.invalid(path, "", "may not be specified when `value` is not empty")
    elif count > 1:
        problems.invalid(path, "", _TWO_SOURCES)


def _check_key(selector: Mapping[str, Any], path: str, problems: Problems) -> None:
    name, key = selector.get("name", ""), selector.get("key", "")
    problems.all_invalid(f"{path}.name", name, subdomain_name(name, False))
    if not key:
        problems.required(f"{path}.key")
    else:
        problems.all_invalid(f"{path}.key", key, config_key(key))


def check_environment_sources(sources: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> None:
    """Check `envFrom`: ConfigMaps and Secrets whose keys become variables."""
    for index, source in enumerate(sources):
        if prefix := source.get("prefix"):
            problems.all_invalid(f"{path}[{index}].prefix", prefix, environment_variable(prefix))
        kinds = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in kinds:
            if not (name := source[kind].get("name")):
                problems.required(f"{path}[{index}].{kind}.name")
            else:
                problems.all_invalid(f"{path}[{index}].{kind}.name", name, subdomain_name(name, True))
        if not kinds:
            problems.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(kinds) > 1:
            problems.invalid(path, "", _TWO_SOURCES)
