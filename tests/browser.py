"""A headless Chromium for tests, by the WebDriver protocol of its chromedriver."""

import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.conftest import PATIENCE_S

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--disable-dev-shm-usage"),
)
# The driver says on which free port it listens.
_LISTENS = re.compile(r"started successfully on port (\d+)")


class Browser:
    """One window of a browser, of so many CSS pixels."""

    def __init__(self, port: int, profile: Path) -> None:
        self._address = f"http://127.0.0.1:{port}/session"
        arguments = [*_FLAGS, f"--user-data-dir={profile}"]
        options = {"binary": CHROMIUM, "args": arguments}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self._post("", {"capabilities": {"alwaysMatch": wanted}})
        self._address += f"/{session['sessionId']}"

    def _post(self, path: str, content: dict[str, Any], method: str = "POST") -> Any:
        body, kind = json.dumps(content).encode(), {"Content-Type": "application/json"}
        request = urllib.request.Request(self._address + path, body, kind, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)["value"]

    def tell(self, command: str, **parameters: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return self._post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def look(
        self, *, width: int, height: int, scheme: str = "light", media: str = "screen"
    ) -> None:
        """Show pages in a window of this size, in ``light`` or ``dark``, or as ``print``."""
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.tell("Emulation.setEmulatedMedia", media=media, features=[feature])

    def open(self, page: Path, *, scripts: bool = True) -> None:
        """Open a file, and wait until it has been drawn twice."""
        self.tell("Emulation.setScriptExecutionDisabled", value=not scripts)
        self._post("/url", {"url": page.as_uri()})
        self.tell("Emulation.setScriptExecutionDisabled", value=False)

    def ask(self, script: str, *arguments: Any) -> Any:
        """Return what a function body returns on the page, once what it shows is drawn."""
        drawn = "requestAnimationFrame(() => requestAnimationFrame(() => done(body(...told))))"
        whole = (
            "const done = arguments[arguments.length - 1], told = [...arguments].slice(0, -1);"
            f"const body = function () {{ {script} }}; {drawn};"
        )
        return self._post("/execute/async", {"script": whole, "args": list(arguments)})

    def press(self, *keys: str) -> None:
        """Press keys, each by its name in the WebDriver protocol or as it is."""
        codes = {"Tab": "\ue004", "Left": "\ue012", "Right": "\ue014", "End": "\ue010"}
        actions = [
            {"type": kind, "value": codes.get(key, key)}
            for key in keys
            for kind in ("keyDown", "keyUp")
        ]
        self._post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def quit(self) -> None:
        """End the browser; its driver stays."""
        self._post("", {}, "DELETE")

    def complaints(self) -> list[str]:
        """Return what the console has said since it was last asked."""
        return [entry["message"] for entry in self._post("/se/log", {"type": "browser"})]


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """Yield a browser that keeps its profile in a folder, and end it with all its processes."""
    assert DRIVER
    driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout
        port = next(int(match[1]) for line in driver.stdout if (match := _LISTENS.search(line)))
        browser = Browser(port, folder)
        try:
            yield browser
        finally:
            browser.quit()
    finally:
        driver.kill()
        driver.wait()
