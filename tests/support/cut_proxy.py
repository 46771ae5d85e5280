"""A TCP proxy in front of a server's Unix socket, whose connections a test can cut."""

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path


class CutProxy:
    """Passes bytes both ways until `cut`; then refuses until `mend`."""

    def __init__(self, target: Path, host: str = "127.0.0.1") -> None:
        self.target = target
        self.is_cut = False
        self.pairs: list[tuple[socket.socket, socket.socket]] = []
        self.server = socket.create_server((host, 0))
        self.port = self.server.getsockname()[1]
        self.threads: list[threading.Thread] = []
        self._start(self._accept)

    def cut(self) -> None:
        """Break every connection, and every new one."""
        self.is_cut = True
        for pair in self.pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Let connections through again."""
        self.is_cut = False

    def close(self) -> None:
        """Stop listening, and let go of every connection."""
        self.cut()
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        for thread in self.threads:
            thread.join(timeout=10)
        for pair in self.pairs:
            for end in pair:
                end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                if self.is_cut:
                    client.close()
                    continue
                upstream = socket.socket(socket.AF_UNIX)
                upstream.connect(str(self.target))
                self.pairs.append((client, upstream))
                for source, sink in ((client, upstream), (upstream, client)):
                    self._start(pass_on, source, sink)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        self.threads.append(threading.Thread(target=target, args=arguments, daemon=True))
        self.threads[-1].start()


def pass_on(source: socket.socket, sink: socket.socket) -> None:
    """Pass bytes on until one side ends."""
    with contextlib.suppress(OSError):
        while chunk := source.recv(65536):
            sink.sendall(chunk)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
