"""Rules and schemas of custom kinds that would keep the server busy, or contain numbers out of range."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator

import pytest

from batkube.api.cel.evaluation.costs import CALL_LIMIT, OBJECT_BUDGET, CostExceeded
from batkube.api.cel.programs import CelProgram
from batkube.api.custom.schemas.cel_types import DYN
from batkube.api.requests.messages import Request, Response
from conformance.direct import ADMIN, MERGE, Answer, Direct
from conformance.placeholders import Json

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/x.io/v1/things"
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
TEN = "[0,1,2,3,4,5,6,7,8,9]"


@pytest.fixture(autouse=True)
def _no_crash(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Check that the server logs nothing: it logs only its own failures."""
    with caplog.at_level(logging.ERROR):
        yield
    assert not caplog.records, caplog.records[-1].exc_text


def define(direct: Direct, spec: Json, columns: Json = None) -> Answer:
    version = {"name": "v1", "served": True, "storage": True, "additionalPrinterColumns": columns or []}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    names = {"plural": "things", "kind": "Thing"}
    return direct.ask(
        "POST",
        DEFINITIONS,
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.x.io"},
            "spec": {"group": "x.io", "scope": "Cluster", "names": names, "versions": [version]},
        },
    )


def create(direct: Direct, spec: Json) -> Answer:
    thing = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}
    return direct.ask("POST", THINGS, thing)


def judged(rule: str, spec: Json = None) -> Answer:
    """Return the answer to the creation of an object of a kind with this rule."""
    direct = Direct()
    properties = {"s": {"type": "string"}}
    defined = define(direct, {**FREE, "properties": properties, "x-kubernetes-validations": [{"rule": rule}]})
    assert defined.status == 201, defined.body["message"]
    return create(direct, {"a": 1} if spec is None else spec)


# Cost


def nested(levels: int) -> str:
    return "".join(f"{TEN}.all(x{level}, " for level in range(levels)) + "true" + ")" * levels


def test_a_rule_with_an_excessive_estimate_is_rejected_and_never_evaluated() -> None:
    rule = nested(12)
    assert len(rule) < 500

    refused = define(Direct(), {**FREE, "x-kubernetes-validations": [{"rule": rule}]})

    assert refused.status == 422
    assert "estimated rule cost exceeds budget by factor of more than 100x" in refused.body["message"]
    with pytest.raises(CostExceeded):
        CelProgram(rule, {})({})


def test_an_evaluation_is_aborted_at_the_cost_limit() -> None:
    rule = nested(6)
    program = CelProgram(rule, {})

    with pytest.raises(CostExceeded):
        program({})
    assert program.last_cost <= CALL_LIMIT + 100

    message = judged(rule).body["message"]
    assert "operation cancelled: actual cost limit exceeded" in message
    assert "no further validation rules will be run due to call cost exceeds limit for rule" in message


def test_evaluations_of_one_object_share_a_cost_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    assert OBJECT_BUDGET == 10 * CALL_LIMIT
    monkeypatch.setattr("batkube.api.custom.instances.cel_rules.OBJECT_BUDGET", 20_000)
    rule = f"{TEN}.all(x, {TEN}.all(y, true))"
    direct = Direct()
    item = {"type": "string", "x-kubernetes-validations": [{"rule": rule}]}
    define(direct, {"type": "object", "properties": {"l": {"type": "array", "items": item, "maxItems": 500}}})

    answer = create(direct, {"l": ["a"] * 500})

    told = "validation failed due to running out of cost budget, no further validation rules will be run"
    assert [cause["message"] for cause in answer.body["details"]["causes"]] == [f'Invalid value: "string": {told}']


@pytest.mark.parametrize(
    "rule",
    [
        "size([[1, 2]]" + ".map(a, a + a)" * 40 + ") > 0",
        "size(['aaaaaaaaaa']" + ".map(a, a + a)" * 60 + ") > 0",
        " == ".join(["[1]" + ".map(a, [a, a])" * 40] * 2),
        "'%s'.format([[1]" + ".map(a, [a, a])" * 40 + "]) == ''",
    ],
    ids=["lists", "texts", "shared-parts-compared", "shared-parts-shown"],
)
def test_the_cost_of_doubling_values_is_charged_in_advance(rule: str) -> None:
    start = time.process_time()
    answer = judged(rule)

    assert time.process_time() - start < 5
    assert answer.status in (201, 422)
    if answer.status == 422:
        assert "cost" in answer.body["message"] or "failed rule" in answer.body["message"]


# Numbers out of range


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (f"int(self.s) > 0 && '{'9' * 5000}' == self.s", "type conversion error from 'string' to 'int'"),
        (
            "duration(self.s + 'h') > duration('1s')",
            "type conversion error from 'string' to 'google.protobuf.Duration'",
        ),
        ("timestamp(9223372036854775807) > timestamp(0)", "timestamp overflow"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('100h') > timestamp(0)", "timestamp overflow"),
        ("timestamp('0001-01-01T00:00:00Z').getFullYear('-12:00') > 0", "timestamp overflow"),
        ("duration('2562047h') + duration('2562047h') > duration('1s')", "integer overflow"),
        ("'%.999999999f'.format([1.0]) == ''", "precision"),
        ("quantity('1e999').asInteger() == 1", "cannot convert value to integer"),
        ("[1, 2][dyn(1.0 / 0.0)] == 1", "index out of bounds"),
        ("int(1e300) == 1", "integer overflow"),
    ],
)
def test_numbers_out_of_range_only_fail_the_rule(rule: str, problem: str) -> None:
    answer = judged(rule, {"s": "9" * 5000})

    assert answer.status == 422
    assert problem in answer.body["message"]


# Schemas


@pytest.mark.parametrize(("value", "status"), [(1e300, 422), (0.0, 201)])
def test_multiple_of_a_tiny_number_is_validated_as_in_go(value: float, status: int) -> None:
    direct = Direct()
    define(direct, {"type": "object", "properties": {"a": {"type": "number", "multipleOf": 1e-300}}})

    assert create(direct, {"a": value}).status == status


def test_long_enumerations_sets_and_map_lists_are_validated_quickly() -> None:
    direct = Direct()
    word = {"type": "string", "enum": [f"e{number}" for number in range(4_000)]}
    item = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}
    rules = [{"rule": "self == oldSelf"}, {"rule": "(self + oldSelf).size() > 0"}]
    properties = {
        "words": {"type": "array", "items": word},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item},
    }
    properties["set"]["x-kubernetes-validations"] = rules
    assert define(direct, {"type": "object", "properties": properties}).status == 201
    spec = {
        "words": ["e3999"] * 4_000,
        "set": [f"s{number}" for number in range(4_000)],
        "map": [{"k": f"k{number}", "v": "x"} for number in range(4_000)],
    }

    start = time.process_time()
    assert create(direct, spec).status == 201
    answer = direct.ask(
        "PATCH", f"{THINGS}/a", {"spec": {"set": spec["set"][::-1], "map": spec["map"][::-1]}}, content_type=MERGE
    )

    assert time.process_time() - start < 10
    assert answer.status == 200


# Columns


@pytest.mark.parametrize("path", [".spec" + "..a" * 30, ".spec" + "['a','a']" * 40])
def test_a_column_with_an_excessive_json_path_is_empty(path: str) -> None:
    direct = Direct()
    columns = [{"name": "c", "type": "string", "jsonPath": path}]
    assert define(direct, FREE, columns).status == 201
    spec: Json = {}
    for _ in range(150):
        spec = {"a": spec}
    create(direct, spec)

    start = time.process_time()
    table = direct.api.handle(Request("GET", THINGS, {}, {**ADMIN, "accept": TABLE}, b""))

    assert time.process_time() - start < 5
    assert isinstance(table, Response)
    assert json.loads(table.body)["rows"][0]["cells"] == ["a", None]


def test_the_matches_of_a_pattern_are_charged() -> None:
    """They once took 28 s for a cost of a million, of which a policy may have ten."""
    program = CelProgram("size(self.findAll('x')) > 0", {"self": DYN})

    with pytest.raises(CostExceeded):
        program({"self": "x" * 900_000})
    assert program({"self": "x" * 100_000}) is True
    assert program.last_cost >= 400_000
