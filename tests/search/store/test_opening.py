import hashlib
import os
import sqlite3
import subprocess
import sys

import pytest
import store_factory
from sqlalchemy import make_url
from store_fixtures import copied_store

from search.errors import NothingThereError, StoreAwayError, StoreError
from search.store.address import parse_address
from search.store.opening import check_file, file_system
from search.store.repo import Store

MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/ann/local\\040disk xfs rw 0 0
sshfs#ann@host: /mnt/far fuse.sshfs rw 0 0
"""


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refused(path, error=StoreError, **options):
    with pytest.raises(error) as caught:
        Store.open(str(path), **options)
    message = str(caught.value)
    assert message.startswith(f"{path}: "), message
    assert "\n" not in message
    return message


def test__open__new_file__makes_a_store_that_opens_again(store_url):
    with Store.open(store_url) as store:
        assert store.studies() == []
    with Store.open(store_url, create=False) as store:
        assert store.studies() == []


def test__open__no_file_and_no_creation__nothing_there(tmp_path):
    assert "no store" in refused(tmp_path / "search.db", NothingThereError, create=False)
    assert not (tmp_path / "search.db").exists()


def test__open__empty_database_and_no_creation__nothing_there(tmp_path):
    (tmp_path / "search.db").touch()
    assert "empty" in refused(tmp_path / "search.db", NothingThereError, create=False)
    assert (tmp_path / "search.db").stat().st_size == 0


def test__open__folder__names_a_file_in_it(tmp_path):
    assert "is a folder" in refused(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test__open__folder_missing__says_so(tmp_path):
    assert "there is no folder" in refused(tmp_path / "missing" / "search.db")


def test__open__special_file__refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refused(tmp_path / "pipe")


@pytest.mark.parametrize("content", [b"step,loss\n1,2.0\n", b"x", b"SQLite format 2\0" * 100])
def test__open__not_a_database__refused_unharmed(tmp_path, content):
    path = tmp_path / "search.db"
    path.write_bytes(content)
    assert "not an SQLite database" in refused(path)
    assert path.read_bytes() == content


def test__open__damaged_database__says_how_to_save_it(tmp_path):
    path = tmp_path / "search.db"
    with Store.open(str(path)) as store:
        store_factory.fill(store)
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * (4096 - 100)
    path.write_bytes(content)
    assert ".recover" in refused(path)


def test__open__database_of_another_program__unharmed(tmp_path):
    path = tmp_path / "browser.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE trials (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO trials VALUES (7)")
    connection.close()
    before = digest(path)
    assert "another program" in refused(path)
    assert digest(path) == before
    assert [file.name for file in tmp_path.iterdir()] == ["browser.db"]


def test__open__locked_for_too_long__says_by_how_much(tmp_path, monkeypatch):
    path = tmp_path / "search.db"
    with Store.open(str(path)) as store:
        store_factory.fill(store)
    monkeypatch.setattr("search.store.engine.BUSY_TIMEOUT_S", 0.1)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with Store.open(str(path)) as store:
        assert store.study("demo").n_trials == 4  # readers do not wait
        with pytest.raises(StoreError, match="kept it locked") as caught:
            store.register_worker()
        assert "\n" not in str(caught.value)
    blocker.close()


def test__write__disk_full__one_line_and_what_was_stored_stays(tmp_path):
    path = tmp_path / "search.db"
    with Store.open(str(path)) as store:
        study_id = store_factory.fill(store)
        before = store.rows("demo")
        with store.engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            # Room for the trial, not for its result.
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 32}")
        worker = store.register_worker()
        claim = store_factory.claim_and_commit(store, study_id, worker, "attention*3")
        huge = store_factory.result().model_copy(update={"environment": {"note": "x" * 2_000_000}})
        with pytest.raises(StoreError, match="the disk is full") as caught:
            store.finish(claim, huge)
        assert "\n" not in str(caught.value)
        assert store.rows("demo")[:4] == before
        assert store.rows("demo")[4].state == "running"
    with Store.open(str(path)) as store:
        assert store.rows("demo")[:4] == before


AS_NOBODY = """
import os, sys
from search.errors import StoreError
from search.store.repo import Store
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    Store.open(sys.argv[1]).register_worker()
except StoreError as error:
    print(error)
"""


def let_nobody_in(folder):
    """pytest's own folders are closed to others, which is not what these tests are about."""
    for parent in (folder, *folder.parents):
        if parent.owner() == "root" and len(parent.parts) > 2:
            parent.chmod(parent.stat().st_mode | 0o055)


@pytest.mark.parametrize("case", ["unreadable", "read_only", "folder"])
def test__open__permissions__one_line(tmp_path, case):
    path = tmp_path / "search.db"
    with Store.open(str(path)) as store:
        store_factory.fill(store)
    target = tmp_path / "new.db" if case == "folder" else path
    path.chmod(0o000 if case == "unreadable" else 0o444)
    if os.geteuid() == 0:
        let_nobody_in(tmp_path)
    tmp_path.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(target)], capture_output=True, text=True, check=False
    )
    tmp_path.chmod(0o755)
    assert done.stdout.startswith(f"{target}: "), done.stderr
    assert done.stdout.count("\n") == 1
    assert "permissions" in done.stdout or "Permission denied" in done.stdout
    assert target.exists() == (case != "folder")


@pytest.mark.postgres
def test__open__postgresql_user_without_rights__one_line(tmp_path):
    ready_url = copied_store("postgresql", tmp_path)
    with Store.open(ready_url) as store, store.engine.begin() as connection:
        connection.exec_driver_sql(
            "DO $$ BEGIN CREATE ROLE guest LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        )
    guest = make_url(ready_url).set(username="guest").render_as_string()
    with pytest.raises(StoreError, match="permission denied") as caught:
        Store.open(guest)
    assert "\n" not in str(caught.value)


@pytest.mark.postgres
def test__open__server_takes_no_more_connections__one_line_with_two_ways_out(tmp_path):
    ready_url = copied_store("postgresql", tmp_path)
    with Store.open(ready_url) as store, store.engine.begin() as connection:
        connection.exec_driver_sql(
            "DO $$ BEGIN CREATE ROLE crowd LOGIN CONNECTION LIMIT 0; "
            "EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        )
    crowd = make_url(ready_url).set(username="crowd").render_as_string()
    with pytest.raises(StoreAwayError) as caught:
        Store.open(crowd)
    message = str(caught.value)
    assert "takes no more connections" in message
    assert "max_connections" in message
    assert "search serve" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/search.db", "ext4"),
        ("/home/ann/search.db", "nfs4"),
        ("/home/ann/local disk/search.db", "xfs"),
        ("/homes/search.db", "ext4"),
        ("/mnt/far/search.db", "fuse.sshfs"),
    ],
)
def test__file_system__deepest_mount_point__counts(path, kind):
    assert file_system(parse_address(path).path, MOUNTS) == kind


def test__check_file__network_file_system__refused_with_two_ways_out(tmp_path):
    address = parse_address(str(tmp_path / "search.db"))
    mounts = f"/dev/vda / ext4 rw 0 0\nserver:/x {tmp_path} nfs rw 0 0\n"
    with pytest.raises(StoreError) as caught:
        check_file(address, create=True, mounts=mounts)
    message = str(caught.value)
    assert "(nfs)" in message
    assert "PostgreSQL" in message
    assert "local disk" in message
    assert "search worker --server" in message


def test__check_file__link_to_a_network_file_system__refused(tmp_path):
    far, near = tmp_path / "far", tmp_path / "near"
    far.mkdir()
    near.symlink_to(far)
    with pytest.raises(StoreError, match="cifs"):
        check_file(
            parse_address(str(near / "search.db")),
            create=True,
            mounts=f"/dev/vda / ext4 rw 0 0\n//server/x {far} cifs rw 0 0\n",
        )


def test__check_file__no_word_from_the_system__accepted(tmp_path):
    check_file(parse_address(str(tmp_path / "search.db")), create=True, mounts="")


def test__open__twice_in_one_process__the_first_keeps_its_locks(tmp_path):
    path = tmp_path / "search.db"
    with Store.open(str(path)) as first, Store.open(str(path)) as second:
        assert first.studies() == second.studies() == []
        # Were the locks gone, another process would take itself for the last one, and remove the
        # log that these two still read.
        write = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
        write += "c.execute('CREATE TABLE more (a)'); c.commit(); c.close()"
        subprocess.run([sys.executable, "-c", write, str(path)], check=True)
        assert path.with_name("search.db-wal").exists()
