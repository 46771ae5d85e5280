import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from search.errors import InputError, StoreError
from search.store.address import masked, parse_address
from search.store.repo import Store


def test__parse_address__plain_path__is_sqlite_and_shown_as_typed(tmp_path):
    address = parse_address(str(tmp_path / "a b.db"))
    assert address.is_sqlite
    assert address.label == str(tmp_path / "a b.db")
    assert address.url.database == str(tmp_path / "a b.db")


def test__parse_address__relative_url__keeps_meaning_after_chdir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    address = parse_address("sqlite:///search.db")
    assert address.label == "search.db"
    assert address.url.database == str(tmp_path / "search.db")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test__parse_address__any_postgres_scheme__uses_psycopg(scheme):
    address = parse_address(f"{scheme}://ann:s3cret@db/x")
    assert address.url.drivername == "postgresql+psycopg"
    assert address.label == "postgresql://ann:***@db/x"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mysql://ann:s3cret@host/x",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///a.db?mode=ro",
        "postgresql//ann:s3cret@host/x",
        "postgresql://ann:s3@cret@host/x",
        "://ann:s3cret@host",
        "postgresql://ann:s3cret@host:port/x",
    ],
)
def test__parse_address__wrong_url__one_line_without_the_password(text):
    with pytest.raises(InputError) as caught:
        parse_address(text)
    message = str(caught.value)
    assert "s3cret" not in message
    assert "cret" not in message
    assert "\n" not in message
    assert "sqlite:///search.db" in message or "%40" in message


WORD = st.text("abcdefghijklmnopqrstuvwxyzABC0123456789!$&*;,._~-", min_size=6, max_size=12)


@given(password=WORD, place=st.sampled_from(["user", "query"]))
def test__scrub__any_password__never_shown(password, place):
    assume(password not in "postgresql://ann:***@db.example/search?password=***")
    text = {
        "user": f"postgresql://ann:{password}@db.example/search",
        "query": f"postgresql://ann@db.example/search?password={password.replace('&', 'x')}",
    }[place]
    shown = password if place == "user" else password.replace("&", "x")
    assume("%" not in shown)
    address = parse_address(text)
    assert shown not in address.label
    assert shown not in masked(text)
    assert shown not in address.scrub(f"connection to {text} failed\nDETAIL: {shown}")


@pytest.mark.postgres
def test__open__server_away__one_line_without_the_password():
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError) as caught:
        Store.open("postgresql://ann:s3cret@127.0.0.1:1/search")
    assert "postgresql://ann:***@127.0.0.1:1/search: PostgreSQL cannot be used" in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)
