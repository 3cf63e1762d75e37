"""What an API key looks like, and how one is recognised."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playhead.gateway.access_keys import (
    METRICS,
    SPEAK,
    ApiKey,
    KeyFileError,
    KeyRing,
    digest,
    new_key,
    parse,
    render,
    stamp,
)
from playhead.gateway.access_quota import KEY_QUOTA, Quota

NOW = 1_800_000_000.0


def entry(**changed: Any) -> dict[str, Any]:
    plain = {
        "id": "abcdefgh",
        "name": "a client",
        "sha256": "00" * 32,
        "created": "2026-01-31T12:00:00Z",
    }
    return {name: value for name, value in (plain | changed).items() if value is not ...}


def document(*entries: Any, **changed: Any) -> str:
    return json.dumps({"version": 1, "keys": list(entries)} | changed)


def test_a_new_key_is_recognised_and_its_text_is_not_kept() -> None:
    text, key = new_key("a client", NOW)
    ring = KeyRing([key])
    assert ring.recognise(text, NOW) == key
    assert key.digest == digest(text)
    assert text[-20:] not in render(ring)
    assert text not in repr(key)
    assert len(ring) == 1


def test_keys_differ() -> None:
    made = {new_key("x", NOW)[0] for _ in range(100)}
    assert len(made) == 100
    assert len({text[:11] for text in made}) == 100


@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb", "a\x1b[31m", "\x9b"])
def test_names_are_printable(name: str) -> None:
    with pytest.raises(KeyFileError, match="control characters"):
        new_key(name, NOW)


def test_what_is_almost_a_key_is_not_recognised() -> None:
    text, key = new_key("a client", NOW)
    other, _ = new_key("another", NOW)
    ring = KeyRing([key])
    wrong = [
        *("", "ph_", text[:-1], text + "x", text.upper(), " " + text, text + "\x00", other),
        *(text[:12] + other[12:], other[:12] + text[12:], "ph_" + key.id, key.digest.hex()),
        *("\ud800", "x" * 100_000, text + "y" * 300),
    ]
    assert [ring.recognise(found, NOW) for found in wrong] == [None] * len(wrong)


@given(st.text(max_size=80))
def test_no_text_is_a_key_by_chance(text: str) -> None:
    assert KeyRing([new_key("a client", NOW)[1]]).recognise(text, NOW) is None


def test_revoked_and_expired_keys_open_nothing() -> None:
    text, key = new_key("a client", NOW, expires=NOW + 10)
    ring = KeyRing([key])
    assert ring.recognise(text, NOW + 9.9) == key
    assert ring.recognise(text, NOW + 10) is None
    assert ring.usable(key.id, NOW) == key
    assert ring.usable(key.id, NOW + 10) is None
    assert ring.usable("unknown1", NOW) is None
    assert KeyRing([replace(key, revoked=NOW)]).recognise(text, NOW) is None


def test_every_attempt_costs_one_digest_and_one_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However wrong it is: time says nothing about which ids there are."""
    compared: list[tuple[int, int]] = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((len(a), len(b)))
        return a == b

    monkeypatch.setattr("playhead.gateway.access_keys.hmac.compare_digest", compare)
    text, key = new_key("a client", NOW)
    for presented in (text, text[:-1] + "!", text[:-1] + "A", "ph_aaaaaaaa_" + "A" * 43, ""):
        KeyRing([key]).recognise(presented, NOW)
    assert compared == [(32, 32)] * 5


def test_a_file_gives_back_what_was_written() -> None:
    keys = [
        new_key("plain", NOW)[1],
        new_key("all", NOW, expires=NOW + 1, roles=(METRICS, SPEAK), quota=Quota(1, 2, 3))[1],
        replace(new_key("revoked", NOW)[1], revoked=NOW + 5),
    ]
    assert parse(render(KeyRing(keys))).keys == tuple(keys)


def test_absent_fields_have_defaults() -> None:
    (key,) = parse(document(entry())).keys
    assert key == ApiKey("abcdefgh", "a client", bytes(32), 1_769_860_800.0)
    assert key.quota == KEY_QUOTA
    assert key.roles == (SPEAK,)
    assert stamp(key.created) == "2026-01-31T12:00:00Z"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", '"version": 1'),
        ("{}", '"version": 1'),
        (document(version=2), '"version": 1'),
        (document(keys={}), "a list"),
        (document(7), "key 1 of the list: expected an object"),
        (document(entry(), entry(id="abcdefgi", name=...)), "key 2 of the list: 'name' is missing"),
        (document(entry(), entry()), "an id appears twice"),
        (document(entry(id="ABC")), "id: expected eight"),
        (document(entry(id=7)), "id: expected eight"),
        (document(entry(name="a\nb")), "name: expected"),
        (document(entry(sha256="00")), "sha256: expected 64"),
        (document(entry(sha256=None)), "sha256: expected 64"),
        (document(entry(created="today")), "created: expected a time"),
        (document(entry(created="2026-01-31T12:00:00")), "created: expected a time"),
        (document(entry(created=5)), "created: expected a time"),
        (document(entry(expires="x")), "expires: expected a time"),
        (document(entry(roles="speak")), "roles: expected a list"),
        (document(entry(roles=[])), "roles: expected a list"),
        (document(entry(roles=["root"])), "roles: expected a list"),
        (document(entry(colour="red")), "unknown fields 'colour'"),
        (document(entry(streams=0)), "streams: expected a whole number"),
        (document(entry(connections=True)), "connections: expected a whole number"),
        (document(entry(characters_per_minute=1.5)), "characters_per_minute: expected a whole"),
    ],
)
def test_a_broken_file_says_where(text: str, says: str) -> None:
    with pytest.raises(KeyFileError) as caught:
        parse(text)
    assert says in str(caught.value)
