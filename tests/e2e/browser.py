"""A page in a real Chromium, controlled over its debugging pipe, without a driver program."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

TIMEOUT_S = 60
KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "ArrowRight": (39, ""), "ArrowLeft": (37, ""), "ArrowDown": (40, "")}

# Visible elements that extend beyond the window and are not inside a scrolling box.
BEYOND = """[...document.querySelectorAll('body *')].filter(e => e.getClientRects().length &&
  e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.skip, .unseen') &&
  !e.parentElement.closest('.scroll, nav')).map(e => e.tagName + '.' + e.className + '#' + e.id)"""
# Scrolls to all charts, which are drawn lazily; returns the number of canvases of each.
EVERY_CHART = """(async () => { for (const e of document.querySelectorAll('.chart')) {
  e.scrollIntoView({behavior: 'instant'}); await new Promise(d => requestAnimationFrame(() => requestAnimationFrame(d))); }
  return [...document.querySelectorAll('.chart')].map(e => e.querySelectorAll('canvas').length); })()"""


def chromium():
    """The program, or None; IPW_CHROMIUM overrides it.  The headless shell takes half the CPU time per page."""
    names = [os.environ.get("IPW_CHROMIUM", ""), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
    return next((path for name in names if name for path in [shutil.which(name)] if path), None)


class Browser:
    """A context manager: one process and one page, with a temporary profile."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="ipw-browser-")
        to_browser, self.pipe_in = os.pipe()
        self.pipe_out, from_browser = os.pipe()
        # The browser's pipes are descriptors 3 and 4.
        command = ["sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "sh", chromium(), "--headless=new",
                   "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                   "--no-first-run", "--disable-background-networking", "--disable-component-update",
                   "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "about:blank"]
        self.log = open(os.path.join(self.profile, "log"), "w+")
        self.process = subprocess.Popen(command, pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)  # Debian's program may be a script that waits for the browser
        self.process.wait()
        os.close(self.pipe_in)
        os.close(self.pipe_out)
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- the protocol: JSON messages terminated by NUL ----

    def message(self, timeout_s):
        deadline = time.monotonic() + timeout_s
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.pipe_out], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.pipe_out, 1 << 20) if ready else b""
            if not piece:
                self.log.seek(0)
                raise RuntimeError(f"Chromium says nothing more: {self.log.read()[-2000:]}")
            self.rest += piece
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        asked = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            asked["sessionId"] = self.session
        data = json.dumps(asked).encode() + b"\0"
        while data:
            data = data[os.write(self.pipe_in, data):]
        while True:
            said = self.message(TIMEOUT_S)
            if said.get("id") == self.number:
                if "error" in said:
                    raise RuntimeError(f"{method}: {said['error']}")
                return said["result"]
            self.events.append(said)

    # ---- the page ----

    def open(self, path, width=1280, height=900, scale=1, dark=False, media="", phone=False):
        """Opens a file or URL; returns the seconds until it was drawn and idle."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=phone)
        self.media(dark, media)
        began = time.monotonic()
        loader = self.call("Page.navigate", url=path if "://" in str(path) else "file://" + os.path.abspath(path)).get("loaderId")
        self.until_shown(loader)
        self.until("document.documentElement.dataset.ready === 'yes'")
        self.settle()
        return time.monotonic() - began

    def until_shown(self, loader):
        """Waits until the new page has replaced the previous one, which may still respond; navigation within a page has
        no loader."""
        while loader and not any(event.get("method") == "Page.frameNavigated" and event["params"]["frame"]["loaderId"] == loader
                                 for event in self.events):
            self.events.append(self.message(TIMEOUT_S))

    def media(self, dark=False, media=""):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def run(self, script):
        """The value of an expression; promises are awaited."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(json.dumps(done["exceptionDetails"])[:2000])
        return done["result"].get("value")

    def until(self, script):
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                if self.run(script):
                    return
            except RuntimeError:  # no context between two pages
                pass
            if time.monotonic() > deadline:
                raise RuntimeError(f"waited in vain for {script}")
            time.sleep(0.01)

    def settle(self):
        """Waits until two frames were drawn, of the next page if one is being opened."""
        self.until("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def key(self, name, text=None):
        code, typed = KEYS.get(name, (ord(name.upper()[0]), name))
        common = {"key": name, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text or typed, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.settle()

    def write(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def click(self, x, y):
        self.point(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def point(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def problems(self):
        """Script and page errors, and network requests."""
        self.run("1")  # earlier events are received before this reply
        found = []
        for event in self.events:
            method, said = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(said["exceptionDetails"])[:500])
            elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
                found.append(str([a.get("value") for a in said["args"]])[:500])
            elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
                found.append(said["entry"]["text"])
        return found

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def size(self):
        """Size of the whole page in CSS pixels."""
        return self.call("Page.getLayoutMetrics")["cssContentSize"]

    def screenshot(self, path, whole=False):
        options = {}
        if whole:
            size = self.size()
            options = {"captureBeyondViewport": True,
                       "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))

    def pdf(self, path=None):
        data = base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])
        if path:
            with open(path, "wb") as file:
                file.write(data)
        return data
