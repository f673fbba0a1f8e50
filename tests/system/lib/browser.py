# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by the WebDriver protocol (W3C) over chromedriver. Standard library only."""
import base64
import http.client
import json
import os
import shutil
import subprocess
import tempfile
import time

from paddock_test import DEADLINE_S, free_port

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# what the page's policy of content refuses, and errors that nobody caught, are kept from the first script on
WATCH = """window.faults = []; window.shifts = 0;
addEventListener('securitypolicyviolation', (e) => faults.push('csp: ' + e.violatedDirective + ' ' + e.blockedURI));
addEventListener('error', (e) => faults.push('error: ' + e.message));
addEventListener('unhandledrejection', (e) => faults.push('rejection: ' + e.reason));
new PerformanceObserver((l) => { for (const e of l.getEntries()) if (!e.hadRecentInput) window.shifts += e.value; })
  .observe({ type: 'layout-shift', buffered: true });"""


class Browser:
    def __init__(self, width=1280, height=900, dark=False):
        self.dir = tempfile.mkdtemp(prefix="paddock-browser-")
        self.port = free_port()
        env = dict(os.environ, HOME=self.dir, TMPDIR=self.dir)
        self.driver = subprocess.Popen([DRIVER, f"--port={self.port}", f"--log-path={self.dir}/driver.log"], env=env,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync", f"--user-data-dir={self.dir}/profile"]
        options = {"binary": BROWSER, "args": args}
        end = time.monotonic() + DEADLINE_S
        while True:
            try:
                got = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
                    "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}}, session=False)
                break
            except OSError:
                assert time.monotonic() < end and self.driver.poll() is None, "chromedriver does not answer"
                time.sleep(0.05)
        self.id = got["sessionId"]
        self.cdp("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        self.look(width, height, dark)

    def call(self, method, path, body=None, session=True):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        try:
            c.request(method, (f"/session/{self.id}" if session else "") + path, json.dumps(body) if body is not None else None,
                      {"Content-Type": "application/json"})
            r = c.getresponse()
            value = json.loads(r.read())["value"]
            assert r.status == 200, value
            return value
        finally:
            c.close()

    def cdp(self, cmd, **params):
        return self.call("POST", "/goog/cdp/execute", {"cmd": cmd, "params": params})

    def look(self, width, height, dark=False):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def js(self, script, *args):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def text(self):
        return self.js("return document.body.innerText")

    def until(self, cond, what):
        """Waits until cond() is true, and tells what the page says if it does not become so."""
        end = time.monotonic() + DEADLINE_S
        while True:
            value = cond()
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"no {what} in time; the page says:\n{self.text()}\n{self.console()}")
            time.sleep(0.05)

    def says(self, *words):
        for w in words:
            self.until(lambda w=w: w in self.text(), repr(w))

    def click(self, selector, text=None):
        """Clicks on the element (with that text) as a person would, once it is there."""
        def find():
            for e in self.call("POST", "/elements", {"using": "css selector", "value": selector}):
                i = e[ELEMENT]
                try:
                    if text is None or self.call("GET", f"/element/{i}/text").strip() == text:
                        self.call("POST", f"/element/{i}/click", {})
                        return True
                except AssertionError as e:  # it was drawn anew, or is not in sight yet
                    if not any(w in str(e) for w in ("stale", "intercepted", "not interactable")):
                        raise
            return False
        self.until(find, f"element {selector} {text or ''}")

    def type(self, selector, text):
        def find():
            found = self.call("POST", "/elements", {"using": "css selector", "value": selector})
            if found:
                self.call("POST", f"/element/{found[0][ELEMENT]}/value", {"text": text})
            return bool(found)
        self.until(find, f"element {selector}")

    def keys(self, text):
        """Types to whatever has the focus."""
        acts = [{"type": t, "value": ch} for ch in text for t in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": acts}]})

    def console(self):
        return [e for e in self.call("POST", "/se/log", {"type": "browser"}) if e["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, path, whole=False):
        if whole:
            size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
            shot = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                            clip={"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 4000), "scale": 1})["data"]
        else:
            shot = self.call("GET", "/screenshot")
        with open(path, "wb") as f:
            f.write(base64.b64decode(shot))

    def close(self):
        try:
            self.call("DELETE", "")
        except (OSError, AssertionError):
            pass
        self.driver.terminate()
        try:
            self.driver.wait(10)
        except subprocess.TimeoutExpired:
            self.driver.kill()
        shutil.rmtree(self.dir, ignore_errors=True)
