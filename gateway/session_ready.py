"""The message that opens a session, or returns to one."""

from playhead.gateway.messages import Ready
from playhead.gateway.session_speech import Speech
from playhead.gateway.session_types import ServerFacts


def ready(
    facts: ServerFacts,
    speech: Speech,
    *,
    session: str,
    token: str,
    resumed: bool,
    received: int,
    now: float,
) -> Ready:
    """``received``: client messages that the session has got so far."""
    return Ready(
        session=session,
        token=token,
        resumed=resumed,
        codec=speech.format.codec,
        sample_rate=speech.format.sample_rate,
        pre_skip=speech.format.pre_skip,
        packet_samples=speech.format.packet_samples,
        voice=speech.style.voice,
        voices=facts.voices,
        language=speech.style.language,
        languages=facts.languages,
        instruct=facts.takes_instruct,
        formats=facts.formats,
        limits=facts.limits.public(),
        grace=facts.limits.grace * 1_000,
        epoch=speech.epoch,
        time=now * 1_000,
        model=facts.model,
        server=facts.server,
        received=received,
        report_interval=round(facts.report_interval() * 1_000),
    )
