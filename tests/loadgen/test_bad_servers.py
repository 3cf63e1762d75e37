"""Servers that are not as they should be, through the command line: what a stranger reads."""

import contextlib
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import test_nari as nari
import test_openai as openai
import test_voxserve as voxserve
from playhead.gateway.cli import main
from playhead.loadgen.scripted import Script, ScriptedServer
from stub_kit import elsewhere
from test_voxserve_stream import Stub as Pieces


def bench(target: str, server: AbstractAsyncContextManager[str], out: Path) -> int:
    """One utterance."""
    with elsewhere(server) as url:
        flags = ["--rate", "2", "--arrivals", "constant", "--seeds", "0", "--warmup", "0"]
        flags += ["--window", "0.5", "--timeout", "20", "--out", str(out)]
        return main(["bench", "run", "--target", target, "--url", url, *flags])


@contextlib.asynccontextmanager
async def nobody() -> AsyncIterator[str]:
    yield "http://localhost:9"


@pytest.mark.parametrize("target", ["playhead", "openai", "voxserve", "voxserve-stream", "nari"])
def test_a_server_that_is_not_there(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(target, nobody(), tmp_path) == 2
    told = capsys.readouterr().err
    assert re.fullmatch(
        r"playhead bench: unreachable: cannot connect to \w+://localhost:9/\S+: "
        r"(Connection refused|Multiple exceptions.*)\n",
        told,
    )


def playhead(fault: str) -> AbstractAsyncContextManager[str]:
    return ScriptedServer(Script(fault=fault)).running()


def answered(*pieces: bytes) -> AbstractAsyncContextManager[str]:
    return openai.Stub(*((0.0, piece) for piece in pieces)).running()


def form(*pieces: bytes) -> AbstractAsyncContextManager[str]:
    return voxserve.Stub(*((0.0, piece) for piece in pieces)).running()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "server", "says"),
    [
        ("playhead", playhead("silence"), "silence: every sample is zero"),
        ("playhead", playhead("clock"), "clock_backwards: sent "),
        ("playhead", playhead("garbage"), "protocol: "),
        (
            "openai",
            answered(b"HTTP/1.1 401 No\r\n\r\n"),
            "refused_key: HTTP status 401: give a key with --key-from",
        ),
        (
            "voxserve-stream",
            Pieces({"start": b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"}).running(),
            "failed: http_404: HTTP status 404: is this its address, and --target what it speaks?",
        ),
        (
            "voxserve",
            form(voxserve.OK + voxserve.chunk(voxserve.head(16_000) + voxserve.SOUND)),
            "wrong_format: expected 24000 Hz, got 16000 Hz",
        ),
        (
            "nari",
            nari.Stub(nari.STARTED, nari.SOUND, nari.done(3)).running(),
            "truncated: 1 of 3 audio messages came",
        ),
    ],
)
def test_a_fault_is_named_with_what_was_wrong(
    target: str,
    server: AbstractAsyncContextManager[str],
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert bench(target, server, tmp_path) == 1, "not one utterance was without a fault"
    told = capsys.readouterr().out
    assert f"strict, 2/s: {says}" in told
    assert f"faults: 1 {says.partition(':')[0]}" in told
    assert (tmp_path / "report.html").exists()
