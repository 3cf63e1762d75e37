"""How much a client may ask for: token buckets, and strikes for who goes on regardless."""

from enum import Enum

from playhead.gateway.limits import Limits
from playhead.gateway.messages import (
    Ack,
    Cancel,
    ClientMessage,
    CloseSession,
    PlaybackReport,
    Text,
)
from playhead.gateway.protocol_parse import ProtocolError


class TokenBucket:
    """``rate`` tokens per second, at most ``burst`` saved up. Starts full."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._at: float | None = None

    def take(self, now: float) -> bool:
        before = now if self._at is None else self._at
        self._at = max(before, now)  # a coalesced report carries an older time
        self._tokens = min(self._burst, self._tokens + (self._at - before) * self._rate)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def wait(self) -> float:
        """Seconds from the last ``take`` until a token is there."""
        return max(0.0, (1.0 - self._tokens) / self._rate)


class Verdict(Enum):
    PASS = "pass"
    COALESCE = "coalesce"  # keep the latest report, act when there is budget
    REFUSE = "refuse"
    CLOSE = "close"


class Budget:
    """One connection's message budget (docs/protocol.md, "Limits")."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.frames = TokenBucket(limits.frame_rate, limits.frame_burst)
        self.texts = TokenBucket(limits.text_rate, limits.text_burst)
        self.control = TokenBucket(limits.control_rate, limits.control_burst)
        self.errors = TokenBucket(limits.error_rate, limits.error_burst)
        self._strikes = 0
        self._struck_at: float | None = None

    def admit(self, message: ClientMessage | None, now: float) -> Verdict:
        """``None`` stands for a frame that could not be decoded."""
        if not self.frames.take(now):
            return self._strike(now)
        if isinstance(message, Cancel | Ack | CloseSession):
            return Verdict.PASS  # barge-in is never refused, and these cost next to nothing
        if isinstance(message, Text):
            return Verdict.PASS if self.texts.take(now) else self._strike(now)
        if self.control.take(now):
            return Verdict.PASS
        return Verdict.COALESCE if isinstance(message, PlaybackReport) else self._strike(now)

    def excess(self, message: ClientMessage | None) -> ProtocolError:
        """What to tell of a message that was just refused."""
        narrow = self.texts if isinstance(message, Text) else self.control
        texts, others = self._limits.text_rate, self._limits.control_rate
        return ProtocolError(
            "rate_limited",
            "too many messages in a short time",
            f"at most {texts:g} texts and {others:g} other messages a second",
            retry_after=max(self.frames.wait(), narrow.wait()),
        )

    def _strike(self, now: float) -> Verdict:
        since = None if self._struck_at is None else now - self._struck_at
        if since is None or since >= self._limits.strike_interval:
            forgiven = since is None or since > self._limits.strike_memory
            self._strikes = 1 if forgiven else self._strikes + 1
            self._struck_at = now
        return Verdict.CLOSE if self._strikes >= self._limits.strikes else Verdict.REFUSE
