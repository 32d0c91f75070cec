#!/usr/bin/env python3
"""Opens a page in Chromium and tells what a reader sees there: one JSON object on standard output.

    browser.py PAGE FOLDER

The object has the title, the paragraphs and the cells of all tables as the browser shows them, every address that it asked for, and for
each picture (light, dark, print) the number of its colours and that of its corner. It also says whether folded parts are on paper. The
pictures are written to FOLDER as PNG. Chromium is CHROMIUM, or the one that tests/tools.py installs. It is driven through a pipe, by its own
protocol, and cannot reach the network.
"""

import base64
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
import tools  # noqa: E402  (beside this file)

FLAGS = ["--headless", "--no-sandbox", "--no-zygote", "--single-process", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--disable-background-networking", "--no-first-run", "--remote-debugging-pipe",
         # Nothing listens on this port, so whatever asks for the network fails.
         "--proxy-server=127.0.0.1:9", "--window-size=900,700"]

# Seconds after which something is wrong with the browser. A page takes five.
PATIENCE = 180

READ = """JSON.stringify({
  title: document.title,
  paragraphs: [...document.querySelectorAll('p')].map(one => one.innerText),
  tables: Object.fromEntries([...document.querySelectorAll('table')].map(table =>
    [table.id, [...table.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))])),
  plots: [...document.querySelectorAll('figure > svg')].map(plot => Math.round(plot.getBoundingClientRect().width)),
  scripts: document.scripts.length,
  asked: performance.getEntriesByType('resource').map(one => one.name),
})"""

# Whatever the reader has folded is printed, too. The last picture is that of paper.
ON_PAPER = "JSON.stringify([...document.querySelectorAll('td, li')].every(one => one.checkVisibility()))"


def high(end: int) -> int:
    """Moves a file descriptor above those that have a meaning."""
    moved = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(end)
    return moved


class Browser:
    """A running Chromium with one page."""

    def __init__(self, program: Path, profile: str):
        env = dict(os.environ, HOME=profile)
        shared = program.parent / "lib"
        if shared.is_dir():
            # The pinned one comes with its libraries and fonts, so that every machine shows the same.
            fonts = Path(profile, "fonts.conf")
            fonts.write_text(f'<?xml version="1.0"?>\n<fontconfig><dir>{program.parent / "fonts"}</dir>'
                             f"<cachedir>{profile}</cachedir></fontconfig>\n", encoding="utf-8")
            env |= {"LD_LIBRARY_PATH": str(shared), "FONTCONFIG_FILE": str(fonts)}
        # The protocol is spoken on the file descriptors 3 and 4, so ours are out of their way.
        to_it, ours, theirs, from_it = (high(end) for end in (*os.pipe(), *os.pipe()))
        self.said = open(Path(profile, "said"), "w+b")
        self.process = subprocess.Popen([str(program), *FLAGS, f"--user-data-dir={profile}", "about:blank"], env=env, pass_fds=(3, 4),
                                        preexec_fn=lambda: (os.dup2(to_it, 3), os.dup2(from_it, 4)),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.said)
        os.close(to_it)
        os.close(from_it)
        self.ours, self.theirs = ours, open(theirs, "rb", buffering=0)
        self.number, self.begun, self.session, self.requests = 0, b"", None, []

    def message(self) -> dict:
        """Returns the next message."""
        while b"\0" not in self.begun:
            more = self.theirs.read(1 << 16)
            if not more:
                self.said.seek(0)
                raise SystemExit(f"chromium ended: {self.said.read().decode(errors='replace')[-2000:]}")
            self.begun += more
        one, self.begun = self.begun.split(b"\0", 1)
        message = json.loads(one)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        return message

    def call(self, method: str, **params) -> dict:
        """Calls a method and returns its result."""
        self.number += 1
        call = {"id": self.number, "method": method, "params": params}
        if self.session:
            call["sessionId"] = self.session
        os.write(self.ours, json.dumps(call).encode() + b"\0")
        while (message := self.message()).get("id") != self.number:
            pass
        if "error" in message:
            raise SystemExit(f"{method}: {message['error']}")
        return message["result"]

    def open(self, page: Path) -> None:
        """Opens a page and waits until it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=page.resolve().as_uri())
        while self.message().get("method") != "Page.loadEventFired":
            pass

    def picture(self, media: str, scheme: str) -> bytes:
        """Returns a picture of the page for this medium and colour scheme."""
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"])


def colours(png: bytes) -> dict:
    """Returns the number of colours of a picture, and the colour of its corner."""
    at, packed = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        chunk = png[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, form = struct.unpack(">IIBB", chunk[:10])
            assert depth == 8 and form in (2, 6), "Chromium writes 8 bits of red, green and blue"
        elif kind == b"IDAT":
            packed += chunk
        at += 12 + length
    size = 3 if form == 2 else 4
    raw, line, seen, corner = zlib.decompress(packed), bytearray(width * size), set(), None
    for row in range(height):
        start = row * (width * size + 1)
        how, now = raw[start], bytearray(raw[start + 1:start + 1 + width * size])
        for i in range(len(now)):
            left = now[i - size] if i >= size else 0
            above, corner_of = line[i], line[i - size] if i >= size else 0
            if how == 1:
                now[i] = (now[i] + left) & 255
            elif how == 2:
                now[i] = (now[i] + above) & 255
            elif how == 3:
                now[i] = (now[i] + (left + above) // 2) & 255
            elif how == 4:
                p = left + above - corner_of
                by = min((abs(p - left), 0, left), (abs(p - above), 1, above), (abs(p - corner_of), 2, corner_of))
                now[i] = (now[i] + by[2]) & 255
        line = now
        corner = corner or list(now[:3])
        seen.update(bytes(now[i:i + 3]) for i in range(0, len(now), size))
    return {"colours": len(seen), "corner": corner}


def too_long(_signal, _frame) -> None:
    raise SystemExit(f"chromium did not answer for {PATIENCE} s")


def main(page: str, folder: str) -> int:
    program = tools.chromium()
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(PATIENCE)
    with tempfile.TemporaryDirectory(prefix="poolwright-browser-", ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            browser.open(Path(page))
            told = json.loads(browser.call("Runtime.evaluate", expression=READ)["result"]["value"])
            told["pictures"] = {}
            for name, media, scheme in [("light", "screen", "light"), ("dark", "screen", "dark"), ("print", "print", "light")]:
                png = browser.picture(media, scheme)
                Path(folder, f"{name}.png").write_bytes(png)
                told["pictures"][name] = colours(png)
            told["whole_on_paper"] = json.loads(browser.call("Runtime.evaluate", expression=ON_PAPER)["result"]["value"])
            told["asked"] += [url for url in browser.requests if url != Path(page).resolve().as_uri()]
            print(json.dumps(told))
        finally:
            browser.process.kill()
            browser.process.wait()
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        sys.exit(main(*sys.argv[1:]))
    except tools.Missing as reason:
        sys.exit(f"error: {reason}")
