"""Other vendors' speech over HTTP, end to end over a fake engine."""

import base64
import json
from typing import Any

import pytest
import uvloop
from api_kit import ApiClient, Asked, api
from fake_engine import CHUNK
from harness import eventually
from machine import AT_ONCE

VOICE = "21m00Tcm4TlvDq8ikWAM"
ELEVEN = f"/v1/text-to-speech/{VOICE}"
CARTESIA = {
    "model_id": "sonic-3",
    "voice": "a0e99841-438c-4a64-b679-ae501e7d6091",
    "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000},
}


async def post(client: ApiClient, path: str, **fields: Any) -> Asked:
    asked = await client.connect()
    await asked.begin("POST", path, json.dumps(fields).encode())
    return asked


SPOKEN = [
    ("/tts/bytes", {**CARTESIA, "transcript": "one two three"}),
    (ELEVEN + "?output_format=pcm_24000", {"text": "one two three"}),
    (ELEVEN + "/stream?output_format=pcm_24000", {"text": "one two three"}),
    ("/v1/speak?encoding=linear16&container=none", {"text": "one two three"}),
]


@pytest.mark.parametrize(("path", "fields"), SPOKEN)
def test_sound_comes_as_it_is_made(path: str, fields: dict[str, Any]) -> None:
    async def main() -> None:
        async with api() as client:
            asked = await post(client, path, **fields)
            assert asked.response.status_code == 200
            assert asked.header["content-type"] in ("audio/pcm", "audio/l16")
            assert len(await asked.rest()) == 3 * CHUNK * 2
            assert len(asked.pieces) > 1

    uvloop.run(main())


def test_events_and_lines() -> None:
    async def main() -> None:
        async with api() as client:
            asked = await post(
                client, "/tts/sse", **CARTESIA, transcript="one two three", add_timestamps=True
            )
            body = (await asked.rest()).decode()
            assert asked.header["content-type"].startswith("text/event-stream")
            told = [json.loads(line[6:]) for line in body.split("\n") if line.startswith("data: ")]
            assert told[-1]["type"] == "done"
            sound = [base64.b64decode(event["data"]) for event in told if event["type"] == "chunk"]
            assert len(b"".join(sound)) == 3 * CHUNK * 2
            asked = await post(
                client, ELEVEN + "/stream/with-timestamps?output_format=pcm_24000", text="one two"
            )
            lines = [json.loads(line) for line in (await asked.rest()).splitlines()]
            sound = [base64.b64decode(line["audio_base64"]) for line in lines]
            assert len(b"".join(sound)) == 2 * CHUNK * 2
            asked = await post(
                client, ELEVEN + "/with-timestamps?output_format=pcm_24000", text="one two"
            )
            told = json.loads(await asked.rest())
            assert len(base64.b64decode(told["audio_base64"])) == 2 * CHUNK * 2

    uvloop.run(main())


def test_a_client_that_leaves_frees_the_engine() -> None:
    async def main() -> None:
        async with api() as client:
            for path, fields in SPOKEN:
                name = "transcript" if "transcript" in fields else "text"
                asked = await post(client, path, **{**fields, name: "!endless talk"})
                await asked.piece()
                assert client.engine.live
                asked.leave()
                await eventually(lambda: not client.engine.live, AT_ONCE)

    uvloop.run(main())


def test_faults_are_told_as_the_vendor_tells_them() -> None:
    async def main() -> None:
        async with api() as client:
            asked = await post(client, "/tts/bytes", **{**CARTESIA, "voice": "nobody"})
            told = json.loads(await asked.rest())
            assert asked.response.status_code == 404
            assert set(told) == {"error_code", "title", "message", "request_id"}
            assert "unknown voice" in told["message"]
            asked = await post(client, ELEVEN, text="")
            told = json.loads(await asked.rest())
            assert asked.response.status_code == 400
            assert told["detail"]["status"] == "invalid_input_message"
            asked = await post(client, "/v1/speak?model=%0d%0aX:%20%e4%bd%a0", text="Hello.")
            assert asked.response.status_code == 404
            assert "x" not in asked.header
            asked = await post(client, "/v1/speak", text="")
            told = json.loads(await asked.rest())
            assert asked.response.status_code == 400
            assert asked.header["dg-error"] == told["err_msg"]
            status, told = await client.get("/tts/bytes")
            assert status == 405
            assert told["error_code"] == "method_not_allowed"
            status, told = await client.get("/v1/text-to-speech/x/unknown", "POST")
            assert (status, told["detail"]["status"]) == (404, "not_found")

    uvloop.run(main())
