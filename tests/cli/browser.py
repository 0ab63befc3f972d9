"""A headless Chromium controlled over the DevTools protocol's pipe; messages are JSON, terminated by a NUL."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run")

PATIENCE = 60.0
"""Seconds allowed for a page on a busy machine."""


def find_chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """A browser with one page; ``messages`` collects what the page logs and throws."""

    def __init__(self, profile: Path, *flags: str) -> None:
        program = find_chromium()
        if program is None:
            raise FileNotFoundError("no chromium")
        commands_out, self._commands = os.pipe()
        self._events, events_in = os.pipe()
        low = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (commands_out, events_in)]
        os.close(commands_out)
        os.close(events_in)

        def place() -> None:
            os.dup2(low[0], 3)
            os.dup2(low[1], 4)

        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", *flags, "about:blank"],
            preexec_fn=place,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in low:
            os.close(fd)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.messages: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._commands)
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._events)

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            poll = select.poll()  # select() takes no descriptor over 1023
            poll.register(self._events, select.POLLIN)
            if not poll.poll(1000 * max(0.0, deadline - time.monotonic())):
                raise TimeoutError("the browser does not answer")
            data = os.read(self._events, 1 << 20)
            if not data:
                raise EOFError("the browser ended")
            self._buffer += data
        message, self._buffer = self._buffer.split(b"\0", 1)
        found: dict[str, Any] = json.loads(message)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        method, given = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.messages.append(str(given["exceptionDetails"].get("exception", {}).get("description")))
        elif method == "Runtime.consoleAPICalled":
            self.messages.append(f"{given['type']}: {given['args']}")
        elif method == "Log.entryAdded":
            self.messages.append(f"{given['entry']['level']}: {given['entry']['text']}")

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": given}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def value(self, expression: str) -> Any:
        """Evaluate JavaScript in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def open(self, page: Path) -> float:
        """Open a report; return the seconds until it is ready."""
        began = time.monotonic()
        url = page.resolve().as_uri()
        self.call("Page.navigate", url=url)
        while self.value(f"location.href === {url!r} && document.documentElement?.dataset.ready") != "1":
            if time.monotonic() - began > PATIENCE:
                raise TimeoutError(f"{page} does not become ready: {self.messages}")
            time.sleep(0.01)
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        return time.monotonic() - began
