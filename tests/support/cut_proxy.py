"""A TCP proxy in front of a server's Unix socket, whose connections a test can cut."""

import contextlib
import socket
import threading
from pathlib import Path


class CutProxy:
    """Passes bytes both ways until `cut`; then refuses until `mend`."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.is_cut = False
        self.pairs: list[tuple[socket.socket, socket.socket]] = []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break every connection, and every new one."""
        self.is_cut = True
        for pair in self.pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        self.pairs.clear()

    def mend(self) -> None:
        """Let connections through again."""
        self.is_cut = False

    def close(self) -> None:
        """Stop listening."""
        self.cut()
        self.server.close()

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
                    threading.Thread(target=pass_on, args=(source, sink), daemon=True).start()


def pass_on(source: socket.socket, sink: socket.socket) -> None:
    """Pass bytes on until one side ends."""
    with contextlib.suppress(OSError):
        while chunk := source.recv(65536):
            sink.sendall(chunk)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
