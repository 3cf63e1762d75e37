"""``playhead top``: running servers in a terminal, looked at every second."""

import argparse
import math
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from playhead.engine.clock import monotonic
from playhead.gateway.redact import redact
from playhead.gateway.roster import MOST_ROWS
from playhead.gateway.top_figures import Figures, Look, figures, look
from playhead.gateway.top_rows import Row, least_slack, parse
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

TIMEOUT: Final = 2.0
FIGURES: Final = ("slack", "holds", "lead", "lane", "stalls", "worst")
LATE: Final = 0.3
"""Seconds of TTFA from which a figure is marked."""


def address(server: str, path: str) -> str:
    """Where ``path`` of a server is; ``server`` may be any address of it."""
    base = server if "://" in server else f"http://{server}"
    scheme, _, rest = base.partition("://")
    scheme = {"ws": "http", "wss": "https"}.get(scheme, scheme)
    return f"{scheme}://{rest.partition('/')[0]}{path}"


def fetch(url: str) -> str:
    """What a server says there. Raises ``OSError`` when it does not."""
    key = os.environ.get("PLAYHEAD_API_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        return str(answer.read().decode())


def number(value: float, unit: str = "", scale: float = 1.0, digits: int = 0) -> str:
    """A figure, or a dash when nothing was measured."""
    if math.isnan(value):
        return "-"
    return "> all" if math.isinf(value) else f"{value * scale:.{digits}f}{unit}"


def servers_table(found: Mapping[str, Figures | str]) -> Table:
    """One row per server."""
    table = Table(title="Servers", expand=True, title_justify="left")
    columns = ("server", "slack", "sessions", "speaking", "parked", "held", "ended/s")
    measured = ("TTFA p50", "p95", "holds p5", "p50", "belief p95", "loop p99", "waste/s")
    for name in (*columns, *measured):
        table.add_column(name, justify="left" if name == "server" else "right")
    for server, each in found.items():
        if isinstance(each, str):
            table.add_row(server, Text(each, style="bold red"))
            continue
        table.add_row(
            server,
            Text(f"{each.slack:.0%}", style="red" if each.slack < 0.1 else ""),
            f"{each.sessions}",
            number(each.utterances),
            number(each.parked),
            number(each.held),
            number(each.started, digits=1),
            number(each.ttfa_p50, " ms", 1000),
            Text(number(each.ttfa_p95, " ms", 1000), style="red" if each.ttfa_p95 > LATE else ""),
            number(each.depth_p5, " s", digits=2),
            number(each.depth_p50, " s", digits=2),
            number(each.belief_p95, " ms", 1000),
            number(each.lag_p99, " ms", 1000, 1),
            number(each.waste, " s", digits=1),
        )
    return table


def lanes_table(found: Mapping[str, Figures]) -> Table:
    """One row per server and lane."""
    table = Table(title="Lanes", expand=True, title_justify="left")
    for name in (
        "server",
        "lane",
        "running",
        "waiting",
        "at work",
        "batch",
        "late p95",
    ):
        table.add_column(name, justify="left" if name in ("server", "lane") else "right")
    for server, each in found.items():
        for lane in each.lanes:
            table.add_row(
                server,
                lane.name,
                f"{lane.running}",
                f"{lane.waiting}",
                number(lane.busy, digits=2),
                number(lane.batch, digits=1),
                number(lane.late, " ms", 1000),
            )
    return table


def stalls_table(found: Mapping[str, Figures]) -> Table:
    """Stalls by cause, and refusals by reason, of all servers together."""
    table = Table(title="Stalls and refusals", expand=True, title_justify="left")
    for name in ("", "now", "since the start", "worst"):
        table.add_column(name, justify="left" if not name else "right")
    for cause in sorted({cause for each in found.values() for cause in each.stalls_total}):
        now = sum(each.stalls.get(cause, 0.0) for each in found.values())
        total = sum(each.stalls_total.get(cause, 0.0) for each in found.values())
        worst = max((each.worst.get(cause, 0.0) for each in found.values()), default=0.0)
        mark = "bold red" if now and cause in ("engine", "loop") else ""
        table.add_row(
            f"stalls: {cause}", Text(f"{now:g}", style=mark), f"{total:g}", f"{worst:.2f} s"
        )
    for reason in sorted({reason for each in found.values() for reason in each.refusals}):
        now = sum(each.refusals.get(reason, 0.0) for each in found.values())
        if now:
            table.add_row(f"refused: {reason}", Text(f"{now:g}", style="yellow"), "", "")
    return table


def sessions_table(rows: Sequence[Row], unseen: Sequence[str]) -> Table:
    """One row per session, those nearest to running dry first. ``unseen``: servers that show none,
    and why."""
    table = Table(title="Sessions, least slack first", expand=True, title_justify="left")
    for name in (*("session", "server", "dialect", "codec", "state"), *FIGURES):
        table.add_column(name, justify="right" if name in FIGURES else "left")
    for row in rows:
        table.add_row(
            *(row.session, row.server, row.dialect, row.codec, row.state),
            Text("-" if math.isinf(row.slack) else f"{row.slack:.2f} s", style=_mark(row)),
            number(row.depth, " s", digits=2),
            number(row.lead, " s", digits=2),
            Text(row.lane or "-", style="yellow" if row.lane == "urgent" else ""),
            Text(f"{row.stalls}", style="red" if row.stalls else ""),
            f"{row.worst:.2f} s" if row.stalls else "-",
        )
    if unseen:
        table.caption = "; ".join(unseen)
    return table


def _mark(row: Row) -> str:
    return "bold red" if row.slack <= 0 else "yellow" if row.urgent else ""


class Screen:
    """Remembers the last look at each server. ``sessions``: rows of them to show."""

    def __init__(self, servers: Sequence[str], sessions: int = 0) -> None:
        self._urls = {server: address(server, "/metrics") for server in servers}
        self._looks: dict[str, Look] = {}
        self._sessions = sessions

    def look(self) -> dict[str, Figures | str]:
        """Figures since the last look by server, or why there are none."""
        return {server: self._one(server, url) for server, url in self._urls.items()}

    def _one(self, server: str, url: str) -> Figures | str:
        try:
            now = look(fetch(url), monotonic())
        except (OSError, ValueError) as error:
            self._looks.pop(server, None)
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            return f"does not answer: {reason}"
        before = self._looks.get(server, Look(now.at))
        self._looks[server] = now
        return figures(before, now)

    def _sessions_of(self, servers: Iterable[str]) -> Table:
        rows: list[Row] = []
        unseen: list[str] = []
        for server in servers:
            try:
                rows += parse(server, fetch(address(server, "/v1/sessions")))
            except (OSError, ValueError) as error:
                unseen.append(f"{server} shows no sessions: {error}")
        return sessions_table(least_slack(rows, self._sessions), unseen)

    def render(self) -> Group:
        """All of it."""
        found = self.look()
        well = {server: each for server, each in found.items() if isinstance(each, Figures)}
        parts = [servers_table(found), lanes_table(well), stalls_table(well)]
        if self._sessions:
            parts.insert(1, self._sessions_of(well))
        return Group(*(Panel(part, border_style="dim") for part in parts))


def run(args: argparse.Namespace) -> int:
    """Show until Ctrl-C; 1 when none of the servers answers at first."""
    if not 0.1 <= args.interval <= 60:
        print("playhead top: --interval must be from 0.1 to 60 seconds", file=sys.stderr)
        return 2
    if not 0 <= args.sessions <= MOST_ROWS:
        print(f"playhead top: --sessions must be from 0 to {MOST_ROWS}", file=sys.stderr)
        return 2
    screen = Screen(args.servers, args.sessions)
    first = screen.look()
    if all(isinstance(each, str) for each in first.values()):
        for server, reason in first.items():
            print(redact(f"playhead top: {server} {reason}"), file=sys.stderr)
        return 1
    console = Console()
    if args.once:
        console.print(screen.render())
        return 0
    with Live(screen.render(), console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(args.interval)
            live.update(screen.render(), refresh=True)
