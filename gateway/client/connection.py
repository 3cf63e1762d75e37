"""Opens sessions with a Playhead server."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from playhead.client.carrier import Carrier, Clock
from playhead.client.link import Address, dial, endpoint
from playhead.client.player import Player
from playhead.client.reporter import Reporter
from playhead.client.track import PlayerConfig
from playhead.client.voice import Event, Voice
from playhead.codecs.registry import open_format
from playhead.engine.clock import monotonic
from playhead.gateway import messages as m
from playhead.gateway.protocol import Encoding

log = logging.getLogger("playhead.client")

NEVER = 86_400.0
"""Seconds of audio that nobody collects before playing."""


@asynccontextmanager
async def connect(
    url: str,
    *,
    voice: str | None = None,
    speed: float = 1.0,
    language: str | None = None,
    instruct: str | None = None,
    codec: str = "pcm_s16le",
    sample_rate: int = 24000,
    start_threshold: float = 0.1,
    playback_rate: float = 1.0,
    output_latency: float = 0.0,
    reports: bool = True,
    external_start: bool = False,
    encoding: Encoding = "msgpack",
    binary_audio: bool = False,
    recover: bool = True,
    key: str | None = None,
    timeout: float = 10.0,
    on_event: Callable[[Event], None] | None = None,
    clock: Clock = monotonic,
) -> AsyncIterator[Voice]:
    """Open a session; leaving the block ends it, also when speech is still being played.

    ``url`` may leave out the path, or be the address of the demo page. ``key``: an API key, for
    servers that ask for one. ``voice``, ``speed``,
    ``language`` and ``instruct`` (how to speak, in words, where the model takes that) hold for
    every utterance that asks for nothing else.
    ``start_threshold`` and ``output_latency`` (seconds), ``playback_rate`` describe the player
    that is modelled and reported; ``reports=False`` keeps it silent. With ``external_start`` that
    player begins when :meth:`Voice.playback_started` says so, or when an utterance is complete;
    ``start_threshold`` then only tells the server what to expect. ``on_event`` gets warnings,
    errors and the notice of a shutdown; without it they are logged.

    A socket that drops is replaced, and so is one over which nothing has come for seven seconds
    while an utterance was unfinished; the session goes on. With ``recover`` a session that cannot
    go on where it is, because its server goes away or has lost it, goes on at whatever server
    ``url`` leads to: ``on_event`` gets a :class:`Moved`, and what had not arrived is spoken again
    from the last word that had begun to. Without it everything live fails then.

    Raises :class:`~playhead.client.errors.ConnectionFailed` when no session comes about within
    ``timeout`` seconds, :class:`~playhead.client.errors.ServerError` when the server refuses the
    settings, and ``ValueError`` for a codec or rate that cannot be decoded on this machine.
    """
    open_format(codec, sample_rate)
    hello = m.Hello(
        voice=voice,
        speed=speed,
        codec=codec,
        sample_rate=sample_rate,
        start_threshold=1000 * start_threshold,
        playback_rate=playback_rate,
        reports=reports,
        binary_audio=binary_audio,
        language=language,
        instruct=instruct,
    )
    address = Address(endpoint(url), encoding, timeout, key)
    link, ready = await dial(address, hello)
    config = PlayerConfig(
        sample_rate=ready.sample_rate,
        start_threshold=NEVER if external_start else start_threshold,
        playback_rate=playback_rate,
        output_latency=output_latency,
        report_interval=ready.report_interval / 1000,
    )
    carrier = Carrier(address, hello, link, ready, clock, moves=recover)
    reporter = Reporter(Player(config), carrier, clock, reports=reports)
    session = Voice(carrier, reporter, on_event or _log_event, clock)
    tasks = [asyncio.create_task(session.run()), asyncio.create_task(reporter.run())]
    try:
        yield session
    finally:
        await session.close()
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):  # a fault of ``on_event`` or of ours
            raise result


def _log_event(event: Event) -> None:
    log.warning("%s", event)
