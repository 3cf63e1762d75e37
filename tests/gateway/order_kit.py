"""Messages of a session, for the writers of responses."""

from playhead.engine.types import Lane
from playhead.gateway.messages import Audio, Ready, SpokenWord


def ready(**fields: object) -> Ready:
    known = {
        **{"session": "s", "token": "t", "resumed": False, "sample_rate": 24_000, "epoch": 0},
        **{"pre_skip": 0, "packet_samples": 0, "voice": "v", "voices": ("v",), "formats": ()},
        **{"limits": {}, "grace": 0.0, "time": 0.0, "model": "m", "server": "s"},
        "codec": "pcm_s16le",
    }
    return Ready(**{**known, **fields})  # type: ignore[arg-type]


def audio(
    data: bytes, samples: int, *words: tuple[str, int, int], at: int = 0, final: bool = False
) -> Audio:
    """``words``: (text, sample, first character)."""
    return Audio(
        seq=1,
        epoch=1,
        index=0,
        position=at,
        samples=samples,
        words=tuple(
            SpokenWord(text=text, position=start, char_start=at, char_end=at + len(text))
            for text, start, at in words
        ),
        lane=Lane.URGENT,
        slack=None,
        depth=0.0,
        sent=0.0,
        final=final,
        data=data,
    )
