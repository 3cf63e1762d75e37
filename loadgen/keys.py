"""The key that a target may want. An environment variable names it, so that it stands in no command
line, no plan and no record."""

import os

from playhead.loadgen.plan import Plan

REFUSED = frozenset({401, 403})
"""HTTP statuses of a server that does not take the key, or wants one."""


def key_headers(plan: Plan) -> dict[str, str]:
    """HTTP headers that carry the plan's key (RFC 6750, section 2.1); none without one."""
    key = os.environ.get(plan.key_from, "") if plan.key_from else ""
    return {"Authorization": f"Bearer {key}"} if key else {}
