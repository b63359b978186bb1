"""The `token` subresource of service accounts (`kubectl create token`).

Kubernetes: pkg/registry/core/serviceaccount/storage/token.go.
"""

from __future__ import annotations

from batkube.api.access.authenticator import AUDIENCE
from batkube.api.access.service_account_tokens import SERVICE_ACCOUNTS, ServiceAccountTokens
from batkube.api.requests.statuses import Failure, bad_request
from batkube.api.validation import field_errors
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant, rfc3339
from batkube.text.go_format import go_quote

_GROUP = "authentication.k8s.io"
_LIFETIME_S_DEFAULT = 3600
_LIFETIME_S_MIN = 600
_LIFETIME_S_MAX = 2**32
#: Kinds that a token can be bound to: the kind in the store, and whether it is namespaced.
_BINDABLE = {"Pod": ("pods", True), "Secret": ("secrets", True), "Node": ("nodes", False)}


class TokenRequestHandler:
    """Handles TokenRequests."""

    def __init__(self, store: Store, tokens: ServiceAccountTokens) -> None:
        self._store = store
        self._tokens = tokens

    def issue(self, request: KubeObject, namespace: str, name: str, now: Instant) -> KubeObject:
        """Return the TokenRequest `request` with a token for the service account in its status; edits it in place."""
        metadata, spec = request.setdefault("metadata", {}), request.setdefault("spec", {})
        if metadata.get("namespace") not in (None, "", namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if metadata.get("name") not in (None, "", name):
            problem = "must match the service account name if specified"
            raise _invalid_error(name, field_errors.invalid("metadata.name", metadata["name"], problem))
        account = self._get(SERVICE_ACCOUNTS, namespace, name)
        uid = account["metadata"]["uid"]
        if metadata.get("uid") not in (None, "", uid):
            requested = metadata["uid"]
            problem = (
                f"the UID in the token request ({requested}) does not match the UID of the service account ({uid})"
            )
            raise _conflict_error(f"TokenRequest.{_GROUP}", name, problem, {"group": _GROUP, "kind": "TokenRequest"})
        metadata.update(name=name, namespace=namespace, uid=uid, creationTimestamp=rfc3339(now))
        spec["audiences"] = spec.get("audiences") or [AUDIENCE]
        if spec.get("expirationSeconds") is None:
            spec["expirationSeconds"] = _LIFETIME_S_DEFAULT
        lifetime_s = spec["expirationSeconds"]
        _validate_lifetime(lifetime_s)
        bound = self._bound_objects(spec.setdefault("boundObjectRef", None), namespace, name)
        request["status"] = {
            "token": self._tokens.issue(account, bound, spec["audiences"], lifetime_s, now),
            "expirationTimestamp": rfc3339(Instant(now + lifetime_s * NANOSECONDS_PER_SECOND)),
        }
        return request

    def _bound_objects(self, reference: KubeObject | None, namespace: str, account: str) -> dict[str, KubeObject]:
        """Return the objects that the token is bound to, by claim."""
        if reference is None:
            return {}
        kind, name = reference.get("kind", ""), reference.get("name", "")
        group, _, version = reference.get("apiVersion", "").rpartition("/")
        if group or kind not in _BINDABLE:
            raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
        storage, namespaced = _BINDABLE[kind]
        value = self._get(storage, namespace if namespaced else "", name)
        if kind == "Pod" and value["spec"].get("serviceAccountName", "") != account:
            account_name = go_quote(account)
            problem = "to pod running with different serviceaccount name."
            raise bad_request(f"cannot bind token for serviceaccount {account_name} {problem}")
        if reference.get("uid") not in (None, "", value["metadata"].get("uid")):
            problem = (
                f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise _conflict_error(kind, name, problem, {"kind": kind})
        bound = {kind.lower(): value}
        node = value["spec"].get("nodeName") if kind == "Pod" else None
        if node:
            bound["node"] = self._store.get("nodes", Key(node)) or {"metadata": {"name": node}}
        return bound

    def _get(self, storage: str, namespace: str, name: str) -> KubeObject:
        value = self._store.get(storage, Key(f"{namespace}/{name}" if namespace else name))
        if value is None:
            message = f"{storage} {go_quote(name)} not found"
            raise Failure(404, "NotFound", message, {"name": name, "kind": storage})
        return value


def _validate_lifetime(lifetime_s: int) -> None:
    field = "spec.expirationSeconds"
    if lifetime_s < _LIFETIME_S_MIN:
        problem = "may not specify a duration less than 10 minutes"
        raise _invalid_error("", field_errors.invalid(field, lifetime_s, problem))
    if lifetime_s > _LIFETIME_S_MAX:
        problem = "may not specify a duration larger than 2^32 seconds"
        raise _invalid_error("", field_errors.invalid(field, lifetime_s, problem))


def _invalid_error(name: str, problem: field_errors.FieldError) -> Failure:
    details: KubeObject = {"name": name} if name else {}
    cause = {"reason": problem.reason, "message": problem.message, "field": problem.field}
    details |= {"group": _GROUP, "kind": "TokenRequest", "causes": [cause]}
    message = f"TokenRequest.{_GROUP} {go_quote(name)} is invalid: {problem.field}: {problem.message}"
    return Failure(422, "Invalid", message, details)


def _conflict_error(resource: str, name: str, problem: str, details: KubeObject) -> Failure:
    message = f"Operation cannot be fulfilled on {resource} {go_quote(name)}: {problem}"
    return Failure(409, "Conflict", message, {"name": name, **details})
