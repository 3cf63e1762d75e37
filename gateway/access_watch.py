"""Takes up changed keys and certificates, and ends what is no longer allowed."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from playhead.engine import clock
from playhead.gateway.access import Access
from playhead.gateway.access_guard import Guard
from playhead.gateway.hub import POLICY_VIOLATION, REVOKED, Hub
from playhead.gateway.peer import Peer

log: Final = logging.getLogger("playhead.gateway.access")

CHECK: Final = 2.0
"""Seconds between looks at the files: what changes there takes effect within."""


async def watch(
    guard: Guard, access: Access, hub: Hub, peers: Callable[[], Iterable[Peer]]
) -> None:
    """Look again and again, until cancelled."""
    while True:
        await asyncio.sleep(CHECK)
        if guard.refresh() and guard.keys is not None:
            access.replace(guard.keys)
        if not access.required:
            continue
        expelled = hub.expel(access.valid, clock.monotonic())
        if expelled:
            log.info("%d sessions closed: their keys are no longer valid", expelled)
        # A connection may be without a session: a viewer's, or another protocol's between two.
        for peer in peers():
            if peer.grant is not None and not access.valid(peer.grant.owner):
                asyncio.get_running_loop().call_later(
                    CHECK, peer.fail, POLICY_VIOLATION, REVOKED.message
                )
