"""Who is let in: one clear refusal, early, instead of a stutter for everybody. Pure.

Three questions, asked of what was measured: does one more utterance fit what the lanes can make in
the long run, if everybody plays to the end; can they make everybody safe soon, the newcomer among
them, with what those who play leave of them; and, when there is little left, has whoever asks had
its share of the places.

How long an utterance will be is not known, so all that remains of it is counted as what it takes
until it ends: a second of speech a second.
"""

import math
from dataclasses import dataclass

from playhead.engine.places import TAKEN
from playhead.engine.policy import PolicyConfig, Refusal

SAFE = 0.6
"""Seconds of runway that everybody should have soon: the least lead, or its own, if less."""

SLACK = 1.0
"""Seconds of runway that those who are no newcomers should have, or their own lead, if less, before
more are let in: who holds less is given shorter chunks, which cost more, so that a crowd that has
once sunk makes less and sinks on. What is held is measured, by what listeners report, within what
an honest one could hold (:mod:`playhead.engine.playhead`)."""

SOON = 0.2
"""Seconds of the whole machine that may be owed, which is what a newcomer waits at the worst: a
burst of newcomers would else be let in all at once, and first chunks, being small, cost twice or
three times what speech does later."""

RUSH = 0.45
"""Seconds of the urgent lane that may be owed, where it is one lane of its own: newcomers pass
through it until they are safe, in chunks that take several times what speech does later."""

ROOM = 0.3
"""Share of the machine that must be free for all of that: those let in at once sink together, the
deeper the fuller it is."""

CAUGHT_UP = 1.0
"""Seconds in which what is owed must be made good, out of what those who play leave of the lanes.
A machine that is nearly full makes up for a bad moment slowly, and the next one comes."""

GUESSED_COST = 0.025
"""Lane seconds per second of speech while nothing has been measured, nor rehearsed."""

CROWDED = 0.8
"""Share of what can be promised from which places are shared out by accounts."""

PAID_BACK = 20.0
"""Seconds in which places make up for what an account was served more than others, or less: who
asks most often is there first whenever one is free, and has a little more than its share."""

LEEWAY = 0.25
"""Share of an account's places that it can lose or gain so."""

COME_BACK = 1.0
"""Seconds after which somebody will have ended, in a full house of utterances of some seconds."""


@dataclass(frozen=True, slots=True)
class Load:
    """The machine as a newcomer finds it. ``cost``: lane seconds per second of speech, 0 while
    unknown."""

    live: int  # utterances whose slot cannot be had
    playing: int  # of them, those that take the lanes' time, or may any moment
    missing: float  # seconds of speech that these lack to be safe
    cost: float
    accounts: int = 1  # that are being served, with the one that asks
    own: int = 0  # live utterances of the one that asks
    ahead: float = 0.0  # seconds of speech by which it was served more than the average
    urgent: float = 0.0  # seconds of the urgent lane per second of speech, if it is one by itself
    thin: float = 0.0  # seconds of speech that others than newcomers lack beyond ``missing``


def refusal(load: Load, workers: int, config: PolicyConfig) -> Refusal | None:
    """Why one more utterance cannot be promised gapless speech now, or None."""
    if load.live >= config.max_live:
        return _overloaded(f"{load.live} utterances are being spoken, the limit", COME_BACK)
    if load.playing == 0:
        return None
    utilisation = (load.playing + 1) * load.cost / workers
    if utilisation > config.max_utilisation:
        wanted = f"one more utterance would need {utilisation:.0%} of the machine"
        return _overloaded(wanted, COME_BACK)
    owed = (load.missing + load.thin + SAFE) * (load.cost or GUESSED_COST) / workers
    # Among those who are short, the least served account goes first: others wait longer.
    soon = SOON / 2 if load.ahead > SAFE else SOON
    most = min(soon, CAUGHT_UP * (1.0 - load.playing * load.cost / workers))
    if owed > most and math.isfinite(config.max_utilisation):
        work = f"{owed:.1f} s of work are owed to those who were let in just now"
        return _overloaded(work, min(COME_BACK, owed - most + SOON / 4))
    rush = (load.missing + SAFE) * load.urgent
    most = RUSH * min(1.0, (1.0 - load.playing * load.cost / workers) / ROOM)
    if rush > max(0.0, most):
        work = f"{rush:.1f} s of first chunks are owed to those who were let in just now"
        return _overloaded(work, min(COME_BACK, rush - most + SOON / 4))
    crowded = max(utilisation / config.max_utilisation, (load.live + 1) / config.max_live)
    if crowded > CROWDED and load.own + 1 > _share(load, workers, config):
        mine = f"{load.own} utterances are this account's share of a crowded machine"
        return _overloaded(mine, COME_BACK)
    return None


def crowded_out(load: Load, workers: int, config: PolicyConfig) -> Refusal | None:
    """Why somebody whose place was not kept (and who is not in ``load.playing``) cannot go on."""
    if load.playing == 0 or (load.playing + 1) * load.cost / workers <= config.max_utilisation:
        return None
    return _overloaded(TAKEN, COME_BACK)


def _share(load: Load, workers: int, config: PolicyConfig) -> float:
    """Utterances at a time that the account which asks can have, one at the least."""
    lanes = config.max_utilisation * workers / load.cost if load.cost else math.inf
    share = min(config.max_live, lanes) / load.accounts
    paid = min(max(load.ahead / PAID_BACK, -LEEWAY * share), LEEWAY * share)
    return max(1.0, share - paid)


def _overloaded(message: str, retry_after: float) -> Refusal:
    return Refusal("overloaded", message, retry_after)
