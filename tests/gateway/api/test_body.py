"""Audio messages as the bytes of a response."""

import base64
import json

import numpy as np
import pytest
from playhead.codecs.mp3 import Mp3Writer
from playhead.codecs.wav import endless_header
from playhead.engine.types import Lane
from playhead.gateway.api.body import FORMATS, audio_event, done_event, event
from playhead.gateway.messages import Audio, Ready


def ready(**fields: object) -> Ready:
    known = {
        **{"session": "s", "token": "t", "resumed": False, "codec": "opus", "sample_rate": 24_000},
        **{"pre_skip": 156, "packet_samples": 480, "voice": "v", "voices": ("v",), "formats": ()},
        **{"limits": {}, "grace": 0.0, "epoch": 0, "time": 0.0, "model": "m", "server": "s"},
    }
    return Ready(**{**known, **fields})  # type: ignore[arg-type]


def audio(
    data: bytes, samples: int, *, final: bool = False, packets: tuple[int, ...] | None = None
) -> Audio:
    return Audio(
        seq=1,
        epoch=1,
        index=0,
        position=0,
        samples=samples,
        words=(),
        lane=Lane.URGENT,
        slack=None,
        depth=0.0,
        sent=0.0,
        final=final,
        data=data,
        packets=packets,
    )


def test_pcm_is_passed_through() -> None:
    body = FORMATS["pcm"].open(ready())
    assert body.begin() + body.add(audio(b"abcd", 2)) == b"abcd"


def test_wav_begins_with_its_header() -> None:
    body = FORMATS["wav"].open(ready(codec="pcm_s16le"))
    assert body.begin() == endless_header(24_000)
    assert body.add(audio(b"abcd", 2)) == b"abcd"


def test_mp3_is_flushed_by_the_final_message() -> None:
    pcm = (np.sin(np.arange(24_000) / 20) * 9000).astype("<i2").tobytes()
    body = FORMATS["mp3"].open(ready())
    made = body.begin() + body.add(audio(pcm, 24_000)) + body.add(audio(b"", 0, final=True))
    writer = Mp3Writer(24_000)
    assert made == writer.write(pcm) + writer.finish()
    assert FORMATS["mp3"].heavy


def test_opus_ends_where_the_speech_does() -> None:
    body = FORMATS["opus"].open(ready())
    assert body.begin().startswith(b"OggS")
    first = body.add(audio(b"xy", 804, packets=(1, 1)))
    last = body.add(audio(b"z", 96, final=True, packets=(1,)))
    assert int.from_bytes(first[6:14], "little") == 2 * 960
    assert (last[5], int.from_bytes(last[6:14], "little")) == (4, 312 + 2 * 900)


def test_events_are_json_behind_data() -> None:
    assert event({"a": 1}) == b'data: {"a":1}\n\n'
    assert audio_event(b"") == b""
    told = json.loads(audio_event(b"\x01\x02")[6:])
    assert base64.b64decode(told["audio"]) == b"\x01\x02"


@pytest.mark.parametrize(("samples", "tokens"), [(0, 0), (1, 1), (1200, 1), (1201, 2)])
def test_usage_counts_characters_and_stretches_of_50_ms(samples: int, tokens: int) -> None:
    told = json.loads(done_event(7, samples)[6:])["usage"]
    assert told == {"input_tokens": 7, "output_tokens": tokens, "total_tokens": 7 + tokens}
