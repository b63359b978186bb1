"""Random sequences of every kind of write, compared with a model in plain dictionaries after each step."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from conformance.direct import APPLY, JSON_PATCH, MERGE, STRATEGIC, Answer, Direct
from conformance.plain_model import Maps, Model

COLLECTION = "/api/v1/namespaces/default/configmaps"

names = st.sampled_from(["a", "b"])
keys = st.sampled_from(["x", "y", "z"])
values = st.sampled_from(["1", "2", "3"])
entries = st.dictionaries(keys, values, max_size=3)
# One entry always exists: Kubernetes does not track the managers of objects without entries.
maps = st.fixed_dictionaries({"data": entries, "labels": entries.map(lambda found: {**found, "kept": "yes"})})
changes = st.fixed_dictionaries(
    {place: st.dictionaries(keys, values | st.none(), max_size=3) for place in ("data", "labels")}
)
finalizers = st.lists(st.sampled_from(["example.com/a", "example.com/b"]), max_size=2, unique=True)


def config_map(name: str, content: dict[str, Any], **metadata: object) -> dict[str, Any]:
    """Return a ConfigMap body with these `data` and `labels`."""
    meta = {"name": name, "labels": content["labels"], **metadata}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    return {**body, "data": content["data"]} if content["data"] else body


class Writes(RuleBasedStateMachine):
    """Random writes; `model` predicts their responses and results."""

    @initialize()
    def start(self) -> None:
        self.direct = Direct()
        self.direct.ask(
            "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
        )
        self.model = Model()
        self.seen: dict[str, dict[str, Any]] = {}

    def write(
        self, method: str, name: str, body: object, content_type: str = "application/json", **query: str
    ) -> Answer:
        return self.direct.ask(
            method, f"{COLLECTION}/{name}", body, content_type=content_type, query={"fieldManager": "tests", **query}
        )

    @rule(name=names, content=maps, marks=finalizers)
    def create(self, name: str, content: Maps, marks: list[str]) -> None:
        body = config_map(name, content, finalizers=marks)
        answer = self.direct.ask("POST", COLLECTION, body, query={"fieldManager": "tests"})

        assert answer.status == self.model.create(name, content, marks)

    @rule(name=names, content=maps, marks=finalizers)
    def replace(self, name: str, content: Maps, marks: list[str]) -> None:
        answer = self.write("PUT", name, config_map(name, content, finalizers=marks))

        assert answer.status == self.model.update(name, content, marks)

    @rule(name=names, content=maps)
    def replace_a_stale_version(self, name: str, content: Maps) -> None:
        version = int(self.seen[name]["resourceVersion"]) - 1 if name in self.seen else 1
        if name not in self.model.objects:
            return
        answer = self.write("PUT", name, config_map(name, content, resourceVersion=str(version)))

        assert answer.status == 409

    @rule(name=names, content=changes)
    def merge(self, name: str, content: dict[str, Any]) -> None:
        answer = self.write("PATCH", name, {"metadata": {"labels": content["labels"]}, "data": content["data"]}, MERGE)

        assert answer.status == self.model.patch(name, content)

    @rule(name=names, content=changes)
    def merge_strategically(self, name: str, content: dict[str, Any]) -> None:
        body = {"metadata": {"labels": content["labels"]}, "data": content["data"]}
        answer = self.write("PATCH", name, body, STRATEGIC)

        assert answer.status == self.model.patch(name, content)

    @rule(name=names, content=entries)
    def replace_a_map_strategically(self, name: str, content: dict[str, str]) -> None:
        answer = self.write("PATCH", name, {"data": {"$patch": "replace", **content}}, STRATEGIC)

        held = self.model.objects.get(name)
        gone = {} if held is None else dict.fromkeys(held.maps["data"])
        # If there is no map yet, the directive is ignored with its entries, as on the real server.
        assert answer.status == self.model.patch(name, {"data": {**gone, **content} if gone else {}})

    @rule(name=names, key=keys, value=values)
    def put_by_json_patch(self, name: str, key: str, value: str) -> None:
        held = self.model.objects.get(name)
        operation: dict[str, Any] = {"op": "add", "path": f"/data/{key}", "value": value}
        if held is not None and not held.maps["data"]:
            operation = {"op": "add", "path": "/data", "value": {key: value}}
        answer = self.write("PATCH", name, [operation], JSON_PATCH)

        assert answer.status == self.model.patch(name, {"data": {key: value}})

    @rule(name=names, key=keys, value=values)
    def remove_by_json_patch_if_it_is_so(self, name: str, key: str, value: str) -> None:
        path = f"/data/{key}"
        body = [{"op": "test", "path": path, "value": value}, {"op": "remove", "path": path}]
        answer = self.write("PATCH", name, body, JSON_PATCH)

        held = self.model.objects.get(name)
        if held is not None and held.maps["data"].get(key) != value:
            assert answer.status == 422
        else:
            assert answer.status == self.model.patch(name, {"data": {key: None}})

    @rule(name=names, manager=st.sampled_from(["m", "n"]), content=maps, force=st.booleans())
    def apply(self, name: str, manager: str, content: Maps, force: bool) -> None:
        body = config_map(name, content)
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        answer = self.write("PATCH", name, body, APPLY, **query)

        assert answer.status == self.model.apply(name, manager, content, force=force)

    @rule(name=names, content=maps)
    def try_dry(self, name: str, content: Maps) -> None:
        answer = self.write("PATCH", name, {"data": content["data"]}, MERGE, dryRun="All")

        assert answer.status == (200 if name in self.model.objects else 404)

    @rule(name=names)
    def delete(self, name: str) -> None:
        answer = self.write("DELETE", name, None)

        assert answer.status == self.model.delete(name)

    @invariant()
    def the_server_holds_what_the_model_holds(self) -> None:
        if not hasattr(self, "direct"):
            return
        items = self.direct.ask("GET", COLLECTION).body["items"]
        assert [item["metadata"]["name"] for item in items] == sorted(self.model.objects)
        seen = {}
        for item in items:
            self.compare(item)
            seen[item["metadata"]["name"]] = item["metadata"] | {"content": content_of(item)}
        for name, metadata in seen.items():
            before = self.seen.get(name)
            if before is not None and before["uid"] == metadata["uid"]:
                is_same = before["content"] == metadata["content"]
                assert is_same == (before["resourceVersion"] == metadata["resourceVersion"])
                assert int(before["resourceVersion"]) <= int(metadata["resourceVersion"])
        self.seen = seen

    def compare(self, item: dict[str, Any]) -> None:
        metadata = item["metadata"]
        held = self.model.objects[metadata["name"]]
        assert item.get("data", {}) == held.maps["data"]
        assert metadata.get("labels", {}) == held.maps["labels"]
        assert metadata.get("finalizers", []) == held.finalizers
        assert ("deletionTimestamp" in metadata) == held.is_deleting
        owners: dict[tuple[str, str], set[tuple[str, str]]] = {}
        for entry in metadata.get("managedFields", []):
            fields = entry["fieldsV1"]
            for place, of in (("data", fields), ("labels", fields.get("f:metadata", {}))):
                for key in of.get(f"f:{place}", {}):
                    if key != ".":
                        owners.setdefault((place, key[2:]), set()).add((entry["manager"], entry["operation"]))
        assert owners == held.owners


def content_of(item: dict[str, Any]) -> list[Any]:
    """Return everything that a client can see except the version."""
    return [item.get("data"), {key: value for key, value in item["metadata"].items() if key != "resourceVersion"}]


TestWrites = Writes.TestCase
TestWrites.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
