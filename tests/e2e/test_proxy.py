"""The nginx block of docs/deploying.md in a real nginx, with TLS, in front of a running service."""

import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import store_factory
from served import API, make_token, server_of

from search.store.repo import Store

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
PAGE = Path(__file__).parents[2] / "docs" / "deploying.md"
NAME = "search.example.org"
PATIENCE_S = 20
SETTINGS = {"hosts": (NAME,), "secure_cookies": True, "proxies": ("127.0.0.1",)}

pytestmark = pytest.mark.skipif(NGINX is None, reason="needs nginx")


class Proxy:
    """A client of the proxy that trusts its certificate alone."""

    def __init__(self, port: int, certificate: Path) -> None:
        self.port = port
        self.context = ssl.create_default_context(cafile=str(certificate))
        self.open = ExitStack()

    def connect(self) -> http.client.HTTPConnection:
        """A connection as a browser makes one to the service's name."""
        connection = http.client.HTTPConnection(NAME, timeout=PATIENCE_S)
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        connection.sock = self.context.wrap_socket(plain, server_hostname=NAME)
        self.open.callback(connection.close)
        return connection

    def ask(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> http.client.HTTPResponse:
        """Send a request; its answer is not read yet."""
        connection = self.connect()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            given["Content-Type"] = "application/json"
        connection.request(method, path, None if body is None else json.dumps(body), given)
        return self.open.enter_context(connection.getresponse())


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def configuration(folder: Path, port: int, service: str) -> str:
    """The page's block, with our ports and files, as the only site of an nginx without rights."""
    [block] = re.findall(r"^```nginx\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    for theirs, ours in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("/etc/ssl/search.example.org.pem", f"{folder}/cert.pem"),
        ("/etc/ssl/private/search.example.org.key", f"{folder}/key.pem"),
        ("http://127.0.0.1:8765", service),
    ):
        assert theirs in block
        block = block.replace(theirs, ours)
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"pid {folder}/nginx.pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{places}{block}\n}}\n"
    )


@pytest.fixture
def url(tmp_path: Path) -> str:
    made = f"sqlite:///{tmp_path}/search.db"
    with Store.open(made, create=True) as store:
        store_factory.fill(store, "demo")
    return made


@pytest.fixture
def proxy(tmp_path: Path, url: str) -> Iterator[Proxy]:
    port = free_port()
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"),
            *("-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"),
        ],
        check=True,
        capture_output=True,
    )
    with server_of(url, **SETTINGS) as (service, _):
        (tmp_path / "nginx.conf").write_text(configuration(tmp_path, port, service))
        assert NGINX is not None
        command = [NGINX, "-p", tmp_path, "-e", tmp_path / "error.log"]
        command += ["-c", tmp_path / "nginx.conf", "-g", "daemon off; master_process off;"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                listens(port, process)
                made = Proxy(port, tmp_path / "cert.pem")
                with made.open:
                    yield made
            finally:
                process.terminate()


def listens(port: int, process: "subprocess.Popen[str]") -> None:
    """Wait until nginx takes connections."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    assert process.stderr is not None
    process.kill()
    pytest.fail(process.stderr.read())


def test__nginx_as_the_page_says__login_change_and_live_events__work_over_tls(
    proxy: Proxy, url: str
) -> None:
    token = make_token(url, "submit", "ann")
    site = f"https://{NAME}"
    asked = proxy.ask("POST", f"{API}/session", {"token": token}, Origin=site)
    assert asked.status == 200, asked.read()
    cookie, given = str(asked.headers["Set-Cookie"]), json.load(asked)
    assert "secure" in cookie.lower()
    shown = {"Cookie": cookie.partition(";")[0]}
    stream = proxy.ask("GET", f"{API}/events/stream?study=demo", **shown)
    change = {"Origin": site, "X_CSRF_Token": given["csrf"]}
    paused = proxy.ask("POST", f"{API}/studies/demo/pause", **shown, **change)
    assert paused.status in (200, 204), paused.read()
    # Held back by the proxy it would come with the end of the stream, which does not end.
    while b"data:" not in (line := stream.readline()):
        assert line, "the stream ended"
    foreign = change | {"Origin": "https://elsewhere.example.org"}
    assert proxy.ask("POST", f"{API}/studies/demo/resume", **shown, **foreign).status == 403
    assert proxy.ask("GET", "/studies/demo", **shown).status == 200


def test__nginx_as_the_page_says__wrong_tokens__count_for_the_client(
    proxy: Proxy, url: str
) -> None:
    make_token(url, "read", "ann")
    wrong = {"Authorization": "Bearer wrong"}
    refused = [proxy.ask("GET", f"{API}/studies", **wrong).status for _ in range(12)]
    assert refused == [401] * 10 + [429] * 2
    # What a client claims about itself does not help it: the proxy adds the address it sees.
    claimed = wrong | {"X_Forwarded_For": "203.0.113.9"}
    assert proxy.ask("GET", f"{API}/studies", **claimed).status == 429
