"""The table is complete, and says of each row what docs/protocol.md says."""

from typing import get_args

import pytest
from playhead.gateway import messages as m
from playhead.gateway.session_states import TABLE, Act, Invalid, State

MESSAGES = get_args(m.ClientMessage)
ANYTIME = {
    m.PlaybackReport: Act.REPORT,
    m.Cancel: Act.CANCEL,
    m.Pause: Act.PAUSE,
    m.ResumePlayback: Act.RELEASE,
    m.Ack: Act.ACKNOWLEDGE,
    m.Ping: Act.PONG,
    m.CloseSession: Act.CLOSE,
    m.Hello: Invalid,
}
EXPECTED = {
    State.NEW: {**dict.fromkeys(MESSAGES, Invalid), m.Hello: Act.GREET, m.CloseSession: Act.CLOSE},
    State.READY: {
        **ANYTIME,
        m.Start: Act.OPEN,
        m.Text: Act.OPEN_WITH_TEXT,
        m.Flush: Invalid,
        m.End: Invalid,
    },
    State.COMPOSING: {
        **ANYTIME,
        m.Start: Invalid,
        m.Text: Act.ADD_TEXT,
        m.Flush: Act.FLUSH,
        m.End: Act.END,
    },
    State.DISCARDING: {
        **ANYTIME,
        m.Start: Act.OPEN,
        m.Text: Act.IGNORE,
        m.Flush: Act.IGNORE,
        m.End: Act.STOP_DISCARDING,
    },
    State.DRAINING: {
        **ANYTIME,
        m.Start: Act.REFUSE_DRAINING,
        m.Text: Act.REFUSE_DRAINING,
        m.Flush: Invalid,
        m.End: Invalid,
    },
    State.ENDED: dict.fromkeys(MESSAGES, Act.IGNORE),
}


def test_every_state_knows_every_message() -> None:
    assert set(TABLE) == set(State)
    for row in TABLE.values():
        assert set(row) == set(MESSAGES)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("message", MESSAGES)
def test_row(state: State, message: type[m.ClientMessage]) -> None:
    row = TABLE[state][message]
    expected = EXPECTED[state][message]
    if expected is Invalid:
        assert isinstance(row, Invalid)
        assert row.why
        assert row.expected
    else:
        assert row is expected
