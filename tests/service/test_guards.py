"""What no request may do, whoever sends it: too much, too deep, packed, for another host."""

import gzip
import json
import zlib

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from served import API, client_of
from starlette.testclient import TestClient

from service.guards import SECURITY_HEADERS, SecurityHeaders, depth

VALIDATE = f"{API}/studies/validate"
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def client(filled: str):
    with client_of(filled, body_bytes=5000, body_depth=10) as client:
        yield client


def status(client: TestClient, body: bytes, **headers: str) -> int:
    answer = client.post(VALIDATE, content=body, headers=JSON | headers)
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code
    return answer.status_code


def test__body__larger_than_allowed__is_413_whatever_it_says_of_its_length(client: TestClient):
    body = b'{"spec": {"x": "' + b"a" * 6000 + b'"}}'
    assert status(client, body) == 413
    assert status(client, b"{}", **{"Content-Length": "9" * 30}) == 413
    parts = (body[at : at + 100] for at in range(0, len(body), 100))  # chunked: no length
    assert client.post(VALIDATE, content=parts, headers=JSON).status_code == 413


def test__body__nested_deeper_than_allowed__is_400(client: TestClient):
    assert status(client, b'{"spec":' + b"[" * 2000 + b"]" * 2000 + b"}") == 400
    assert status(client, b'{"spec":' * 11 + b"1" + b"}" * 11) == 400
    assert status(client, b'{"spec": {"x": "' + b"[" * 100 + b'"}}') == 422


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    )
)
def test__depth__any_document__is_its_nesting(document):
    def nesting(value):
        if isinstance(value, dict):
            return 1 + max(map(nesting, value.values()), default=0)
        return 1 + max(map(nesting, value), default=0) if isinstance(value, list) else 0

    assert depth(json.dumps(document).encode()) == nesting(document)


@pytest.mark.parametrize(
    ("coding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("br", bytes)]
)
def test__body__compressed__is_415_and_never_unpacked(client: TestClient, coding, pack):
    bomb = pack(b"[" * 10**6) if coding != "br" else b"x"
    assert len(bomb) < 5000
    assert status(client, bomb, **{"Content-Encoding": coding}) == 415


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json"]
)
def test__body__of_a_type_that_a_plain_form_can_send__is_415(client: TestClient, kind):
    assert status(client, b"{}", **{"Content-Type": kind}) == 415


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b'{"spec": {"encoder": {"dropout": NaN}}}', 422),
        (b'{"spec": {"encoder": {"dropout": 1e999}}}', 422),
        (b'{"spec": {"task": {"kind": "mlm", "data": {"text_column": "\\u0000"}}}}', 400),
        (b'{"spec": {"task": {"kind": "mlm", "data": {"text_column": "\\ud800"}}}}', 400),
        (b'{"spec": {"seed": ' + b"9" * 4500 + b"}}", 400),
    ],
)
def test__body__that_no_database_keeps__is_a_problem_document(client: TestClient, body, expected):
    assert status(client, body) == expected


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "localhost@x"],
)
def test__host_header__of_another_name__is_400(client: TestClient, host):
    assert client.get(f"{API}/studies", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8765", "127.0.0.1:1", "[::1]:8765"])
def test__host_header__of_this_machine__is_let_in(client: TestClient, host):
    assert client.get(f"{API}/health", headers={"Host": host}).status_code == 200


def test__headers__of_every_answer__keep_the_browser_strict(client: TestClient):
    answers = [
        client.get(f"{API}/studies"),
        client.get(f"{API}/nothing"),
        client.get(f"{API}/studies", headers={"Host": "evil.example"}),
        client.post(VALIDATE, content=b"x"),
        client.get(f"{API}/studies/demo/report?format=html"),
    ]
    for answer in answers:
        for name, value in SECURITY_HEADERS.items():
            assert answer.headers[name] == value
    policy = answers[0].headers["content-security-policy"]
    assert "script-src" not in policy
    assert "unsafe-eval" not in policy
    for part in (
        "default-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "frame-ancestors 'none'",
    ):
        assert part in policy


def test__headers__of_a_bug_inside__stay_and_tell_nothing(caplog):
    app = FastAPI()

    @app.get("/bug")
    def bug() -> None:
        raise RuntimeError("secret")

    app.add_middleware(SecurityHeaders)
    answer = TestClient(app).get("/bug")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.headers["x-frame-options"] == "DENY"
    assert "secret" in caplog.text


def test__header_injection__through_names__reaches_no_header(filled: str):
    with client_of(filled) as client:
        for path in ("demo%0d%0aX-Evil:%201", "%0d%0aSet-Cookie:%20a=b", "demo%00"):
            answer = client.get(f"{API}/studies/{path}/report")
            assert answer.status_code == 422
            assert not {"x-evil", "set-cookie"} & set(answer.headers)
        evil = {"name": 'a"; x=y', "spec": {}}
        assert client.post(f"{API}/studies", json=evil).status_code == 422
