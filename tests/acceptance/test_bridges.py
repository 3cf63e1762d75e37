"""What stands between this server and a client that does not call it itself."""

import json
import urllib.request
from pathlib import Path

import pytest
from acceptance_rig import Served, python_of, right, run_client, serve, streamed
from playhead.gateway.access_file import edit
from playhead.gateway.access_keys import KeyRing, new_key

pytestmark = [pytest.mark.slow, pytest.mark.acceptance]

TOKEN = "12345"


def ticket(served: Served, key: str) -> str:
    """What an application asks for before it answers Twilio."""
    headers = {"Authorization": f"Bearer {key}"}
    asked = urllib.request.Request(served.sessions + "/v1/tickets", method="POST", headers=headers)
    with urllib.request.urlopen(asked, timeout=5) as response:
        return str(json.load(response)["ticket"])


def test_twilio_markup_and_signature_of_its_own_library(tmp_path: Path) -> None:
    python_of("twilio")
    text, key = new_key("the application", 1.0)
    with edit(tmp_path / "keys.json") as put:
        put(KeyRing((key,)))
    with serve("--keys", str(tmp_path / "keys.json"), PLAYHEAD_TWILIO_TOKEN=TOKEN) as served:
        result = run_client(
            "twilio",
            "twilio_call.py",
            out=tmp_path / "speech.wav",
            ws=served.sessions.replace("http", "ws", 1),
            token=TOKEN,
            tickets=" ".join(ticket(served, text) for _ in range(3)),
        )
    right(result)
    streamed(result)
    told = result.told
    assert told["codes"] == [1000, 1000, 1008], "the third call's ticket had been used"
    assert told["marks"] >= told["seconds"] / 0.2
    assert told["other"] > 4_000
    assert told["forged"] == 403


def test_home_assistant_s_bridge(tmp_path: Path) -> None:
    python_of("wyoming")
    with serve() as served:
        result = run_client(
            "wyoming", "wyoming_speech.py", out=tmp_path / "speech.wav", http=served.api
        )
    right(result)
    streamed(result)
    assert result.told["over"]
    assert result.told["voices"]
