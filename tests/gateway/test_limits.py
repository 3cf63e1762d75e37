"""The limits are those that docs/protocol.md promises, and clients are told of them."""

from playhead.gateway.limits import Limits


def test_public_limits_are_the_session_s_own_in_wire_units() -> None:
    limits = Limits(text_message=7, outbox_seconds=1.5)
    assert limits.public()["text_message"] == 7
    assert limits.public()["outbox_audio"] == 1_500
    assert limits.public()["message_bytes"] == 64 * 1024


def test_promised_numbers() -> None:
    limits = Limits()
    assert (limits.text_message, limits.text_waiting) == (2_000, 8_000)
    assert limits.text_utterance == 20_000
    assert (limits.text_rate, limits.text_burst) == (400.0, 1_000.0)
    assert (limits.open_rate, limits.open_burst) == (5.0, 20.0)
    assert (limits.hello_within, limits.grace, limits.tombstone) == (5.0, 30.0, 600.0)
    assert (limits.outbox_bytes, limits.outbox_seconds) == (2 * 1024 * 1024, 120.0)
