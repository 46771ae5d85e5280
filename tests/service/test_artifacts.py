"""Files are sent from the data root alone, whole or in parts."""

from pathlib import Path

import pytest
from served import API, client_of
from sqlalchemy import insert

from search.store.engine import database_time
from search.store.measurements import Artifact
from search.store.repo import Store


def add(url: str, uri: str) -> int:
    with Store.open(url) as store, store.writing() as connection:
        values = {"trial_id": 1, "kind": "log", "uri": uri, "created_at": database_time(connection)}
        return connection.execute(
            insert(Artifact).values(**values).returning(Artifact.id)
        ).scalar_one()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "root"
    folder.mkdir(parents=True)
    (folder / "log.txt").write_bytes(b"0123456789")
    (folder.parent / "secret").write_text("secret")
    (folder.parent / "rootling").write_text("secret")
    (folder / "link").symlink_to(folder.parent / "secret")
    (folder / "up").symlink_to(folder.parent)
    return folder


def test__artifact__inside_the_root__comes_whole_and_in_parts(filled: str, root: Path) -> None:
    ids = [add(filled, uri) for uri in ("log.txt", str(root / "log.txt"), f"file://{root}/log.txt")]
    with client_of(filled, files=root) as client:
        listed = client.get(f"{API}/trials/1/artifacts").json()
        assert [row["id"] for row in listed] == ids
        for each in ids:
            whole = client.get(f"{API}/artifacts/{each}")
            assert (whole.status_code, whole.content) == (200, b"0123456789")
            assert whole.headers["content-disposition"].startswith("attachment")
            assert whole.headers["content-type"] == "application/octet-stream"
        one = f"{API}/artifacts/{ids[0]}"
        part = client.get(one, headers={"Range": "bytes=2-4"})
        assert (part.status_code, part.content) == (206, b"234")
        assert part.headers["content-range"] == "bytes 2-4/10"
        assert client.get(one, headers={"Range": "bytes=-3"}).content == b"789"
        beyond = client.get(one, headers={"Range": "bytes=10-"})
        assert beyond.status_code == 416
        assert beyond.headers["content-range"] == "bytes */10"
        assert beyond.json()["status"] == 416


@pytest.mark.parametrize(
    "uri",
    [
        "../secret",
        "x/../../secret",
        "/etc/passwd",
        "{root}/../secret",
        "{root}ling",
        "link",
        "up/secret",
        "file:///etc/passwd",
        "file://{root}/%2e%2e/secret",
        "file://{root}/..%2fsecret",
        "file://other.example/etc/passwd",
        "http://127.0.0.1/x",
        "s3://bucket/x",
        "log.txt\0.png",
        ".",
        "gone.txt",
        "~/.bashrc",
        "x" * 5000,
    ],
)
def test__artifact__outside_the_root__is_404_whatever_its_form(
    filled: str, root: Path, uri: str
) -> None:
    each = add(filled, uri.format(root=root))
    with client_of(filled, files=root) as client:
        answer = client.get(f"{API}/artifacts/{each}")
        assert answer.status_code == 404
        assert "secret" not in answer.text
