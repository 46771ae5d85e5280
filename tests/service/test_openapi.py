"""The contract: whatever a client sends, the service answers as its OpenAPI document says."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
import store_factory
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance
from served import API, make_token
from store_fixtures import copied_store

from search.store.repo import Store
from service.app import create_app
from service.settings import ServiceSettings

EXAMPLES = 6
STORIES, STEPS = 5, 6
QUIET = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
# Streams never end, a plan trains, a card measures: they have tests of their own.
APART = (f"{API}/events/stream", f"{API}/studies/plan", f"{API}/mixers/{{kind}}/card")


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    url = copied_store("sqlite", tmp_path_factory.mktemp("served"))
    with Store.open(url) as store:
        store_factory.fill(store, "demo", seeds=2)
        store_factory.fill(store, "other", training_key="k1")
    token = make_token(url, "admin")
    app = create_app(ServiceSettings(store=url, hosts=("*",), failed_logins=10**6))
    loaded = schemathesis.openapi.from_asgi(f"{API}/openapi.json", app)
    loaded.config.update(headers={"Authorization": f"Bearer {token}"})
    yield loaded.exclude(path=list(APART))
    app.state.store.close()


def operations(schema: Any) -> list[Any]:
    return [found.ok() for found in schema.get_all_operations()]


def test__every_route__whatever_is_sent__answers_as_documented(schema: Any) -> None:
    found = operations(schema)
    assert len(found) > 30
    for operation in found:
        for mode in GenerationMode:
            check(operation, mode)


def test__document__every_route_with_a_body__has_an_example_and_each_names_its_problems(
    schema: Any,
) -> None:
    models = schema.raw_schema["components"]["schemas"]

    def has_example(part: Any) -> bool:
        if isinstance(part, list):
            return any(map(has_example, part))
        if not isinstance(part, dict):
            return False
        if "$ref" in part:
            return has_example(models[part["$ref"].rpartition("/")[2]])
        return bool(part.get("examples")) or any(map(has_example, part.values()))

    for path, operations_there in schema.raw_schema["paths"].items():
        for method, operation in operations_there.items():
            assert {"400", "405", "422"} <= set(operation["responses"]), (method, path)
            body = operation.get("requestBody")
            assert body is None or has_example(body["content"]), (method, path)


def beyond_schema(label: str) -> list[Any]:
    """What a spec, a budget or SQL must be is more than a schema says: 422 is right for those."""
    # So is it where a worker writes 2.0 for a whole number, or one that no database holds.
    is_of_worker = label.startswith(f"POST {API}/workers")
    if is_of_worker or label.endswith(("/studies", "/validate", "/query", "/budget")):
        return [positive_data_acceptance]
    return []


def check(operation: Any, mode: Any) -> None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(QUIET, max_examples=EXAMPLES)
    def send(case: Any) -> None:
        case.call_and_validate(excluded_checks=beyond_schema(operation.label))

    with suppress(Unsatisfiable):  # a route without input has no wrong input
        send()


def test__routes_in_any_order__what_one_gives_another_takes__answer_as_documented(
    schema: Any,
) -> None:
    kept = schema.exclude(method="DELETE")  # a deleted study would end every story early

    class Story(kept.as_state_machine()):  # type: ignore[misc]
        def validate_response(self, response: Any, case: Any, **options: Any) -> None:
            excluded = beyond_schema(case.operation.label)
            case.validate_response(response, excluded_checks=excluded, transport_kwargs=options)

    run_state_machine_as_test(
        Story, settings=settings(QUIET, max_examples=STORIES, stateful_step_count=STEPS)
    )
