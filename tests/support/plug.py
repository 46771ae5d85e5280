"""A machine on the other end of a cable that a test can pull.

Cutting a connection tells both ends. Behind a pulled plug nothing is told: what is sent is lost,
and what was awaited never comes. A network namespace of Linux with a virtual cable does just that;
a proxy in it stands in front of a server's Unix socket.
"""

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path

SUPPORT = Path(__file__).parent
RANGE = ip_network("198.18.0.0/15")
"""Kept for tests of networks; a cable takes four addresses of it."""
NOBODY = "02:00:00:00:00:01"
PROXY = """
import sys
from pathlib import Path
from cut_proxy import CutProxy
proxy = CutProxy(Path(sys.argv[1]), sys.argv[2])
print(proxy.port, flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Machine:
    """What can be reached over the cable.

    Attributes:
        name: Of its namespace, and of this end of the cable.
        near: Address of this end of the cable.
        host: Its address.
        port: Where the proxy listens.
    """

    name: str
    near: str
    host: str
    port: int

    def pull(self) -> None:
        """Pull the plug: both ends send to a card that is not there."""
        ip("neighbour", "replace", self.host, "lladdr", NOBODY, "dev", self.name)
        ip("-n", self.name, "neighbour", "replace", self.near, "lladdr", NOBODY, "dev", "there")

    def plug_in(self) -> None:
        """Put the plug back."""
        ip("neighbour", "delete", self.host, "dev", self.name)
        ip("-n", self.name, "neighbour", "delete", self.near, "dev", "there")


def ip(*words: str) -> None:
    """Run the system's command for networks."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


def why_not() -> str | None:
    """Return why there is no such machine here, None if there can be one."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        return "a network namespace needs root and the command ip"
    made = subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False)
    return None if made.returncode == 0 else "no network namespace can be made here"


@contextmanager
def machine(server: Path) -> Iterator[Machine]:
    """Set up a machine that passes on to a Unix socket, for as long as the block runs."""
    name = f"plug{secrets.token_hex(4)}"
    first = RANGE[4 * secrets.randbelow(RANGE.num_addresses // 4)]
    near, host = str(first + 1), str(first + 2)
    with ExitStack() as stack:
        ip("netns", "add", name)
        stack.callback(ip, "netns", "delete", name)
        ip("link", "add", name, "type", "veth", "peer", "name", "there", "netns", name)
        # A namespace goes away some time after it is deleted, and would take the cable then.
        stack.callback(ip, "link", "delete", name)
        ip("address", "add", f"{near}/30", "dev", name)
        ip("link", "set", name, "up")
        ip("-n", name, "address", "add", f"{host}/30", "dev", "there")
        ip("-n", name, "link", "set", "there", "up")
        command = ["ip", "netns", "exec", name, sys.executable, "-c", PROXY, str(server), host]
        proxy = subprocess.Popen(
            command, cwd=SUPPORT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        stack.enter_context(proxy)
        stack.callback(proxy.kill)
        assert proxy.stdout is not None
        yield Machine(name, near, host, int(proxy.stdout.readline()))
