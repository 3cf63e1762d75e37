"""``X-Twilio-Signature``: whether a request was made by Twilio for the account whose token we know.

The signature is the base64 of an HMAC-SHA1, keyed with the account's auth token, of the URL as it
stands in the application; POST parameters would follow it, and a WebSocket's request has none. What
reaches us may differ from that URL in ways that mean the same: the scheme behind a proxy, a port
that is the scheme's own, a slash at the end. No variant can be signed without the token, so each of
them is good. The URL has no time in it: a signature stays good for as long as its URL does.

Source: twilio.com/docs/usage/security, "Validating requests".
"""

import base64
import hashlib
import hmac
from collections.abc import Iterator
from itertools import product
from urllib.parse import urlsplit

HEADER = "X-Twilio-Signature"
PORTS = {"wss": 443, "https": 443, "ws": 80, "http": 80}
SECURE = {"wss": "https", "https": "wss", "ws": "http", "http": "ws"}
"""The same transport in the other protocol's name."""


def signature(token: str, url: str) -> str:
    """What Twilio sends with a request of no parameters for ``url``."""
    digest = hmac.new(token.encode(), url.encode(), hashlib.sha1).digest()
    return base64.b64encode(digest).decode("ascii")


def signed(token: str, base: str, target: str, shown: str) -> bool:
    """Whether ``shown`` signs the request target (path and query) at ``base``
    (``wss://HOST[:PORT]``)."""
    found = False
    for url in _urls(base, target):  # all of them, so that time tells nothing
        found |= hmac.compare_digest(signature(token, url).encode(), shown.encode())
    return found


def _urls(base: str, target: str) -> Iterator[str]:
    parts = urlsplit(base)
    scheme, host = parts.scheme, parts.netloc
    port = PORTS.get(scheme)
    hosts = {host, host.removesuffix(f":{port}")}
    if ":" not in host.rpartition("]")[2]:
        hosts.add(f"{host}:{port}")
    targets = {target, target.removesuffix("/"), target + "/"}
    for variant in product({scheme, SECURE.get(scheme, scheme)}, hosts, targets):
        yield "{}://{}{}".format(*variant)
