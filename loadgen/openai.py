"""A target of another kind: ``POST /v1/audio/speech`` with a streamed PCM answer, the shape that
OpenAI's speech API gave to many servers (vLLM-Omni, SGLang-Omni, VoxServe's later versions)."""

import json

from playhead.loadgen.habits import Caller
from playhead.loadgen.http_speech import Dialect, SpeechRequest, open_request
from playhead.loadgen.plan import Plan

PATH = "/v1/audio/speech"


def _body(plan: Plan, text: str) -> tuple[str, bytes]:
    fields = {
        "model": plan.model or "tts-1",
        "input": text,
        "voice": plan.voice or "default",
        "response_format": "pcm",
        "stream": True,
    }
    return "application/json", json.dumps(fields).encode()


DIALECT = Dialect(_body, wav=False)


async def open_speech(url: str, plan: Plan, caller: Caller, number: int) -> SpeechRequest:
    """Connect only. Raises :class:`~playhead.loadgen.session.SessionError`."""
    return await open_request(url, plan, DIALECT, caller, number)
