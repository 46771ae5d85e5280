"""Who is let in: tokens, roles, the machine itself, browsers, and requests from other sites."""

import re

import pytest
from served import API, client_of, make_token
from sqlalchemy import select
from starlette.testclient import TestClient

from search.store import tokens
from search.store.repo import Store
from search.store.tables import Audit, Token

BODY = {"name": "new", "spec": {}}


def audits(url: str) -> list[tuple[str, str, str]]:
    with Store.open(url) as store, store.reading() as connection:
        rows = connection.execute(select(Audit.actor, Audit.action, Audit.outcome)).all()
        return [tuple(row) for row in rows]


def test__request__store_without_token__only_this_machine_is_let_in(filled: str) -> None:
    with client_of(filled) as client:
        assert client.get(f"{API}/studies").status_code == 200
    for address in ("192.0.2.7", "::ffff:192.0.2.7", "testclient"):
        with client_of(filled, address=address) as client:
            refused = client.get(f"{API}/studies")
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"].startswith("Bearer")


def test__request__local_through_a_proxy__is_not_taken_for_local(filled: str) -> None:
    with client_of(filled) as client:
        for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
            assert client.get(f"{API}/studies", headers={name: "127.0.0.1"}).status_code == 401


def test__request__store_with_tokens__needs_a_live_one(filled: str) -> None:
    token = make_token(filled, "read")
    with client_of(filled) as client:
        for wrong in ("", "Bearer", f"Bearer {token}x", f"Basic {token}", f"Bearer {token[:-1]}"):
            assert client.get(f"{API}/studies", headers={"Authorization": wrong}).status_code == 401
        right = {"Authorization": f"Bearer {token}"}
        assert client.get(f"{API}/studies", headers=right).status_code == 200
        with Store.open(filled) as store, store.writing() as connection:
            tokens.revoke(connection, "read")
        assert client.get(f"{API}/studies", headers=right).status_code == 401
        # The last token's end does not open the door again.
        assert client.get(f"{API}/studies").status_code == 401


def test__token__as_stored__is_its_hash_alone(filled: str) -> None:
    token = make_token(filled, "admin")
    with Store.open(filled) as store, store.reading() as connection:
        kept = connection.execute(select(Token.token_hash)).scalar_one()
    assert re.fullmatch("[0-9a-f]{64}", kept)
    assert token.removeprefix(tokens.PREFIX) not in kept


@pytest.mark.parametrize(
    ("role", "statuses"),
    [("read", (200, 403, 403)), ("submit", (200, 201, 403)), ("admin", (200, 201, 204))],
)
def test__role__read_submit_delete__may_what_it_says(
    filled: str, role: str, statuses: tuple[int, int, int]
) -> None:
    with client_of(filled, token=make_token(filled, role)) as client:
        answers = (
            client.get(f"{API}/studies/demo"),
            client.post(f"{API}/studies", json=BODY),
            client.delete(f"{API}/studies/demo"),
        )
    assert tuple(answer.status_code for answer in answers) == statuses


def test__wrong_tokens__many_from_one_address__are_refused_unseen(filled: str) -> None:
    token = make_token(filled, "admin")
    with client_of(filled, failed_logins=5) as client:
        wrong = {"Authorization": "Bearer mixsearch_guess"}
        seen = [client.get(f"{API}/studies", headers=wrong).status_code for _ in range(7)]
        assert seen == [401] * 5 + [429] * 2
        refused = client.post(f"{API}/session", json={"token": token})
        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= 60
    assert audits(filled).count(("address 127.0.0.1", "login", "wrong token")) == 5


def test__wrong_tokens__through_a_proxy__count_for_the_client_behind_it(filled: str) -> None:
    token = make_token(filled, "read")
    attempts = {"eve": ("1.2.3.4, 192.0.2.7", "guess"), "ada": ("192.0.2.7, 192.0.2.8", token)}

    def status(client: TestClient, who: str) -> int:
        forwarded, text = attempts[who]
        headers = {"X-Forwarded-For": forwarded, "Authorization": f"Bearer {text}"}
        return client.get(f"{API}/studies", headers=headers).status_code

    with client_of(filled, failed_logins=2, proxies=("10.0.0.1",), address="10.0.0.1") as client:
        assert [status(client, "eve") for _ in range(3)] == [401, 401, 429]
        assert status(client, "ada") == 200
    with client_of(filled, failed_logins=2, address="10.0.0.1") as client:  # not a proxy of ours
        assert [status(client, who) for who in ("eve", "eve", "ada")] == [401, 401, 429]


def test__changes__by_a_token__are_on_record(filled: str) -> None:
    with client_of(filled, token=make_token(filled, "admin", "ada")) as client:
        client.post(f"{API}/studies", json=BODY)
        client.post(f"{API}/studies/new/stop")
        client.delete(f"{API}/studies/new")
    assert audits(filled) == [
        ("ada", "submit study", "done"),
        ("ada", "set state stopped", "done"),
        ("ada", "delete study", "done"),
    ]


def test__login__of_a_browser__gives_a_cookie_that_scripts_cannot_read(filled: str) -> None:
    token = make_token(filled, "submit", "eve")
    with client_of(filled, secure_cookies=True) as client:
        answer = client.post(f"{API}/session", json={"token": token})
        cookie = answer.headers["set-cookie"].lower()
        for word in ("httponly", "samesite=lax", "secure", "path=/"):
            assert word in cookie
        assert answer.json()["name"] == "eve"
        assert client.post(f"{API}/session", json={"token": "wrong"}).status_code == 401


def test__cookie__change_without_the_pages_own_value__is_refused(filled: str) -> None:
    token = make_token(filled, "submit")
    with client_of(filled) as client:
        csrf = client.post(f"{API}/session", json={"token": token}).json()["csrf"]
        assert client.get(f"{API}/studies").status_code == 200
        assert client.post(f"{API}/studies", json=BODY).status_code == 403
        other = {"X-CSRF-Token": csrf[::-1]}
        assert client.post(f"{API}/studies", json=BODY, headers=other).status_code == 403
        right = {"X-CSRF-Token": csrf, "Origin": "http://localhost"}
        assert client.post(f"{API}/studies", json=BODY, headers=right).status_code == 201
        assert client.delete(f"{API}/session", headers=right).status_code == 204
        assert client.get(f"{API}/studies").status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "http://localhost:1234"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost"},
    ],
)
@pytest.mark.parametrize("with_cookie", [False, True])
def test__change__from_a_page_of_another_site__is_refused(
    filled: str, headers: dict[str, str], with_cookie: bool
) -> None:
    token = make_token(filled, "admin") if with_cookie else None
    with client_of(filled) as client:
        if token is not None:
            headers = headers | {
                "X-CSRF-Token": client.post(f"{API}/session", json={"token": token}).json()["csrf"]
            }
        assert client.delete(f"{API}/studies/demo", headers=headers).status_code == 403
        assert client.get(f"{API}/studies/demo").status_code == 200


def test__login__from_a_page_of_another_site__is_refused(filled: str) -> None:
    token = make_token(filled, "admin")
    with client_of(filled) as client:
        other = {"Origin": "https://evil.example"}
        answer = client.post(f"{API}/session", json={"token": token}, headers=other)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
