"""A real browser for tests: Chromium, driven through its debugging pipe with the standard library.

    with Browser(tmp_path) as browser:
        page = browser.page(width=375, dark=True)
        page.open("http://127.0.0.1:8765/studies")
        page.wait("document.querySelector('table')")

A page keeps what its console said and what failed to load (`page.troubles`).
"""

import base64
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Self

from search.figures.files import BROWSERS

BROWSER = next((found for name in BROWSERS if (found := shutil.which(name))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking"),
    *("--remote-debugging-pipe", "--force-color-profile=srgb", "--hide-scrollbars"),
)
PATIENCE_S = 60.0


class Browser:
    """A headless Chromium with a profile of its own.

    Args:
        folder: For the profile.
    """

    def __init__(self, folder: Path) -> None:
        assert BROWSER is not None
        self.last_id = 0
        self.answers: dict[int, Queue[dict[str, Any]]] = {}
        self.listeners: dict[str, Callable[[dict[str, Any]], None]] = {}
        theirs_in, self.out = os.pipe()
        self.come, theirs_out = os.pipe()
        # The browser reads commands from descriptor 3 and writes to descriptor 4.
        command = [BROWSER, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        moved = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", moved, "bash", *command],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        """Hands out what the browser says."""
        rest = b""
        while chunk := os.read(self.come, 1 << 16):
            *messages, rest = (rest + chunk).split(b"\0")
            for text in messages:
                message = json.loads(text)
                if "id" in message:
                    self.answers.pop(message["id"]).put(message)
                elif message.get("sessionId") in self.listeners:
                    self.listeners[message["sessionId"]](message)

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Sends a command and returns its result."""
        self.last_id += 1
        answer: Queue[dict[str, Any]] = Queue()
        self.answers[self.last_id] = answer
        message = {"id": self.last_id, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        try:
            found = answer.get(timeout=PATIENCE_S)
        except Empty:
            raise TimeoutError(f"the browser did not answer {method}") from None
        assert "error" not in found, (method, found)
        result: dict[str, Any] = found["result"]
        return result

    def page(self, width: int = 1280, height: int = 900, *, dark: bool = False) -> "Page":
        """Opens an empty page of some size, in light or dark colours."""
        return Page(self, width, height, dark=dark)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.call("Browser.close")
        self.process.wait(10)
        os.close(self.out)
        os.close(self.come)


class Page:
    """A page of the browser.

    Attributes:
        troubles: Errors and warnings of the console, exceptions, and files that did not load.
    """

    def __init__(self, browser: Browser, width: int, height: int, *, dark: bool) -> None:
        self.browser = browser
        self.troubles: list[str] = []
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        found = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)
        self.session = found["sessionId"]
        browser.listeners[self.session] = self.hear
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def close(self) -> None:
        """Closes the page; it could hold connections that the next one needs."""
        self.browser.call("Target.closeTarget", targetId=self.target)

    def hear(self, message: dict[str, Any]) -> None:
        """Keeps what goes wrong."""
        method, params = message["method"], message["params"]
        if method == "Runtime.exceptionThrown":
            self.troubles.append(json.dumps(params["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.troubles.append(json.dumps(params["args"])[:500])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            entry = params["entry"]
            self.troubles.append(f"{entry['text']} {entry.get('url', '')}")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends a command about this page."""
        return self.browser.call(method, self.session, **params)

    def open(self, url: str) -> None:
        """Goes to an address, as soon as a server listens there, and waits until it is loaded."""
        end = time.monotonic() + PATIENCE_S
        while self.call("Page.navigate", url=url).get("errorText") and time.monotonic() < end:
            time.sleep(0.05)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def value(self, expression: str) -> Any:
        """Returns what an expression gives on the page; waits for promises."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = PATIENCE_S) -> None:
        """Waits until an expression holds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                found = self.value(f"Boolean({expression})")
            except AssertionError:
                found = False  # the page is being left
            if found:
                return
            time.sleep(0.05)
        raise TimeoutError(f"{expression} did not come true; {self.troubles}")

    def click(self, selector: str) -> None:
        """Clicks an element as a user's mouse does."""
        self.wait(f"document.querySelector({json.dumps(selector)})")
        place = self.value(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)});"
            " found.scrollIntoView({block: 'center'}); const box = found.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=place[0],
                y=place[1],
                button="left",
                clickCount=1,
            )

    def type(self, selector: str, text: str) -> None:
        """Puts text into a field as typing does."""
        self.value(f"document.querySelector({json.dumps(selector)}).focus()")
        self.value(f"document.querySelector({json.dumps(selector)}).select()")
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Presses a key such as Tab or Enter."""
        text = {"Enter": "\r"}.get(key)
        more = {"text": text} if text else {}
        code = {"Tab": 9, "Enter": 13}[key]
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **(more if kind == "keyDown" else {}),
            )

    def picture(self, path: Path, top: int = 0, height: int | None = None) -> None:
        """Saves a picture of the page as PNG: all of it, or so many pixels from some height on."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        height = size["height"] - top if height is None else height
        clip = {"x": 0, "y": top, "width": size["width"], "height": height, "scale": 1}
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(found["data"]))
