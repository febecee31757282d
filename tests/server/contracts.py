"""Hold an app to its OpenAPI document, also with requests that are generated from it."""

import contextlib
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import jsonschema
import schemathesis
import schemathesis.checks
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from tests.properties import scaled

CASES = 10
"""For an operation and mode; hypothesis is derandomized, so more of them would cost more and find no more each time."""
_OF_ANY: Any = schemathesis.checks  # their types aren't complete
_OF_OPENAPI: Any = checks
_CHECKS = [
    _OF_ANY.not_a_server_error,
    _OF_OPENAPI.status_code_conformance,
    _OF_OPENAPI.content_type_conformance,
    _OF_OPENAPI.response_headers_conformance,
    _OF_OPENAPI.response_schema_conformance,
]
_UNHEALTHY = [HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.too_slow]


@dataclass(frozen=True)
class Contract:
    """A document, and what of it is tried."""

    schema: Any
    headers: Mapping[str, str]
    paths: Collection[str] = ()
    """None for all."""
    known: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values that parameters of paths have to have; not where something is deleted, so that it stays."""


def of_app(app: Any, token: str, paths: Collection[str] = (), known: Mapping[str, str] | None = None) -> Contract:  # noqa: ANN401 - any ASGI app
    headers = {"authorization": f"Bearer {token}", "host": "127.0.0.1"}
    schema: Any = schemathesis.openapi.from_asgi("/openapi.json", app, headers=headers)
    return Contract(schema, headers, paths, known or {})


def of_server(address: str, token: str, paths: Collection[str], known: Mapping[str, str]) -> Contract:
    headers = {"authorization": f"Bearer {token}"}
    return Contract(schemathesis.openapi.from_url(f"{address}/openapi.json", headers=headers), headers, paths, known)


def references(value: object) -> Generator[str]:
    """List what a document refers to."""
    if isinstance(value, dict):
        rows = cast("dict[str, object]", value)
        if isinstance(name := rows.get("$ref"), str):
            yield name
        for one in rows.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from references(one)


def check_reply(document: Mapping[str, Any], path: str, reply: object, method: str = "get") -> None:
    """Hold a good reply's JSON to what the document says of it."""
    content = document["paths"][path][method]["responses"]["200"]["content"]
    schema = {**content["application/json"]["schema"], "components": document["components"]}
    jsonschema.validate(reply, schema)


def broken_words(contract: Contract, mode: GenerationMode, *, cases: int = CASES) -> list[str]:
    """Ask operations with generated arguments; gives what broke the document's word."""
    found: list[str] = []
    usual = settings(
        max_examples=scaled(cases), database=None, phases=[Phase.generate], suppress_health_check=_UNHEALTHY
    )
    for result in contract.schema.get_all_operations():
        operation = result.ok()
        if contract.paths and operation.path not in contract.paths:
            continue
        ask = _asking(contract, operation.as_strategy(generation_mode=mode), found)
        with contextlib.suppress(Unsatisfiable):  # what takes nothing can't be given anything wrong
            usual(ask)()
    return found


def _asking(contract: Contract, cases: st.SearchStrategy[Any], found: list[str]) -> Callable[[], None]:
    @given(case=cases)
    def ask(case: Any) -> None:  # noqa: ANN401 - its class is generic in what it doesn't say
        if case.method != "DELETE":
            known = {name: contract.known[name] for name in case.path_parameters if name in contract.known}
            case.path_parameters.update(known)
        response = case.call(headers=contract.headers)
        try:
            case.validate_response(response, checks=_CHECKS)
        except FailureGroup as group:
            found.extend(f"{case.method} {case.path} {case.body}: {one}" for one in group.exceptions)

    return ask
