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
from playhead.gateway.redact import redact
from playhead.gateway.settings_values import boolean as _boolean
from playhead.gateway.settings_values import choice as _choice
from playhead.gateway.settings_values import node as _node
from playhead.gateway.settings_values import origins as _origins
from playhead.gateway.settings_values import ratio as _ratio
from playhead.gateway.settings_values import seconds as _seconds
from playhead.gateway.settings_values import text as _text
from playhead.gateway.settings_values import whole as _whole
from playhead.gateway.settings_values import wss as _wss

KIB: Final = 1024
HIBARI: Final = "hibari"
HTTP_OFF: Final = -1
HTTP_NEXT: Final = -2
ACCELERATED: Final = "qwen3-tts"
AUTO: Final = "auto"
HERE: Final = "here"
APART: Final = "apart"
DEMO: Final = ("auto", "on", "off")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")


class SettingsError(ValueError):
    """A flag or environment variable that cannot be used; the message names it, and shows no
    secret that was given for it."""

    def __init__(self, message: str) -> None:
        super().__init__(redact(message))


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
    open: bool = False
    keys: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    origins: tuple[str, ...] = ()
    urgency: Urgency = Urgency.REPORTED
    lead: LeadLimits = field(default_factory=LeadLimits)
    voice: str | None = None
    model: str = HIBARI
    weights: str | None = None
    clones: str | None = None
    engine: str | None = None
    slots: int = 512
    context: int = 1024
    lanes: str = AUTO
    log_level: str = "info"
    demo: str = "auto"
    log_format: str = logs.TEXT
    node: str | None = None
    agent_port: int | None = None
    traces: str | None = None
    trace_ratio: float = 1.0
    max_connections: int = 5000
    max_connections_per_address: int = 50
    drain_timeout: float = 30.0
    grace: float = 30.0
    hello_timeout: float = 5.0
    open_timeout: float = 5.0
    close_timeout: float = 5.0
    ping_interval: float = 10.0
    ping_timeout: float = 10.0
    slow_hold: float = 1.0
    slow_close: float = 30.0
    max_message: int = 64 * KIB
    max_unsent: int = 256 * KIB
    send_buffer: int = 32 * KIB
    notsent_lowat: int = 16 * KIB
    write_limit: int = 16 * KIB
    encoder_threads: int = 2
    stuck_after: float = 5.0
    twilio_token: str | None = field(default=None, repr=False)
    twilio_url: str | None = None

    def __post_init__(self) -> None:
        if self.keys is None and not self.open and not is_loopback(self.host):
            raise SettingsError(
                f"--host {self.host} would serve other machines without asking for a key: anybody "
                "who reaches the port could use it. Make a key with `playhead keys add` and name "
                "its file with --keys, or add --open when everybody there is trusted"
            )
        if self.open and self.keys is not None:
            raise SettingsError("--open and --keys contradict each other: choose one")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise SettingsError("--tls-cert and --tls-key go together")
        if (self.model == HIBARI) != (self.weights is None):
            raise SettingsError(
                f"--weights go with --model {ACCELERATED}: a model folder, a hub id, or "
                "random:1.7b or random:0.6b for measurements without weights"
            )
        if self.clones is not None and self.model == HIBARI:
            raise SettingsError(f"--clones go with --model {ACCELERATED} and the weights of a base")
        if self.lanes == APART and self.model == HIBARI:
            raise SettingsError(f"--lanes apart goes with --model {ACCELERATED}")
        if self.slow_close <= self.slow_hold:
            raise SettingsError("slow_close must be longer than slow_hold")

    @property
    def observable(self) -> bool:
        """Whether anybody who reaches the port may watch the lanes and start a crowd."""
        return self.demo == "on" or (self.demo == "auto" and is_loopback(self.host))


def is_loopback(host: str) -> bool:
    """Whether ``host`` names this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


OPTIONS: Final = (
    Option("host", _text, "address to listen on"),
    Option("port", _whole(0, 65535), "TCP port; 0 takes any free one"),
    Option("http_port", _http_port, "TCP port of the HTTP API, or off (default next to --port)"),
    Option("open", _boolean, "serve whoever reaches the port, beyond this machine too"),
    Option("keys", _text, "file of API keys (see `playhead keys`); clients must show one"),
    Option("tls_cert", _text, "certificate chain, PEM; a renewed file is taken up by itself"),
    Option("tls_key", _text, "its private key, PEM"),
    Option("origins", _origins, "pages of other sites that may connect, e.g. https://app.example"),
    Option("urgency", _urgency, "what sets the deadlines: reported, estimated or none"),
    Option(
        "lead",
        parse_lead,
        "seconds to run ahead of a listener, or learned[:SECONDS] (default learned)",
    ),
    Option("voice", _text, "default voice"),
    Option("model", _choice((HIBARI, ACCELERATED)), "hibari or qwen3-tts (needs CUDA)"),
    Option("weights", _text, "of qwen3-tts: folder, hub id, random:1.7b or random:0.6b"),
    Option("clones", _text, "of qwen3-tts base models: folder of NAME.wav and NAME.txt"),
    Option("engine", _text, "socket of a `playhead engine` to speak through"),
    Option("slots", _whole(1, 8192), "of qwen3-tts: utterances at a time"),
    Option(
        "context", _whole(64, 32_768), "of qwen3-tts: positions of a slot, 80 ms of speech each"
    ),
    Option(
        "lanes",
        _choice((AUTO, HERE, APART)),
        "of qwen3-tts: in the engine's process (here), in one of their own (apart), or auto",
    ),
    Option("log_level", _choice(LOG_LEVELS), "debug, info, warning or error"),
    Option(
        "demo", _choice(DEMO), "viewers of the lanes and their crowds: auto (loopback), on, off"
    ),
    Option("log_format", _choice((logs.TEXT, logs.JSON)), "text or json, one line each"),
    Option("node", _node, "this process's name behind a balancer: auto: the host's"),
    Option("agent_port", _whole(0, 65535), "TCP port that tells a balancer the slack; 0: any"),
    Option("traces", _text, "OTLP endpoint for traces, e.g. http://127.0.0.1:4318/v1/traces"),
    Option("trace_ratio", _ratio, "share of utterances that are traced", flag=False),
    Option("max_connections", _whole(1, 1_000_000), "open connections in all"),
    Option("max_connections_per_address", _whole(1, 1_000_000), "open connections of one address"),
    Option("drain_timeout", _seconds(0, 3600), "seconds that speech may go on after SIGTERM"),
    Option("grace", _seconds(0, 3600), "seconds that a session outlives its dropped socket"),
    Option("hello_timeout", _seconds(0.05, 60), "seconds to wait for hello", flag=False),
    Option("open_timeout", _seconds(0.05, 60), "seconds for the opening handshake", flag=False),
    Option("close_timeout", _seconds(0.05, 60), "seconds for the closing handshake", flag=False),
    Option("ping_interval", _seconds(0.05, 600), "seconds between keepalive pings", flag=False),
    Option("ping_timeout", _seconds(0.05, 600), "seconds to wait for a pong", flag=False),
    Option("slow_hold", _seconds(0.01, 600), "blocked seconds until speech is held", flag=False),
    Option("slow_close", _seconds(0.02, 3600), "blocked seconds until the close", flag=False),
    Option("max_message", _whole(KIB, 2**30), "bytes of one client message", flag=False),
    Option("max_unsent", _whole(KIB, 2**30), "unsent bytes of one connection", flag=False),
    Option("send_buffer", _whole(KIB, 2**30), "SO_SNDBUF", flag=False),
    Option("notsent_lowat", _whole(KIB, 2**30), "TCP_NOTSENT_LOWAT", flag=False),
    Option("write_limit", _whole(KIB, 2**30), "bytes at which the writer waits", flag=False),
    Option("encoder_threads", _whole(1, 64), "threads that run wire encoders", flag=False),
    Option("stuck_after", _seconds(0.2, 600), "seconds until work counts as stuck", flag=False),
    # Whoever lists processes sees their flags.
    Option(
        "twilio_token", _text, "auth token that Twilio's requests must be signed with", flag=False
    ),
    Option(
        "twilio_url", _wss, "wss://HOST of the <Stream> URL, where a proxy hides it", flag=False
    ),
)
DEFAULTS: Final = Settings()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one flag per public option; texts stay texts until :func:`from_args`."""
    parser.add_argument("--config", help="TOML file of these settings; flags and variables win")
    for option in OPTIONS:
        if not option.flag:
            continue
        flag = _flag(option)
        shown = asdict(DEFAULTS)[option.name]
        if isinstance(shown, bool):
            parser.add_argument(
                flag, action="store_const", const="1", default=None, help=option.help
            )
        else:
            told = shown not in (None, (), HTTP_NEXT) and not isinstance(shown, dict)
            suffix = f" (default {shown})" if told else ""
            parser.add_argument(flag, default=None, help=option.help + suffix)


def from_args(args: argparse.Namespace, environ: Mapping[str, str]) -> Settings:
    """Settings from parsed flags and the environment.

    Raises :class:`SettingsError` naming the flag or variable, its value, and what would be
    right.
    """
    given: dict[str, str | None] = vars(args)
    values: dict[str, Any] = {}
    filed = _filed(given.get("config") or environ.get("PLAYHEAD_CONFIG"))
    for option in OPTIONS:
        variable = "PLAYHEAD_" + option.name.upper()
        text, source = given.get(option.name), _flag(option)
        if text is None:
            text, source = environ.get(variable), variable
        if text is None:
            text, source = filed.get(option.name), f"--config: {option.name}"
        if text is None:
            continue
        try:
            values[option.name] = option.parse(text)
        except ValueError as error:
            raise SettingsError(f"{source}={text!r} is not usable: expected {error}") from None
    return Settings(**values)


def _filed(path: str | None) -> dict[str, str]:
    if not path:
        return {}
    try:
        return config_file.read(path, (option.name for option in OPTIONS))
    except config_file.ConfigError as error:
        raise SettingsError(str(error)) from error


def _flag(option: Option) -> str:
    return "--" + option.name.replace("_", "-")
