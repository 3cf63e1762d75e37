"""The message that opens a session."""

from collections import Counter

from playhead.gateway import messages as m
from playhead.gateway.limits import Limits
from playhead.gateway.session_channel import Channel
from playhead.gateway.session_ready import ready
from playhead.gateway.session_speech import Speech
from session_kit import facts, open_format


def test_ready_tells_what_the_session_is() -> None:
    known = facts(Limits(grace=7.0))
    speech = Speech(
        known, Channel(Limits()), Counter(), m.Hello(), open_format("pcm_s16le", 8_000), "carol"
    )
    told = ready(known, speech, session="s", token="t", resumed=True, received=5, now=2.0)
    assert (told.session, told.token, told.resumed, told.received) == ("s", "t", True, 5)
    assert (told.codec, told.sample_rate, told.voice, told.epoch) == ("pcm_s16le", 8_000, "ada", 0)
    assert (told.grace, told.time) == (7_000.0, 2_000.0)
    assert told.limits == known.limits.public()
