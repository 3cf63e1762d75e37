"""VoxServe's own endpoint: ``POST /generate`` with a form, answered with a streamed WAV file.

By its public source (vox_serve/launch.py, 2026-02): fields ``text`` and ``streaming``, and
``speaker`` for models with named voices (docs/usage/qwen3-tts.md); 24 kHz, 16-bit, mono.
"""

from urllib.parse import urlencode

from playhead.loadgen.habits import Caller
from playhead.loadgen.http_speech import Dialect, SpeechRequest, open_request
from playhead.loadgen.plan import Plan

PATH = "/generate"


def _body(plan: Plan, text: str) -> tuple[str, bytes]:
    fields = {"text": text, "streaming": "true"}
    if plan.voice:
        fields["speaker"] = plan.voice
    return "application/x-www-form-urlencoded", urlencode(fields).encode()


DIALECT = Dialect(_body, wav=True)


async def open_generate(url: str, plan: Plan, caller: Caller, number: int) -> SpeechRequest:
    """Connect only. Raises :class:`~playhead.loadgen.session.SessionError`."""
    return await open_request(url, plan, DIALECT, caller, number)
