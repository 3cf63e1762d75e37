"""The door as HTTP sees it: checks of a request, and refusals as responses. Event loop only."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Final

from playhead.engine import clock
from playhead.engine.spread import Spread
from playhead.gateway.accepts import Pace
from playhead.gateway.access import Access, Denied, Grant
from playhead.gateway.access_offer import Misplaced, Offer, read
from playhead.gateway.access_tickets import LIFETIME
from playhead.gateway.admission import origin_allowed
from playhead.gateway.arrivals import Arrivals
from playhead.gateway.http import response
from playhead.gateway.metrics import Metrics
from playhead.gateway.peer import Peer
from playhead.gateway.settings import Settings, is_loopback
from websockets.http11 import Request, Response

TICKETS_PATH: Final = "/v1/tickets"
RETRY_AFTER: Final = 5.0
SPREAD: Final = 1.0
"""Share by which others are told to wait longer: the header has whole seconds."""


class Gate:
    """``closed`` says why nobody is served at the moment: a code and words, or None."""

    def __init__(
        self,
        settings: Settings,
        access: Access,
        arrivals: Arrivals,
        metrics: Metrics,
        closed: Callable[[], tuple[str, str] | None],
    ) -> None:
        self.access = access
        self._settings = settings
        self._caps = arrivals.caps
        self._accepts = arrivals.accepts
        self._metrics = metrics
        self._closed = closed
        self._spread = Spread(SPREAD)

    def let_in(self, peer: Peer, request: Request, *, late: bool = False) -> None:
        """Check page, load, and key; then ``peer.grant`` is set, and counted until it is gone.

        ``late``: who shows nothing may do so in a message (:meth:`let_in_late`), and has no grant
        until then. Raises :class:`Denied`.
        """
        self.check_page(request)
        self.check_load(peer.address)
        if peer.pace is not Pace.SERVE:
            raise Denied(
                429,
                "accept_rate",
                "too many new connections from this address",
                f"at most {self._accepts.rate:g} a second",
                self._wait(self._accepts.wait(peer.address)),
            )
        offer = self._offer(request.headers.raw_items(), request.path)
        if not (late and self.access.required and offer == Offer()):
            self.let_in_late(peer, offer)

    def let_in_late(self, peer: Peer, offer: Offer) -> None:
        """The same for what a connected peer shows. Raises :class:`Denied`."""
        peer.admit(self.access.admit(offer, peer.address, clock.monotonic()))

    def admit(self, headers: Iterable[tuple[str, str]], path: str, address: str) -> Grant:
        """A grant that is not yet counted. Raises :class:`Denied`."""
        return self.access.admit(self._offer(headers, path), address, clock.monotonic())

    def _offer(self, headers: Iterable[tuple[str, str]], path: str) -> Offer:
        return self.offer(headers, path) if self.access.required else Offer()

    def offer(self, headers: Iterable[tuple[str, str]], path: str) -> Offer:
        """What a request shows. Raises :class:`Denied` when it stands in the wrong place."""
        try:
            return read(headers, path)
        except Misplaced as fault:
            raise Denied(
                400,
                "misplaced_key",
                str(fault),
                "one key, in the header Authorization: Bearer, or one ticket",
            ) from None

    def check_page(self, request: Request) -> None:
        """Pages must be known. Raises :class:`Denied`."""
        self.check_origin(request.headers.get_all("Origin"), request.headers.get_all("Host"))

    def check_origin(self, origins: Sequence[str], hosts: Sequence[str]) -> None:
        """The same, from the values of both headers."""
        if len(origins) > 1 or not origin_allowed(
            origins[0] if origins else None,
            hosts[0] if len(hosts) == 1 else "",
            self._settings.origins,
            allow_remote=not is_loopback(self._settings.host),
        ):
            raise Denied(
                403,
                "origin",
                "pages of this origin may not connect",
                "a page of this server or of this machine, or one named with --origins",
            )

    def check_load(self, address: str) -> None:
        """Whether one more connection can be served. Raises :class:`Denied`."""
        if (why := self._closed()) is not None:
            raise Denied(503, *why, "try again later", self._wait())
        reason = self._caps.refusal(address)
        if reason == "connections":
            raise Denied(503, reason, "too many connections", "try again later", self._wait())
        if reason is not None:
            raise Denied(
                429,
                reason,
                "too many connections from this address",
                f"at most {self._settings.max_connections_per_address} at a time",
                self._wait(),
            )

    def _wait(self, seconds: float = RETRY_AFTER) -> float:
        """Seconds until one who is sent away now should come again; not all at the same time."""
        return self._spread(seconds)

    def check_scrape(self, peer: Peer, request: Request) -> None:
        """Who reads the metrics: this machine, or a key with that role. Raises :class:`Denied`."""
        if not self.access.required or is_loopback(peer.address):
            return
        offer = self.offer(request.headers.raw_items(), request.path)
        if not self.access.may_scrape(offer, peer.address, clock.monotonic()):
            raise Denied(
                401,
                "unauthorized",
                "no API key was sent",
                "a key from `playhead keys add --role metrics`, as Authorization: Bearer",
            )

    def ticket(self, peer: Peer, request: Request) -> Response:
        """``POST /v1/tickets``: a ticket for whoever shows a key. Raises :class:`Denied`."""
        if request.method != "POST":
            return response(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "Ask for a ticket with POST.\n",
                headers={"Allow": "POST"},
            )
        self.check_page(request)
        offer = self.offer(request.headers.raw_items(), request.path)
        text = self.access.ticket(offer, peer.address, clock.monotonic())
        body = json.dumps({"ticket": text, "expires_in": LIFETIME}) + "\n"
        headers = {"Cache-Control": "no-store"}
        return response(HTTPStatus.OK, body, content_type="application/json", headers=headers)

    def refuse(self, denied: Denied) -> Response:
        """The response that turns a client away; it is counted."""
        self._metrics.refused(denied.code)
        told = {"code": denied.code, "message": denied.message, "expected": denied.expected}
        return response(
            HTTPStatus(denied.status),
            json.dumps(told) + "\n",
            content_type="application/json",
            headers=refusal_headers(denied),
        )


def refusal_headers(denied: Denied) -> dict[str, str]:
    """Headers that go with a refusal: ``Retry-After`` in whole seconds, and the challenge."""
    headers = {}
    if denied.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(denied.retry_after)))
    if denied.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="playhead"'
    return headers
