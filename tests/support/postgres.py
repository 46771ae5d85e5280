"""A throw-away PostgreSQL cluster for tests: found, started, and gone with its folder.

The server listens on a Unix socket in its own temporary folder, with no network port. As root the
programs run as the user `postgres`, since the server refuses root.
"""

import atexit
import getpass
import glob
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import uuid4

PROGRAMS = "/usr/lib/postgresql/*/bin"
SERVER_USER = "postgres"
SPEED = "-c fsync=off -c full_page_writes=off -c shared_buffers=32MB"


@dataclass(frozen=True)
class Cluster:
    """A running server.

    Attributes:
        programs: Folder of its programs.
        folder: Its socket and data.
        user: Superuser of the databases.
        connections: How many clients it takes.
    """

    programs: Path
    folder: Path
    user: str
    connections: int = 60

    @property
    def data(self) -> Path:
        """Folder of the databases."""
        return self.folder / "data"

    @property
    def socket(self) -> Path:
        """The socket that the server listens on."""
        return self.folder / ".s.PGSQL.5432"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        room = f"-c max_connections={self.connections}"
        options = f"-k {self.folder} -c listen_addresses='' {SPEED} {room}"
        log = self.folder / "log"
        control = (self.programs / "pg_ctl", "-D", self.data, "-l", log)
        run(*control, "-o", options, "-w", "-t", "60", "start")

    def stop(self, mode: str) -> None:
        """Stop the server: `fast` ends sessions in good order, `immediate` is a crash."""
        run(self.programs / "pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    def create_database(self, template: str = "template0") -> str:
        """Create a database as a copy of another one, empty by default; returns its name."""
        import psycopg

        name = f"t{uuid4().hex[:12]}"
        with psycopg.connect(
            host=str(self.folder), user=self.user, dbname="postgres", autocommit=True
        ) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
        return name

    def url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://{self.user}@/{database}?host={self.folder}"


def find_programs() -> Path | None:
    """Return the newest installed server's programs, None when there is no server."""
    found = [Path(path) for path in glob.glob(PROGRAMS) if (Path(path) / "initdb").exists()]
    return max(found, key=lambda path: float(path.parent.name), default=None)


def why_not() -> str | None:
    """Return why no cluster can be started, None if one can."""
    if find_programs() is None:
        return f"no PostgreSQL server programs in {PROGRAMS}"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        return "root needs runuser to start PostgreSQL as another user"
    return None


def run(*command: str | Path) -> None:
    """Run a server program as a user that the server accepts."""
    words = [str(word) for word in command]
    if os.geteuid() == 0:
        words = ["runuser", "-u", SERVER_USER, "--", *words]
    done = subprocess.run(words, capture_output=True, text=True, cwd="/", check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")


@contextmanager
def cluster(connections: int = 60) -> Iterator[Cluster]:
    """Start a server and stop it at the end."""
    programs = find_programs()
    assert programs is not None
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, SERVER_USER)
        user = SERVER_USER if os.geteuid() == 0 else getpass.getuser()
        started = Cluster(programs, folder, user, connections)
        data = started.data
        run(programs / "initdb", "-D", data, "-A", "trust", "-U", user, "--no-sync", "-E", "UTF8")
        started.start()
        try:
            yield started
        finally:
            started.stop("immediate")


@cache
def shared_cluster() -> Cluster:
    """Return the one server of this process, started at first use and stopped at its end."""
    stack = ExitStack()
    running = stack.enter_context(cluster())
    # Registered last, so it runs before the hook that removes temporary folders.
    atexit.register(stack.close)
    return running
