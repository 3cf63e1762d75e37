"""Everything an operator can turn, in one frozen value.

Each field may be set by a flag of ``playhead serve``, by the environment variable
``PLAYHEAD_<FIELD>`` or in the TOML file of ``--config``: the first of these that is there wins.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from ipaddress import ip_address
from typing import Any, Final

from playhead.engine.lead import LeadLimits, parse_lead
from playhead.engine.types import Urgency
from playhead.gateway import config_file, logs
from playhead.gateway.settings_values import boolean as _boolean
from playhead.gateway.settings_values import choice as _choice
from playhead.gateway.settings_values import node as _node
from playhead.gateway.settings_values import origins as _origins
from playhead.gateway.settings_values import ratio as _ratio
from playhead.gateway.settings_values import seconds as _seconds
from playhead.gateway.settings_values import text as _text
from playhead.gateway.settings_values import whole as _whole

KIB: Final = 1024
HIBARI: Final = "hibari"
HTTP_OFF: Final = -1
HTTP_NEXT: Final = -2
ACCELERATED: Final = "qwen3-tts"
DEMO: Final = ("auto", "on", "off")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")


class SettingsError(ValueError):
    """A flag or environment variable that cannot be used; the message names it."""


def _http_port(text: str) -> int:
    words = {"off": HTTP_OFF, "next": HTTP_NEXT}
    if text.strip().lower() in words:
        return words[text.strip().lower()]
    try:
        return _whole(0, 65535)(text)
    except ValueError:
        raise ValueError("a whole number from 0 to 65535, next (to --port), or off") from None


def _urgency(text: str) -> Urgency:
    return Urgency(_choice(tuple(Urgency))(text))


@dataclass(frozen=True, slots=True)
class Option:
    """How one field is set. ``flag`` False: through the environment alone."""

    name: str
    parse: Callable[[str], Any]
    help: str
    flag: bool = True


@dataclass(frozen=True, slots=True)
class Settings:
    """What the gateway was started with. Durations are seconds, sizes bytes.

    Raises :class:`SettingsError` where values contradict each other.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    http_port: int = HTTP_NEXT
    allow_remote: bool = False
    origins: tuple[str, ...] = ()
    urgency: Urgency = Urgency.REPORTED
    lead: LeadLimits = field(default_factory=LeadLimits)
    voice: str | None = None
    model: str = HIBARI
    weights: str | None = None
    slots: int = 512
    context: int = 1024
    log_level: str = "info"
    (Option("log_format", _choice((logs.TEXT, logs.JSON)), "text or json, one line each"),)
    (Option("node", _node, "this process's name behind a balancer: up to 64 of a-z, 0-9 and -"),)
    (Option("agent_port", _whole(0, 65535), "TCP port that tells a balancer the slack; 0: any"),)
    (Option("traces", _text, "OTLP endpoint for traces, e.g. http://127.0.0.1:4318/v1/traces"),)
    (Option("trace_ratio", _ratio, "share of utterances that are traced", flag=False),)
