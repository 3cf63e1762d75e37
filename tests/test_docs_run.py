"""Documented commands are carried out, where that is cheap and touches nothing of this machine's.

The rest is parsed alone (test_docs), for the reasons in ``ONLY_PARSED``.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from live import serve_process
from playhead.gateway import cli
from test_docs import COMMANDS, ROOT, words_of

pytestmark = pytest.mark.slow

SECONDS = 180
"""For one command. All of them together take about ten on a machine with nothing else to do."""

ONLY_PARSED = {
    r"docker": "an engine would build images; tests/deploy lets it read the files where it is",
    r"kubectl|promtool": "asks a cluster; tests/deploy checks the same files by their schemas",
    r"pip install": "tests/test_packaging installs",
    r"python (?!bench/|-m playhead)|wyoming": "somebody else's program: make acceptance runs those",
    r"playhead .*(qwen3|--language|--gpus)": "needs an accelerator and weights: tests/gpu",
    r"playhead .*--(workers|gateways)": "tests/gateway/test_supervise starts several processes",
    r"playhead engine|playhead serve .*--engine": "tests of the remote engine start both halves",
    r"playhead .*\|": "a choice of three, not a command",
    r"playhead bench (search|urgency|selfcheck) ": "minutes of load: tests/loadgen runs short ones",
    r"playhead bench .*rivals": "needs other projects' servers, a GPU and weights",
    r"playhead bench selfcheck": "tests/loadgen/test_selfcheck runs it",
}


@dataclass
class Bench:
    """Where commands are carried out: a folder of their own and a server that runs."""

    folder: Path
    url: str

    def playhead(self, *words: str) -> str:
        """What the installed program prints. It must succeed."""
        return self.program(str(Path(sys.executable).with_name("playhead")), *words)

    def program(self, *words: str, good: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(
            words,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode in good, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout


def helped(bench: Bench, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The name of a command, not a call: its help."""
    with pytest.raises(SystemExit) as left:
        cli.main([*words[1:], "--help"])
    assert left.value.code == 0
    assert f"usage: playhead {words[1]}" in capsys.readouterr().out


def doctor(bench: Bench, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It may find faults of this machine, and says which."""
    assert cli.main(words[1:], {"PLAYHEAD_PORT": "0"}) in (0, 1)
    assert re.search(r"^(Ready to serve|\d+ of \d+ checks)", capsys.readouterr().out, re.MULTILINE)


def keys(bench: Bench, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """On a file of the test's. Commands come sorted: add, list, revoke."""
    file = bench.folder / "keys.json"
    given = [str(file) if word.startswith("/etc/") else word for word in words[1:]]
    if "--keys" not in given:
        given += ["--keys", str(file)]
    if "ID" in given:
        cli.main(["keys", "list", "--keys", str(file)], {})
        given[given.index("ID")] = capsys.readouterr().out.splitlines()[-1].split()[0]
    assert cli.main(given, {}) == 0
    assert capsys.readouterr().out
    assert file.exists()


def simulate(bench: Bench, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A second of it; a day, and a small crowd."""
    short = ["--listeners", "1000", "--days", "1"] if "--fleet" in words else ["--seconds", "1"]
    assert cli.main([*words[1:], *short]) == 0
    assert capsys.readouterr().out.count("\n") > 2


def serve(bench: Bench, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """On this machine alone, on a free port, with a certificate and a key file of the test's."""
    authority = trustme.CA()
    made = authority.issue_cert("localhost")
    made.private_key_pem.write_to_path(bench.folder / "key.pem")
    made.cert_chain_pems[0].write_to_path(bench.folder / "cert.pem")
    cli.main(["keys", "add", "--name", "shop", "--keys", str(bench.folder / "served.json")], {})
    places = {
        "0.0.0.0": "127.0.0.1",
        "cert.pem": str(bench.folder / "cert.pem"),
        "key.pem": str(bench.folder / "key.pem"),
        "/etc/playhead/keys.json": str(bench.folder / "served.json"),
    }
    with serve_process(*(places.get(word, word) for word in words[2:])) as url:
        assert url.startswith("wss:" if "--tls-cert" in words else "ws:")


def say(bench: Bench, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    bench.playhead(*words[1:], "--url", bench.url)
    assert (bench.folder / words[words.index("--out") + 1]).stat().st_size > 24_000


def load(bench: Bench, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One rate of those given, and a second of it. Busy machines miss the bounds: status 1."""
    short = ["--rate", "2", "--seeds", "0", "--warmup", "0", "--window", "1", "--out", "bench-out"]
    program = str(Path(sys.executable).with_name("playhead"))
    out = bench.program(program, *words[1:], *short, "--url", bench.url, good=(0, 1))
    assert "TTFA p50" in out


def report(bench: Bench, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Of what a documented run left."""
    program = str(Path(sys.executable).with_name("playhead"))
    assert "TTFA p50" in bench.program(program, *words[1:], good=(0, 1))


def resolved(bench: Bench, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What make would do; a recipe that cannot be put together fails here."""
    done = ["make", "--dry-run", "-C", str(ROOT), *words[1:]]
    assert bench.program(*done)


def own_program(bench: Bench, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A module is run; of a script of bench/, its help."""
    if words[1] == "-m":
        bench.program(sys.executable, *words[1:])
    else:
        assert "usage: " in bench.program(sys.executable, str(ROOT / words[1]), "--help")


Run = Callable[[Bench, list[str], pytest.CaptureFixture[str]], None]
CARRIED_OUT: dict[str, Run] = {
    r"playhead doctor": doctor,
    r"playhead keys \w": keys,
    r"playhead simulate": simulate,
    r"playhead( \w+)? [\w-]+$|playhead \w+ --help$": helped,
    r"playhead serve ": serve,
    r"playhead say ": say,
    r"playhead bench run ": load,
    r"playhead bench report ": report,
    r"make ": resolved,
    r"python ": own_program,
}


def carried_out() -> dict[str, tuple[list[str], Run]]:
    """Each documented command that is carried out, by its text, and how."""
    found: dict[str, tuple[list[str], Run]] = {}
    for _, line in COMMANDS:
        words = [re.sub(r"^\S*/(?=(playhead|pip|python)$)", "", word) for word in words_of(line)]
        text = " ".join(words)
        if any(re.match(pattern, text) for pattern in ONLY_PARSED):
            continue
        for pattern, run in CARRIED_OUT.items():
            if re.match(pattern, text):
                found[text] = ([word for word in words if word != "--help"], run)
                break
    return found


def test_documented_commands_do_what_they_are_there_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = carried_out()
    done = {run for _, run in commands.values()}
    assert done == set(CARRIED_OUT.values()), "a kind that no document shows any more"
    with serve_process() as url:
        bench = Bench(tmp_path, url)
        for words, run in sorted(commands.values(), key=lambda command: command[1] is report):
            run(bench, words, capsys)  # reports last: of what a run left


def test_every_documented_command_is_carried_out_or_has_a_reason_not_to_be() -> None:
    for _, line in COMMANDS:
        text = " ".join(re.sub(r"^\S*/(?=(playhead|pip|python)$)", "", w) for w in words_of(line))
        assert any(re.match(pattern, text) for pattern in (*ONLY_PARSED, *CARRIED_OUT)), line


def test_every_reason_not_to_run_a_command_is_needed() -> None:
    lines = [re.sub(r"\S*/(?=(playhead|pip|python)\b)", "", line) for _, line in COMMANDS]
    unused = [p for p in ONLY_PARSED if not any(re.match(p, line) for line in lines)]
    assert set(unused) <= {r"playhead engine|playhead serve .*--engine"}
