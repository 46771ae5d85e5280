"""The commands of docs/deploying.md that keep a store safe do so, on both databases."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import store_factory
from command import environment
from postgres import Cluster, shared_cluster, why_not

from search.store.repo import Store

PAGE = Path(__file__).parents[2] / "docs" / "deploying.md"
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SQL = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def server() -> Cluster:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    return shared_cluster()


def section(title: str) -> str:
    page = PAGE.read_text(encoding="utf-8")
    return page.partition(f"## {title}\n")[2].partition("\n## ")[0]


def shell(lines: str, folder: Path, **variables: str) -> str:
    """Run commands as they stand, `search` being the one under test; returns what they print."""
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines],
        cwd=folder,
        env=environment(**variables) | {"PATH": programs},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test__backup__of_sqlite_while_it_is_open__is_a_store_like_it(tmp_path: Path) -> None:
    lines = next(text for text in SHELL.findall(section("Backup and restore")) if "sqlite3" in text)
    with Store.open(f"sqlite:///{tmp_path}/search.db") as store:
        store_factory.fill(store, "demo")
        assert "demo" in shell(lines, tmp_path)
        with Store.open(f"sqlite:///{tmp_path}/backup.db") as copy:
            assert copy.leaderboard("demo") == store.leaderboard("demo")
            assert copy.register_worker() > 0


@pytest.mark.postgres
def test__backup__of_postgresql_restored_elsewhere__is_a_store_like_it(
    server: Cluster, tmp_path: Path
) -> None:
    url = server.url(server.create_database())
    blocks = [text for text in SHELL.findall(section("Backup and restore")) if "sqlite" not in text]
    new = f"{url.partition('?')[0].rpartition('/')[2]}_restored"
    lines = "".join(blocks).replace("createdb restored", f"createdb {new}")
    for name, ours in (("restored", server.url(new)), ("search", url)):
        lines = lines.replace(f"postgresql://search@db.example/{name}", f"'{ours}'")
    with Store.open(url) as store:
        store_factory.fill(store, "demo")
        store.query("SELECT 1")  # grants, which the dump leaves out
        said = shell(lines, tmp_path, PGHOST=str(server.folder), PGUSER=server.user)
        assert "demo" in said
        with Store.open(server.url(new)) as copy:
            assert copy.leaderboard("demo") == store.leaderboard("demo")
            worker = copy.register_worker()
            assert worker > max(row[0] for row in store.query("SELECT id FROM workers").rows)


@pytest.mark.postgres
def test__role_for_queries__made_as_the_page_says__lets_a_plain_owner_read_and_no_more(
    server: Cluster,
) -> None:
    import psycopg

    database = server.create_database()
    [role] = SQL.findall(section("By hand"))
    owner = f"owner_{database}"
    with psycopg.connect(
        host=str(server.folder), user=server.user, dbname=database, autocommit=True
    ) as connection:
        connection.execute(f"CREATE ROLE {owner} LOGIN; GRANT CREATE ON SCHEMA public TO {owner}")
        url = server.url(database).replace(f"{server.user}@", f"{owner}@")
        with Store.open(url) as store:
            store_factory.fill(store, "demo")
            there = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'mixsearch_reader'")
            if there.fetchone() is not None:
                role = role.partition("\n")[2]
            connection.execute(role.replace("TO search", f"TO {owner}"))
            assert store.query("SELECT current_user").rows == [("mixsearch_reader",)]
            assert store.query("SELECT COUNT(*) FROM trials").rows == [(4,)]
