"""How an utterance shall sound: what a client asks for, checked against what the model has."""

from dataclasses import dataclass

from playhead.gateway.messages import Hello, Start
from playhead.gateway.protocol_parse import ProtocolError, shorten
from playhead.gateway.session_types import ServerFacts


@dataclass(frozen=True, slots=True)
class Style:
    """``language`` is one of the server's; ``instruct`` says in words how to speak, or is empty."""

    voice: str
    speed: float
    language: str
    instruct: str


def greeted_style(hello: Hello, facts: ServerFacts) -> Style:
    """What utterances of a session get that ask for nothing else. Raises ``ProtocolError``."""
    return Style(
        voice=find_voice(hello.voice, facts),
        speed=hello.speed,
        language=find_language(hello.language, facts),
        instruct=check_instruct(hello.instruct or "", facts),
    )


def started_style(start: Start, default: Style, facts: ServerFacts) -> Style:
    """``default``, changed as ``start`` asks. Raises ``ProtocolError``."""
    return Style(
        voice=default.voice if start.voice is None else find_voice(start.voice, facts),
        speed=default.speed if start.speed is None else start.speed,
        language=default.language
        if start.language is None
        else find_language(start.language, facts),
        instruct=default.instruct
        if start.instruct is None
        else check_instruct(start.instruct, facts),
    )


def find_voice(name: str | None, facts: ServerFacts) -> str:
    """Raises ``ProtocolError`` (``unknown_voice``) with the voices there are."""
    if name is None:
        return facts.default_voice
    if name not in facts.voices:
        raise ProtocolError(
            "unknown_voice",
            lambda: f"unknown voice {shorten(name)}",
            "one of " + ", ".join(facts.voices),
            "voice",
        )
    return name


def find_language(name: str | None, facts: ServerFacts) -> str:
    """Raises ``ProtocolError`` (``unknown_language``) with the languages there are. The first of
    them is the default; case does not matter."""
    if name is None:
        return facts.languages[0]
    if name.lower() not in facts.languages:
        raise ProtocolError(
            "unknown_language",
            lambda: f"unknown language {shorten(name)}",
            "one of " + ", ".join(facts.languages),
            "language",
        )
    return name.lower()


def check_instruct(instruct: str, facts: ServerFacts) -> str:
    """Raises ``ProtocolError`` (``unsupported_instruct``) where the model takes none."""
    if instruct.strip() and not facts.takes_instruct:
        raise ProtocolError(
            "unsupported_instruct",
            f"{facts.model} takes no instruction",
            "no instruct, or a server whose ready says instruct: true",
            "instruct",
        )
    return instruct.strip()
