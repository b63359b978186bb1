"""A long fuzzer: `python tests/hostile/fuzz.py --seed 1 --inputs 200000`, or `make fuzz SEED=1 INPUTS=200000`.

It generates inputs of every kind, valid ones with mutations and random ones, and passes them to the code that reads
them: requests, bodies and patches to `Api.handle`, a few over a socket, and files to the readers of the command line. A
finding is an input that takes more than a second of processor time, an unintended exception, an internal error that the
server logs, or memory that grows and is not released. The same seed generates the same inputs. Findings are printed
with the data to repeat them, and the exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import json
import logging
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import yaml

from batkube.api.requests.messages import Request, Response
from batkube.api.requests.webhooks.calls import CallWebhook, PendingWebhookCalls
from batkube.kernel.errors import InputError, RunFailed
from conformance.__main__ import CASES
from conformance.direct import ADMIN, APPLY, JSON_PATCH, MERGE, STRATEGIC, Direct, Reader
from conformance.mutating import body_of, worse_bytes, worse_request, worse_value
from conformance.placeholders import Json
from conformance.replaying import case_files
from hostile.fuzz_admission import (
    MAPS,
    MUTATING_POLICIES,
    REGISTRATION,
    VARIABLES,
    HostileWebhook,
    binding_of,
    config_map,
    converted_definition,
    mutating_policy,
    validating_policy,
    webhook_configuration,
)
from hostile.fuzz_clusters import HostileCluster, emulate, record
from hostile.fuzz_files import GoodFile, good_files

CPU_S_MAX = 1.0
GROWTH_BYTES_MAX = 100 * 1024 * 1024
#: After this many inputs the server is restarted, so that the objects it stores do not count as growth.
INPUTS_PER_SERVER = 500
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
Send = Callable[[str, str, dict[str, str], bytes, str], Response | None]


class Finding(NamedTuple):
    """An input and the problem that it caused."""

    kind: str
    number: int
    problem: str
    details: str


class Server:
    """The API in this process, and its log, which contains only internal errors."""

    def __init__(self, call_webhook: CallWebhook) -> None:
        self.direct = Direct(history_limit=500, more_versions=[MUTATING_POLICIES], call_webhook=call_webhook)

    def send(
        self, method: str, path: str, query: dict[str, str], body: bytes, content_type: str, **headers: str
    ) -> Response | None:
        """Return the answer; a watch is opened and closed."""
        sent = {**ADMIN, "content-type": content_type, **headers}
        request = Request(method, path, {key: [text] for key, text in query.items()}, sent, body)
        while True:
            try:
                answer = self.direct.api.handle(request)
                break
            except PendingWebhookCalls as pending:
                for call in pending.calls:
                    call()
        if isinstance(answer, Response):
            return answer
        answer.start(Reader())
        answer.stop()
        return None


def recorded_requests() -> list[dict[str, Any]]:
    """Return every request of the recorded cases that does not refer to other steps."""

    def flat(steps: list[Any]) -> Iterator[dict[str, Any]]:
        for step in steps:
            if "request" in step:
                yield step["request"]
            elif "while" in step:
                yield from flat(step["while"])

    found = [
        request for path in case_files(CASES) for request in flat(json.loads(path.read_text(encoding="utf-8"))["steps"])
    ]
    return [request for request in found if "${" not in json.dumps(request)]


#: The variables of a rule of a custom kind.
_VARIABLES = ("self", "self.n", "self.s", "self.l", "self.m", "oldSelf")

# Kinds of inputs


class Fuzzer:
    """Generates inputs of each kind, and passes them to the code under test."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.webhook = HostileWebhook(self.chance, self._operation)
        self.files = list(good_files(folder))
        self.renew_server()
        self.requests = recorded_requests()
        self.posts = [each for each in self.requests if each["method"] == "POST" and isinstance(each.get("body"), dict)]
        #: The latest input, for a finding.
        self.last = ""

    def renew_server(self) -> None:
        """Start a new, empty server."""
        self.server = Server(self.webhook.answer)

    def _send(
        self, method: str, path: str, body: bytes, content_type: str, query: dict[str, str] | None = None
    ) -> Response | None:
        self.last = f"{method} {path} {query or {}} {content_type} {body[:2000]!r}"
        return self.server.send(method, path, query or {}, body, content_type)

    def request(self) -> None:
        """A recorded request with mutations."""
        request = worse_request(self.chance.choice(self.requests), self.chance)
        body = body_of(request)
        if body and self.chance.random() < 0.2:
            body = worse_bytes(body, self.chance)
        query = {str(key): str(value) for key, value in (request.get("query") or {}).items()}
        headers = {str(key).lower(): str(value) for key, value in (request.get("headers") or {}).items()}
        content_type = headers.pop("content-type", "application/json")
        self.last = f"{request['method']} {request['path']} {query} {headers} {content_type} {body[:2000]!r}"
        self.server.send(request["method"], request["path"], query, body, content_type, **headers)

    def yaml_body(self) -> None:
        """A body in YAML, with anchors, aliases and merge keys at random places."""
        request = self.chance.choice(self.posts)
        text = yaml.safe_dump(worse_value(request["body"], self.chance))
        lines = text.split("\n")
        for _ in range(self.chance.randrange(6)):
            place = self.chance.randrange(len(lines))
            name = self.chance.choice("abc")
            scrap = self.chance.choice(
                (
                    f"&{name} ",
                    f"*{name}",
                    f"<<: *{name}",
                    f"<<: [*{name}, *{name}]",
                    "[[",
                    "{",
                    "!!int ",
                    "- ",
                    "? ",
                    "\t",
                )
            )
            lines[place] += scrap
        body = "\n".join(lines).encode("utf-8", "surrogatepass")
        self._send(
            "POST", request["path"], worse_bytes(body, self.chance) if self.chance.random() < 0.2 else body, YAML
        )

    def patch(self) -> None:
        """A patch of any type to an existing object."""
        request = self.chance.choice(self.posts)
        created = self._send("POST", request["path"], body_of(request), "application/json")
        name = json.loads(created.body)["metadata"].get("name", "x") if created and created.status == 201 else "x"
        kind = self.chance.choice((MERGE, STRATEGIC, JSON_PATCH, APPLY))
        value: Any = worse_value(request["body"], self.chance)
        if kind == JSON_PATCH:
            value = [self._operation(request["body"]) for _ in range(self.chance.randrange(1, 6))]
        elif kind == STRATEGIC and isinstance(value, dict) and self.chance.random() < 0.5:
            value = self._with_directives(value)
        query = {"fieldManager": "fuzz", "force": "true"} if kind == APPLY else {}
        self._send(
            "PATCH", f"{request['path']}/{name}", json.dumps(value).encode("utf-8", "surrogatepass"), kind, query
        )
        self._send("DELETE", f"{request['path']}/{name}", b"", "application/json", {"gracePeriodSeconds": "0"})

    def _pointer(self, value: Json) -> str:
        parts = []
        while isinstance(value, dict | list) and value and self.chance.random() < 0.8:
            key = self.chance.choice(list(value)) if isinstance(value, dict) else self.chance.randrange(len(value))
            value = value[key]
            parts.append(self.chance.choice((str(key), str(key), str(key), "-", "-1", "9" * 5000, "~0", "")))
        return "".join(f"/{part}" for part in parts)

    def _operation(self, value: Json) -> Json:
        operation = {
            "op": self.chance.choice(("add", "remove", "replace", "move", "copy", "test", "bogus")),
            "path": self._pointer(value),
            "from": self._pointer(value),
            "value": worse_value(value, self.chance),
        }
        return worse_value(operation, self.chance) if self.chance.random() < 0.2 else operation

    def _with_directives(self, value: dict[str, Any]) -> dict[str, Any]:
        key = self.chance.choice(list(value) or ["x"])
        below = value.get(key)
        if isinstance(below, dict) and self.chance.random() < 0.7:
            return {**value, key: self._with_directives(below)}
        word = self.chance.choice(
            ("$patch", "$retainKeys", f"$setElementOrder/{key}", f"$deleteFromPrimitiveList/{key}")
        )
        return {**value, word: self.chance.choice(("delete", "replace", "merge", [], [key], [{"name": "a"}], None, {}))}

    def protobuf(self) -> None:
        """The protobuf of a valid object, with bytes removed, changed or added."""
        request = self.chance.choice(self.posts)
        answer = self.server.send(
            "POST", request["path"], {"dryRun": "All"}, body_of(request), "application/json", accept=PROTOBUF
        )
        body = answer.body if answer is not None else b"k8s\0"
        for _ in range(self.chance.randrange(1, 4)):
            body = worse_bytes(body, self.chance)
        self._send("POST", request["path"], self.chance.choice((b"", b"k8s\0")) + body, PROTOBUF)

    def rule(self) -> None:
        """A custom kind with a random CEL rule, and an object that is validated by it."""
        plural = f"t{self.chance.randrange(10**9)}s"
        rule = self._expression(self.chance.randrange(1, 6))
        schema = {
            "type": "object",
            "properties": {
                "n": {"type": "integer"},
                "s": {"type": "string", "format": self.chance.choice(("", "duration", "date-time", "byte"))},
                "l": {"type": "array", "items": {"type": "string"}},
                "m": {"type": "object", "additionalProperties": {"type": "number", "multipleOf": 1e-300}},
            },
            "x-kubernetes-validations": [{"rule": rule, "messageExpression": self._expression(2)}],
        }
        version = {"name": "v1", "served": True, "storage": True}
        version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}}
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.fuzz.io"},
            "spec": {"group": "fuzz.io", "scope": "Cluster", "names": {"plural": plural, "kind": plural.capitalize()}},
        }
        definition["spec"]["versions"] = [version]  # type: ignore[index]
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        if self.chance.random() < 0.1:
            definition = worse_value(definition, self.chance)
        self._send("POST", path, json.dumps(definition).encode("utf-8", "surrogatepass"), "application/json")
        spec = {
            "n": self.chance.choice((0, -(2**63), 2**63 - 1)),
            "s": self._text(),
            "l": [self._text()] * 3,
            "m": {"a": 1e300},
        }
        thing = {"apiVersion": "fuzz.io/v1", "kind": plural.capitalize(), "metadata": {"name": "a"}, "spec": spec}
        self._send("POST", f"/apis/fuzz.io/v1/{plural}", json.dumps(thing).encode(), "application/json")
        details = self.last
        self._send("DELETE", f"{path}/{plural}.fuzz.io", b"", "application/json")
        self.last = f"{rule}\n{details}"

    def webhook_answers(self) -> None:
        """Webhooks with invalid answers to writes of a ConfigMap."""
        kind = self.chance.choice(("Mutating", "Validating"))
        path = f"{REGISTRATION}/{kind.lower()}webhookconfigurations"
        value: Json = webhook_configuration(kind, self.chance)
        if self.chance.random() < 0.2:
            value = worse_value(value, self.chance)
        self._post(path, value)
        self._write_config_map()
        details = f"{value}\n{self.last}\n{self.webhook.last[:2000]!r}"
        self._send("DELETE", f"{path}/fuzz", b"", "application/json")
        self.last = details

    def conversion(self) -> None:
        """A custom kind of two versions, whose conversion webhook gives invalid answers."""
        plural = f"t{self.chance.randrange(10**9)}s"
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        self._post(definitions, converted_definition(plural))
        thing = {"apiVersion": "fuzz.io/v2", "kind": plural.capitalize(), "metadata": {"name": "a"}, "spec": {"a": 1}}
        self._post(f"/apis/fuzz.io/v2/{plural}", thing)
        for version in ("v1", "v2"):
            self._send("GET", f"/apis/fuzz.io/{version}/{plural}", b"", "application/json")
        details = f"{self.last}\n{self.webhook.last[:2000]!r}"
        self._send("DELETE", f"{definitions}/{plural}.fuzz.io", b"", "application/json")
        self.last = details

    def policy(self) -> None:
        """An admission policy of random expressions, and a ConfigMap that it validates or changes."""
        make = self.chance.choice((validating_policy, validating_policy, mutating_policy))
        policy: Json = make(lambda depth: self._expression(depth, VARIABLES), self.chance)
        base = f"/apis/{policy['apiVersion']}"
        plural = "validatingadmissionpolicies" if make is validating_policy else "mutatingadmissionpolicies"
        bindings = plural.replace("policies", "policybindings")
        sent = worse_value(policy, self.chance) if self.chance.random() < 0.1 else policy
        self._post(f"{base}/{plural}", sent)
        self._post(f"{base}/{bindings}", binding_of(policy))
        self._write_config_map()
        for path in (bindings, plural):
            self._send("DELETE", f"{base}/{path}/fuzz", b"", "application/json")
        self.last = json.dumps(sent)

    def cluster(self) -> None:
        """A recording, or the beginning of an emulation, of a cluster with invalid objects."""
        cluster = HostileCluster(self.chance)
        try:
            with contextlib.suppress(InputError, RunFailed):
                if self.chance.random() < 0.5:
                    record(cluster, self.folder, self.chance)
                else:
                    emulate(cluster, self.chance)
        finally:
            self.last = cluster.last[:2000].decode(errors="replace")

    def _post(self, path: str, value: Json) -> None:
        self._send("POST", path, json.dumps(value).encode("utf-8", "surrogatepass"), "application/json")

    def _write_config_map(self) -> None:
        """Create, replace and delete a ConfigMap."""
        body = json.dumps(config_map(self.chance)).encode()
        for method, path in (("POST", MAPS), ("PUT", f"{MAPS}/m"), ("DELETE", f"{MAPS}/m")):
            self._send(method, path, b"" if method == "DELETE" else body, "application/json")

    def _text(self) -> str:
        return self.chance.choice(
            ("", "a", "9" * 5000, "1h", "9" * 30 + "h", "0001-01-01T00:00:00Z", "é" * 50, "-1", "1e999")
        )

    def _expression(self, depth: int, variables: Sequence[str] = _VARIABLES) -> str:
        """Return an expression over these variables, nested to this depth."""
        pick = self.chance.choice
        if depth <= 0:
            numbers = ("x", "1", "-9223372036854775808", "2u", "1e308")
            texts = ("'a'", f"'{self._text()}'", "b'\\xff'")
            return pick((*variables, *numbers, *texts, "true", "null", "[]", "{}", "[1, 'a']", "9" * 5000))
        part = functools.partial(self._expression, variables=variables)
        one, two = part(depth - 1), part(depth - self.chance.randrange(1, 3))
        method = pick(_METHODS)
        arguments = ", ".join(part(depth - 2) for _ in range(self.chance.randrange(3)))
        return pick(
            (
                f"({one} {pick(_OPERATORS)} {two})",
                f"{pick(_FUNCTIONS)}({one})",
                f"{one}.{method}({arguments})",
                f"{one}.{pick(_MACROS)}(x, {two})",
                f"({one} ? {two} : {part(depth - 2)})",
                f"[{one}, {two}]",
                f"{{{one}: {two}}}",
                f"{one}[{two}]",
                f"has({one}.a)",
                f"'%{pick(('s', 'd', 'f', '.5f', '.99999f', 'x', 'e', 'b'))}'.format([{one}])",
                f"!{one}",
                f"-{one}",
            )
        )

    def selector(self) -> None:
        """A random query: selectors, numbers, tokens."""
        request = self.chance.choice(self.posts)
        scraps = (
            "a",
            "b",
            "=",
            "==",
            "!=",
            "!",
            "in",
            "notin",
            "(",
            ")",
            ",",
            " ",
            "gt",
            ">",
            "<",
            "\\",
            "metadata.name",
            "\0",
            "é",
        )
        query = {
            name: "".join(self.chance.choices(scraps, k=self.chance.randrange(1, 12)))
            for name in self.chance.sample(("labelSelector", "fieldSelector", "continue", "resourceVersionMatch"), 2)
        }
        number = self.chance.choice(("limit", "timeoutSeconds", "resourceVersion", "gracePeriodSeconds", "tailLines"))
        query[number] = self.chance.choice(("9" * 5000, "-1", "", "1e9", "0x10", "٣", "1" * 19, "+5", "0" * 300 + "1"))
        if self.chance.random() < 0.2:
            query["watch"] = "1"
        self._send(self.chance.choice(("GET", "GET", "DELETE")), request["path"], b"", "", query)

    def file(self) -> None:
        """An input file of the command line with mutations."""
        file = self.chance.choice(self.files)
        data = self._worse_value_file(file) if self.chance.random() < 0.3 else file.content
        for _ in range(self.chance.randrange(1, 4) if data == file.content else 0):
            data = self._worse_file(data)
        path = self.folder / ("run" if file.name == "manifest.json" else ".") / file.name
        path.write_bytes(data)
        self.last = f"{file.name}: {data[:2000]!r}"
        with contextlib.suppress(InputError):
            file.read(path)

    def _worse_value_file(self, file: GoodFile) -> bytes:
        """Return a file of YAML or JSON with some of its values changed."""
        if not file.name.endswith((".yaml", ".json")) or b"---" in file.content:
            return file.content
        value = yaml.safe_load(file.content)
        for _ in range(self.chance.randrange(1, 3)):
            value = worse_value(value, self.chance)
        if file.name.endswith(".json"):
            return json.dumps(value).encode("utf-8", "surrogatepass")
        return str(yaml.safe_dump(value)).encode("utf-8", "surrogatepass")

    def _worse_file(self, data: bytes) -> bytes:
        if self.chance.random() < 0.5:
            return worse_bytes(data, self.chance)
        scraps = (
            b"9" * 5000,
            b"-1",
            b"1e999",
            b"nan",
            b"inf",
            b"[" * 3000,
            b"{a: " * 300,
            b"&a [*a]",
            b"<<: *a",
            b"!!int x",
            b"!!timestamp x",
        )
        odd = (
            b"\0",
            b"\xff",
            b"\t",
            b"1:2:3",
            b"2020-13-45",
            b"",
            b'"',
            b"<a" * 200,
            b"&lol;",
            b"true",
            b"null",
            b"1_0",
            b"0x10",
            b"\xef\xbb\xbf",
        )
        words = data.split(b" ")
        words[self.chance.randrange(len(words))] = self.chance.choice((*scraps, *odd))
        return b" ".join(words)


_OPERATORS = ("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in")
_FUNCTIONS = (
    *("size", "int", "uint", "double", "string", "bytes", "bool", "duration", "timestamp", "type", "dyn"),
    *("quantity", "isQuantity", "ip", "isIP", "cidr", "url", "isURL", "optional.of", "sets.contains", "strings.quote"),
)
_METHODS = (
    *("size", "startsWith", "contains", "matches", "find", "findAll", "split", "join", "substring", "replace", "trim"),
    *("charAt", "indexOf", "lastIndexOf", "lowerAscii", "sum", "min", "max", "isSorted", "getFullYear", "getHours"),
    *(
        "asInteger",
        "asApproximateFloat",
        "add",
        "sub",
        "compareTo",
        "value",
        "orValue",
        "hasValue",
        "getQuery",
        "getHost",
    ),
)
_MACROS = ("all", "exists", "exists_one", "filter", "map", "optMap", "optFlatMap")


#: The relative frequency of each kind.
KINDS = {
    "request": 26,
    "yaml_body": 8,
    "patch": 8,
    "protobuf": 6,
    "rule": 4,
    "selector": 12,
    "webhook_answers": 6,
    "conversion": 2,
    "policy": 4,
    "cluster": 6,
    "file": 24,
}


# Running


class Failures(logging.Handler):
    """Keeps the server's log messages."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(self.format(record))


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def fuzz(seed: int, inputs: int, progress: Callable[[str], None] = lambda text: None) -> list[Finding]:
    """Return the findings of this many inputs."""
    failures = Failures()
    logging.getLogger().addHandler(failures)
    findings: list[Finding] = []
    counts: Counter[str] = Counter()
    before = 0
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(seed, Path(folder))
        for number in range(inputs):
            if number % INPUTS_PER_SERVER == INPUTS_PER_SERVER - 1:
                fuzzer.renew_server()
                gc.collect()
                before = before or resident_bytes()
                progress(f"{number + 1} inputs, {len(findings)} findings, {(resident_bytes() - before) >> 20} MiB more")
            kind = fuzzer.chance.choices(list(KINDS), list(KINDS.values()))[0]
            counts[kind] += 1
            start = time.process_time()
            problem = ""
            try:
                getattr(fuzzer, kind)()
            except Exception:  # any exception is a finding
                problem = traceback.format_exc()
            duration = time.process_time() - start
            if failures.messages:
                problem = failures.messages.pop()
            elif duration > CPU_S_MAX:
                problem = f"took {duration:.1f} s"
            if problem:
                findings.append(Finding(kind, number, problem, fuzzer.last))
                progress(f"FOUND {kind} {number}: {problem}\n{fuzzer.last}")
                failures.messages.clear()
    grown = resident_bytes() - before if before else 0
    if grown > GROWTH_BYTES_MAX:
        findings.append(Finding("memory", inputs, f"grew by {grown >> 20} MiB", ""))
    progress(f"{inputs} inputs: {dict(counts)}; {len(findings)} findings; memory grew by {grown >> 20} MiB")
    logging.getLogger().removeHandler(failures)
    return findings


def main() -> int:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=200_000)
    given = parser.parse_args()
    return 1 if fuzz(given.seed, given.inputs, lambda text: print(text, flush=True)) else 0


if __name__ == "__main__":
    sys.exit(main())
