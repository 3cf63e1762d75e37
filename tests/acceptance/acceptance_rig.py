"""Servers as users start them, and clients in environments of their own."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from asr import transcribe, word_error_rate
from playhead.codecs.wav import read_wav

ROOT = Path(__file__).resolve().parent.parent.parent
ENVIRONMENTS = Path(os.environ.get("PLAYHEAD_ACCEPTANCE", ROOT / "build" / "acceptance"))
CLIENTS = Path(__file__).resolve().parent / "clients"
OWN = ""
"""The environment that the tests themselves run in."""
CLIENT_SECONDS = 90
"""More than any client takes: two turns of some 8 s, each as long as it lasts."""
TEXT = (
    "The quick brown fox jumps over the lazy dog. It was a bright cold day in April, and the "
    "clocks were striking thirteen."
)


@dataclass(frozen=True)
class Served:
    """Where a server is: ``http://host:port`` of its two listeners, https with a certificate."""

    sessions: str
    api: str

    def load(self) -> dict[str, Any]:
        """What ``/readyz`` tells."""
        with urllib.request.urlopen(self.sessions + "/readyz", timeout=5) as response:
            told: dict[str, Any] = json.load(response)["load"]
            return told

    def idle_within(self, seconds: float) -> bool:
        """Whether nothing is spoken any more before ``seconds`` are over."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.load()["utterances"] == 0:
                return True
            time.sleep(0.02)
        return False


@contextlib.contextmanager
def serve(*flags: str, **variables: str) -> Iterator[Served]:
    """``playhead serve`` with the bundled voice, on free ports."""
    command = [Path(sys.executable).with_name("playhead"), "serve", "--port", "0", *flags]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"} | variables
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,  # what interrupts a client must not reach its server
    ) as process:
        assert process.stdout is not None
        lines = process.stdout.readline() + process.stdout.readline()
        found = re.findall(r"https?://[\w.\[\]:]+:\d+", lines)
        try:
            assert len(found) == 2, f"no two addresses in {lines!r}"
            yield Served(*found)
        finally:
            process.terminate()
            process.terminate()
            process.stdout.read()


@dataclass
class Result:
    """What a client script printed, and the audio that it wrote."""

    told: dict[str, Any]
    audio: Path


def python_of(environment: str) -> Path:
    """The interpreter of ``environment``; skips where that has not been installed."""
    if environment == OWN:
        return Path(sys.executable)
    python = ENVIRONMENTS / environment / "bin" / "python"
    if not python.exists():
        pytest.skip(f"scripts/acceptance installs the environment {environment}")
    return python


def right(result: Result, text: str = TEXT, pieces: int = 4) -> None:
    """The speech is what was written, and came in at least so many pieces."""
    pcm, rate = read_wav(result.audio)
    assert word_error_rate(text, transcribe(pcm, rate)) <= 0.1
    assert result.told["pieces"] >= pieces


def streamed(result: Result, requests: int = 1) -> None:
    """It came while it was made: that runs about 2 s ahead of the listener of each request."""
    told = result.told
    assert told["last"] - told["first"] > 0.5 * (told["seconds"] - 2.5 * requests) > 0, told


def timed(words: list[Any], text: str = TEXT) -> None:
    """Times go up, and the words are those of the text, in order."""
    times = [start for _, start in words]
    assert times == sorted(times), words
    plain = re.findall(r"\w+", " ".join(word for word, _ in words).lower())
    assert plain == re.findall(r"\w+", text.lower())


def run_client(
    environment: str, script: str, *args: str, out: Path, text: str = TEXT, **variables: str
) -> Result:
    """Run a client in ``environment``; skips where that has not been installed."""
    python = python_of(environment)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    names = {
        name if name.isupper() else f"PLAYHEAD_{name.upper()}": value
        for name, value in variables.items()
    }
    done = subprocess.run(
        [python, CLIENTS / script, *args],
        env=kept | names | {"PLAYHEAD_OUT": str(out), "PLAYHEAD_TEXT": text},
        capture_output=True,
        text=True,
        timeout=CLIENT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return Result(json.loads(done.stdout.strip().splitlines()[-1]), out)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of our own for 127.0.0.1, and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key
