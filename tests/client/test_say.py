"""``playhead say`` from the command line down, against a scripted server."""

import argparse
import asyncio
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from client_stub import Peer, stub, tone
from machine import PATIENCE
from playhead.client import feed, say
from playhead.client.progress import Progress
from playhead.client.speaker import Speaker, SpeakerMissing
from playhead.client.utterance import AudioMessage
from playhead.codecs.wav import read_wav
from playhead.engine.types import Lane
from playhead.gateway import messages as m

PCM = tone(12000)


async def speak_all(peer: Peer) -> None:
    hello = await peer.greet()
    for epoch in range(1, 100):
        await peer.started(epoch)
        await peer.until(m.End)
        await peer.speak(epoch, PCM, hello)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[SimpleNamespace]:
    """The scripted server in a thread; ``peers`` are the connections it had."""
    peers: list[Peer] = []
    up, down = threading.Event(), asyncio.Event()
    state = SimpleNamespace(peers=peers, url="")
    script: Callable[[Peer], Any] = getattr(request, "param", speak_all)

    async def noting(peer: Peer) -> None:
        peers.append(peer)
        await script(peer)

    async def main() -> None:
        state.loop = asyncio.get_running_loop()
        async with stub(noting) as state.url:
            up.set()
            await down.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert up.wait(PATIENCE)
    yield state
    state.loop.call_soon_threadsafe(down.set)
    thread.join(10)


def command(*words: str) -> int:
    parser = argparse.ArgumentParser()
    say.add_arguments(parser)
    return say.run(parser.parse_args(words))


@pytest.mark.parametrize("codec", ["pcm_s16le", "pcm_f32le", "mulaw"])
def test_writes_a_wav_file(server: SimpleNamespace, tmp_path: Path, codec: str) -> None:
    out = tmp_path / "hello.wav"
    url, words = server.url, ("Hello there.", "--codec", codec, "--out", str(out))
    assert command(*words, "--url", url, "--speed", "1.25") == say.OK
    pcm, rate = read_wav(out)
    assert rate == (8000 if codec == "mulaw" else 24000)
    assert len(pcm) == len(PCM) * rate // 24000
    if codec != "mulaw":
        assert np.abs(pcm - PCM).max() < 1e-3
    assert server.peers[0].sent_text() == "Hello there."
    assert server.peers[0].got[0].speed == 1.25


def test_standard_input_is_spoken_while_it_arrives(
    server: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_end, write_end = os.pipe()
    reader = os.fdopen(read_end, "r")
    monkeypatch.setattr(sys, "stdin", reader)
    seen: list[str] = []

    def type_text() -> None:
        os.write(write_end, b"Caf")
        while not (server.peers and server.peers[0].sent_text() == "Caf"):
            pass
        os.write(write_end, "é".encode()[:1])
        os.write(write_end, "é".encode()[1:] + b"s.\n")
        os.close(write_end)
        seen.append("written")

    typist = threading.Thread(target=type_text)
    typist.start()
    out = tmp_path / "hello.wav"
    assert command("-", "--out", str(out), "--url", server.url) == say.OK
    typist.join()
    reader.close()
    assert server.peers[0].sent_text() == "Cafés.\n"
    assert not any(isinstance(message, m.Flush) for message in server.peers[0].got)
    assert len(read_wav(out)[0]) == len(PCM)


def test_wav_to_standard_output(
    server: SimpleNamespace, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert command("Hello.", "--out", "-", "--url", server.url) == say.OK
    assert capfdbinary.readouterr().out.startswith(b"RIFF")


async def half_then_silence(peer: Peer) -> None:
    await peer.greet()
    await peer.started(1)
    await peer.audio(1, 0, 0, (PCM[:4800] * 32767).astype("<i2").tobytes(), 4800)
    await peer.until(m.CloseSession)


@pytest.mark.parametrize("server", [half_then_silence], indirect=True)
def test_interrupted_file_holds_what_had_arrived(server: SimpleNamespace, tmp_path: Path) -> None:
    out = tmp_path / "hello.wav"
    code = (
        "import argparse, sys; from playhead.client import say; p = argparse.ArgumentParser();"
        "say.add_arguments(p); sys.exit(say.run(p.parse_args(sys.argv[1:])))"
    )
    words = [sys.executable, "-c", code, "Hello.", "--out", str(out), "--url", server.url]
    with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
        while not (out.exists() and out.stat().st_size > 5000):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == say.INTERRUPTED
    assert stderr == b""
    assert len(read_wav(out)[0]) == 4800


async def fail(peer: Peer) -> None:
    await peer.greet()
    await peer.started(1)
    await peer.number_and_send(
        m.Failed,
        epoch=1,
        code="unspeakable_text",
        message="nothing to say",
        expected="letters",
        heard=0,
        heard_text="",
        unheard_text="???",
    )
    await peer.until(m.CloseSession)


@pytest.mark.parametrize("server", [fail], indirect=True)
def test_server_cannot_speak_it(
    server: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("???", "--out", str(tmp_path / "x.wav"), "--url", server.url) == say.FAILED
    assert capsys.readouterr().err == (
        "playhead say: unspeakable_text: nothing to say (expected: letters)\n"
    )


def test_no_server_says_how_to_start_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x.wav"
    words = ("Hello.", "--out", str(out), "--url", "ws://127.0.0.1:9")
    assert command(*words) == say.UNREACHABLE
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "connection refused" in error
    assert "playhead serve" in error
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [(("Hello.",), "where to"), (("Hello.", "--stdin", "--out", "x.wav"), "not both")],
)
def test_wrong_usage(
    words: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*words) == say.USAGE
    assert complaint in capsys.readouterr().err


def test_codec_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("Hello.", "--out", "x.wav", "--codec", "mp3") == say.USAGE
    assert "mp3" in capsys.readouterr().err


def test_a_typed_line_is_spoken_at_once(
    server: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, follower = os.openpty()
    os.write(leader, b"Hello.\n\x04")
    monkeypatch.setattr(sys, "stdin", os.fdopen(follower, "r"))
    assert command("--out", str(tmp_path / "x.wav"), "--url", server.url) == say.OK
    os.close(leader)
    assert any(isinstance(message, m.Flush) for message in server.peers[0].got)


def test_broken_last_character_of_standard_input(
    server: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"Caf\xc3")
    os.close(write_end)
    monkeypatch.setattr(sys, "stdin", os.fdopen(read_end, "r"))
    assert command("--stdin", "--out", str(tmp_path / "x.wav"), "--url", server.url) == say.OK
    assert server.peers[0].sent_text() == "Caf\ufffd"


def test_unwritable_file(server: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("Hello.", "--out", "/nowhere/x.wav", "--url", server.url) == say.FAILED
    assert "cannot write /nowhere/x.wav: No such file" in capsys.readouterr().err


# ---------------------------------------------------------------- loudspeaker


class Device:
    """Stands in for the package sounddevice."""

    class PortAudioError(Exception):
        pass

    class OutputStream:
        latency = 0.05
        played: list[Any]

        def __init__(self, **settings: Any) -> None:
            assert settings == {"samplerate": 24000, "channels": 1, "dtype": "float32"}
            Device.OutputStream.played = []

        def start(self) -> None:
            self.played.append("start")

        def write(self, frames: Any) -> None:
            self.played.append(frames)

        def stop(self) -> None:
            self.played.append("stop")

        def close(self) -> None:
            self.played.append("close")


def test_plays(server: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", Device)
    assert command("Hello.", "--play", "--url", server.url) == say.OK
    first, *parts, stop, close = Device.OutputStream.played
    assert (first, stop, close) == ("start", "stop", "close")
    assert np.abs(np.concatenate(parts)[:, 0] - PCM).max() < 1e-3
    assert server.peers[0].got[0].playback_rate == 1.0


def test_play_without_the_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    assert command("Hello.", "--play") == say.USAGE
    assert "pip install 'playhead[play]'" in capsys.readouterr().err


def test_play_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf(Device):
        class OutputStream:
            def __init__(self, **_: Any) -> None:
                raise Device.PortAudioError("no default output")

    monkeypatch.setitem(sys.modules, "sounddevice", Deaf)
    with pytest.raises(SpeakerMissing, match="no audio device"):
        Speaker(24000)


def test_play_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "sounddevice":
                raise OSError("PortAudio library not found")

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    with pytest.raises(SpeakerMissing, match="libportaudio2"):
        Speaker(24000)


# ---------------------------------------------------------------- text and progress


@pytest.mark.parametrize(
    ("text", "room", "size"),
    [
        ("short", 10, 5),
        ("two words", 5, 4),
        ("line\nbreak here", 6, 5),
        ("unbreakable", 4, 4),
        (" x", 1, 1),
    ],
)
def test_cut(text: str, room: int, size: int) -> None:
    assert feed.cut(text, room) == size


def test_long_text_becomes_several_utterances(
    server: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "PART", 10)
    out = tmp_path / "x.wav"
    assert command("one two three four", "--out", str(out), "--url", server.url) == say.OK
    got = server.peers[0].got
    assert [x.text for x in got if isinstance(x, m.Text)] == ["one two ", "three four"]
    assert sum(isinstance(x, m.Start) for x in got) == 2
    assert len(read_wav(out)[0]) == 2 * len(PCM)


@pytest.mark.parametrize(
    ("data", "text", "rest"),
    [
        (b"plain", "plain", b""),
        ("né".encode()[:-1], "n", b"\xc3"),
        (b"bad\xffbyte", "bad\ufffdbyte", b""),
    ],
)
def test_decode(data: bytes, text: str, rest: bytes) -> None:
    assert feed.decode(data) == (text, rest)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def message(samples: int, depth: float = 0.25) -> AudioMessage:
    pcm = np.zeros(samples, np.float32)
    return AudioMessage(1, 0, 0, pcm, (), Lane.URGENT, None, depth, False)


def test_progress_on_a_terminal_is_one_line() -> None:
    terminal = Terminal()
    progress = Progress(terminal)
    progress.text_sent()
    progress.text_sent()
    progress.audio(message(12000), 24000)
    progress.audio(message(12000), 24000)
    progress.event(m.Warn(seq=1, code="unspeakable_text", message="left out", text="☃"))
    progress.finish()
    shown = terminal.getvalue()
    assert "  1.00 s received in 2 parts, first after " in shown
    assert "0.25 s ahead" in shown
    assert "\rplayhead say: left out: '☃'\n" in shown
    assert shown.endswith("\n")
    assert shown.count("\n") == 2


def test_progress_elsewhere_is_quiet() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress.text_sent()
    progress.audio(message(12000), 24000)
    progress.finish()
    assert stream.getvalue() == ""
    progress.event(m.Draining(seq=1, deadline=5000.0))
    progress.event(m.ErrorEvent(code="bad_value", message="no", expected="yes"))
    assert stream.getvalue().splitlines() == [
        "playhead say: the server shuts down in 5 s",
        "playhead say: no (expected: yes)",
    ]
