"""Which pages may connect, and how many connections there may be."""

import pytest
from playhead.gateway.admission import ConnectionCaps, address_key, origin_allowed

ALLOWED = ("https://app.example",)


@pytest.mark.parametrize(
    ("origin", "host", "remote", "welcome"),
    [
        (None, "127.0.0.1:8080", False, True),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", False, True),
        ("http://localhost:3000", "127.0.0.1:8080", False, True),
        ("http://[::1]:3000", "127.0.0.1:8080", False, True),
        ("https://app.example", "127.0.0.1:8080", False, True),
        ("HTTPS://APP.EXAMPLE", "127.0.0.1:8080", False, True),
        ("https://app.example:444", "127.0.0.1:8080", False, False),
        ("http://app.example", "127.0.0.1:8080", False, False),
        ("https://app.example.evil.example", "127.0.0.1:8080", False, False),
        ("https://evilapp.example", "127.0.0.1:8080", False, False),
        ("https://user@app.example", "127.0.0.1:8080", False, False),
        ("http://localhost.evil.example", "127.0.0.1:8080", False, False),
        ("http://evil.example@localhost", "127.0.0.1:8080", False, False),
        ("null", "127.0.0.1:8080", False, False),
        ("", "127.0.0.1:8080", False, False),
        ("file://", "127.0.0.1:8080", False, False),
        ("ftp://localhost", "127.0.0.1:8080", False, False),
        ("http://localhost:notaport", "127.0.0.1:8080", False, False),
        ("http://localhost/path", "127.0.0.1:8080", False, False),
        ("http://10.0.0.5:8080", "10.0.0.5:8080", True, True),
        ("http://10.0.0.5", "10.0.0.5:80", True, True),
        ("http://10.0.0.5", "10.0.0.5:8080", True, False),
        ("https://voice.example", "voice.example", True, True),
        # DNS rebinding: another site's name that resolves to this machine.
        ("http://evil.example:8080", "evil.example:8080", False, False),
        ("http://evil.example", "", True, False),
    ],
)
def test_origins(origin: str | None, host: str, remote: bool, welcome: bool) -> None:
    assert origin_allowed(origin, host, ALLOWED, allow_remote=remote) is welcome


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_address_keys(address: str, key: str) -> None:
    assert address_key(address) == key


def test_caps_count_in_all_and_by_address() -> None:
    caps = ConnectionCaps(total_limit=3, address_limit=2)
    for _ in range(2):
        caps.enter("a")
    assert caps.refusal("a") is None
    caps.enter("a")
    assert caps.refusal("a") == "connections_per_address"
    caps.enter("b")
    assert caps.refusal("b") == "connections"
    caps.leave("a")
    caps.leave("a")
    assert caps.refusal("b") is None
    assert caps.by_address == {"a": 1, "b": 1}
    caps.leave("b")
    assert "b" not in caps.by_address


def test_flood() -> None:
    caps = ConnectionCaps(total_limit=10, address_limit=1000)
    for _ in range(111):
        caps.enter("a")
    assert not caps.flooded
    caps.enter("a")
    assert caps.flooded
