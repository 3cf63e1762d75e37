"""The page in headless Firefox, by hand (`firefox.py`; needs the package firefox-esr).

Speaks a sine through the scripted server and says whether what left the audio graph is one sine,
what was reported, and how fast an interruption silences it. Prints one JSON object; exit status 1
when something is not as it should be. Driven through WebDriver BiDi, which Firefox has built in.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from stub_server import AMPLITUDE, HZ, RATE, Script, StubServer
from websockets.asyncio.client import ClientConnection, connect

PREFERENCES = """
user_pref("media.autoplay.default", 0);
user_pref("media.autoplay.blocking_policy", 0);
user_pref("media.autoplay.block-webaudio", false);
user_pref("browser.shell.checkDefaultBrowser", false);
"""
WATCH = """() => {
  window.positions = [];
  window.captured = [];
  window.complaints = [];
  window.addEventListener('error', (event) => complaints.push(event.message));
  playhead.addEventListener('playback', ({ detail }) => positions.push(detail.position));
  playhead.player.tap((pcm) => captured.push(...pcm));
}"""
SPEAK = """(text) => {
  positions.length = captured.length = 0;
  document.querySelector('#text').value = text;
  document.querySelector('#form').requestSubmit();
}"""
OFFERED = """() => [...document.querySelector('#codec').options]
  .filter((option) => !option.disabled).map((option) => option.value)"""
BARGE_IN = """() => {
  const utterance = playhead.current;
  const consumed = utterance.samples - playhead.depth(utterance) * 24000;
  document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
  return consumed;
}"""


class Firefox:
    """One tab."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._count = 0
        self._tab = ""

    async def call(self, method: str, **params: Any) -> Any:
        self._count += 1
        command = {"id": self._count, "method": method, "params": params}
        await self._socket.send(json.dumps(command))
        while True:
            answer = json.loads(await self._socket.recv())
            if answer.get("id") == self._count:
                assert answer["type"] == "success", answer
                return answer["result"]

    async def open(self, url: str) -> None:
        await self.call("session.new", capabilities={})
        tree = await self.call("browsingContext.getTree")
        self._tab = tree["contexts"][0]["context"]
        await self.call("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    async def click(self) -> None:
        """Anywhere: browsers want a gesture before they let sound out."""
        point = {"type": "pointerMove", "x": 5, "y": 5}
        actions = [point, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        pointer = {"type": "pointer", "id": "mouse", "actions": actions}
        await self.call("input.performActions", context=self._tab, actions=[pointer])

    async def js(self, function: str, *arguments: str) -> Any:
        """The JSON of what ``function`` gives."""
        found = await self.call(
            "script.callFunction",
            functionDeclaration=f"(...a) => JSON.stringify(({function})(...a) ?? null)",
            arguments=[{"type": "string", "value": value} for value in arguments],
            target={"context": self._tab},
            awaitPromise=True,
        )
        assert found["type"] == "success", found
        return json.loads(found["result"]["value"])

    async def until(self, expression: str) -> None:
        for _ in range(600):
            if await self.js(f"() => {expression}"):
                return
            await asyncio.sleep(0.05)
        status = await self.js("() => document.querySelector('#status').textContent")
        raise TimeoutError(f"{expression}; the page says {status!r}")


def loud(pcm: Any) -> Any:
    where = np.flatnonzero(np.abs(pcm) > 1e-4)
    return pcm[where[0] : where[-1] + 1]


def sine_error(pcm: Any, rate: int) -> float:
    """Largest distance from one unbroken sine."""
    inner = loud(pcm)[rate // 500 : -rate // 500]
    turn = 2 * np.pi * HZ * np.arange(len(inner)) / rate
    basis = np.stack([np.sin(turn), np.cos(turn)], axis=1)
    fit = np.linalg.lstsq(basis, inner, rcond=None)[0]
    return float(np.abs(inner - basis @ fit).max() / AMPLITUDE)


async def visit(firefox: Firefox, server: StubServer) -> dict[str, Any]:
    await firefox.open(server.url)
    await firefox.until("document.querySelector('#link').dataset.state === 'open'")
    await firefox.js(WATCH)
    rate = await firefox.js("() => playhead.player.outputRate")
    server.script = Script(samples=48_000, head=9_600, chunk=480, burst=90)
    await firefox.js(SPEAK, "one two three four five six seven eight nine ten")
    await firefox.click()
    await firefox.until("document.querySelector('#status').textContent === 'Finished.'")
    await asyncio.sleep(0.3)
    last = await firefox.js("() => positions.filter((p) => p.epoch === 1).at(-1)")
    pcm = np.array(await firefox.js("() => captured"))
    lit = await firefox.js("() => document.querySelectorAll('#said .heard').length")
    server.script = Script(samples=120_000, burst=90)
    await firefox.js(SPEAK, "one two three four five six seven eight nine ten")
    await firefox.until("positions.some((p) => p.epoch === 2 && p.consumed > 30000)")
    consumed = await firefox.js(BARGE_IN)
    await firefox.until("document.querySelector('#status').textContent.startsWith('Interr')")
    await asyncio.sleep(0.5)
    cut = len(loud(np.array(await firefox.js("() => captured")))) * RATE / rate - consumed
    return {
        "browser": (await firefox.js("() => navigator.userAgent")),
        "output_rate": rate,
        "last": {key: last[key] for key in ("state", "received", "consumed", "underruns")},
        "seconds_rendered": round(len(loud(pcm)) / rate, 4),
        "sine_error": round(sine_error(pcm, rate), 5),
        "words_lit": lit,
        "silent_after_ms": round(1000 * cut / RATE, 1),
        "codecs": await firefox.js(OFFERED),
        "reports": len(server.of("report")),
        "complaints": await firefox.js("() => complaints"),
        "scrolls_sideways": await firefox.js(
            "() => document.documentElement.scrollWidth > innerWidth"
        ),
    }


def judged(found: dict[str, Any]) -> bool:
    expected = {"state": "drained", "received": 48_000, "consumed": 48_000, "underruns": 0}
    good = found["last"] == expected and found["sine_error"] < 4e-3 and found["words_lit"] == 10
    return good and found["silent_after_ms"] < 50 and not found["complaints"]


async def drive(port: int) -> dict[str, Any]:
    for _ in range(100):
        try:
            socket = await connect(f"ws://127.0.0.1:{port}/session", max_size=None)
            break
        except OSError:
            await asyncio.sleep(0.2)
    else:
        raise TimeoutError("Firefox does not answer")
    async with socket:
        with StubServer() as server:
            return await visit(Firefox(socket), server)


def main() -> int:
    port = 9333
    with tempfile.TemporaryDirectory() as profile:
        (Path(profile) / "user.js").write_text(PREFERENCES)
        command = ["firefox-esr", "--headless", "--no-remote", "--profile", profile]
        command += ["--remote-debugging-port", str(port)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as browser:
            try:
                found = asyncio.run(drive(port))
            finally:
                browser.terminate()
    print(json.dumps(found, indent=1))
    return 0 if judged(found) else 1


if __name__ == "__main__":
    sys.exit(main())
