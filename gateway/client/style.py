"""How an utterance shall sound, as a caller asks for it. No I/O."""

from dataclasses import dataclass

from playhead.client.errors import ServerError
from playhead.gateway.messages import Ready, Start

#: Error codes that may answer ``start``.
REFUSALS = frozenset(
    {
        "overloaded",
        "draining",
        "rate_limited",
        "unknown_voice",
        "unknown_language",
        "unsupported_instruct",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How an utterance shall sound; ``None``: as the session does."""

    voice: str | None = None
    speed: float | None = None
    language: str | None = None
    instruct: str | None = None

    def opening(self, id: str) -> Start:
        """The message that opens the utterance ``id``."""
        return Start(
            voice=self.voice,
            speed=self.speed,
            id=id,
            language=self.language,
            instruct=self.instruct,
        )


USUAL = Style()


def check_style(style: Style, ready: Ready) -> None:
    """Raises ``ServerError``, as the server would, for what its model has not. A server that does
    not say which languages it knows is asked."""
    known = {"voice": ready.voices, "language": ready.languages or None}
    for field, wanted in (("voice", style.voice), ("language", style.language)):
        accepted = known[field]
        if wanted is None or accepted is None:
            continue
        if wanted not in accepted and (field == "voice" or wanted.lower() not in accepted):
            expected = "one of " + ", ".join(accepted)
            message = f"unknown {field} {wanted!r}"
            raise ServerError(f"unknown_{field}", message, expected, field=field)
    if style.instruct and not ready.instruct:
        raise ServerError(
            "unsupported_instruct",
            f"{ready.model} takes no instruction",
            "no instruct, or a server whose ready says instruct",
            field="instruct",
        )
