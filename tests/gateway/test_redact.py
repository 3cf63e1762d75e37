"""Secrets in texts, and what only looks like one."""

import json
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from machine import undisturbed
from playhead.gateway.access_places import PLACES, Place, Where
from playhead.gateway.redact import is_secret, redact

SECRET = "hU5hhush0hush9hush7hush3hush1hush8hush2"


def camel(name: str) -> str:
    head, *tail = name.replace("_", "-").split("-")
    return head.lower() + "".join(part.capitalize() for part in tail)


def spellings(name: str) -> set[str]:
    """How else clients and libraries write a name."""
    snake, kebab = name.replace("-", "_"), name.replace("_", "-")
    flat = kebab.replace("-", "")
    upper = {kebab.upper(), snake.upper(), camel(name)[:1].upper() + camel(name)[1:]}
    return {name, snake, kebab, flat.lower(), camel(name), *upper}


def dumps(name: str, value: str) -> Iterator[str]:
    """A field in lines that libraries, servers and careless programs write."""
    raw = json.dumps({"text": "Hello.", name: value})
    yield from (f"{name}: {value}", f"{name}={value}", f"{name.encode()!r}: {value.encode()!r}")
    yield from (raw, json.dumps(raw), json.dumps({"body": json.dumps(raw)}), repr({name: value}))
    yield from (repr([(name, value), ("a", "b")]), repr(((name.encode(), value.encode()),)))
    yield from (f"Headers({{'{name}': '{value}'}})", repr({name: [value]}), f"{name} => {value}")
    yield from (repr({name: {"value": value, "expires_at": 1}}), f'{name}="two words {value}"')
    yield f"GET /v1/x?body={quote(raw, safe='')} HTTP/1.1"


def in_url(name: str, value: str) -> Iterator[str]:
    query = f"{quote(name, safe='')}={value}"
    yield from (f"GET /v1/session?{query} HTTP/1.1", f"GET /v1/session?a=b&{query}&c=d HTTP/1.1")
    yield from (f"wss://h/v1/speak?{query}#x", quote(f"wss://h/?{query}", safe=""))
    yield f"path=/v1/session?{''.join(f'%{ord(letter):02X}' for letter in name)}={value}"


def offered(name: str, value: str) -> Iterator[str]:
    """Subprotocols."""
    pair = [name, value] if name in ("token", "bearer") else [name + value]
    for names in (pair, ["playhead.v1.json", *pair], [*pair, "realtime"]):
        line = ", ".join(names)
        yield from (f"Sec-WebSocket-Protocol: {line}", f"offered: {line}", repr(names))
        yield from (json.dumps(names), repr([("Sec-WebSocket-Protocol", line)]))
        yield from (repr({b"sec-websocket-protocol": line.encode()}), f"subprotocols={names!r}")
        yield f"expected , at 9 in {line}"


def told(place: Place) -> Iterator[str]:
    """What a line may say of a secret in that place."""
    if place.where in (Where.PROTOCOL, Where.PROTOCOL_NEXT):
        yield from offered(place.name, SECRET)
    elif place.where is Where.PATH:
        yield f"GET /v1/twilio/pht_{SECRET[:32]} HTTP/1.1"
    elif place.where is Where.URL:
        for user in (SECRET, f"{SECRET}:", f"user:{SECRET}", f"{SECRET}:x"):
            yield from (f"wss://{user}@host:8080/v1/session", f"cannot reach 'http://{user}@h'")
    elif place.where is Where.QUERY:
        yield from (line for name in spellings(place.name) for line in in_url(name, SECRET))
    else:
        for name in spellings(place.name):
            value = f"Bearer {SECRET}" if "authorization" in name.lower() else SECRET
            yield from dumps(name, value)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place.where}-{place.name}")
def test_what_is_sent_in_any_place_is_blotted_out_of_any_dump_of_it(place: Place) -> None:
    lines = list(told(place))
    assert [
        line for line in lines if SECRET[:8] in redact(line) or SECRET[-8:] in redact(line)
    ] == []
    assert [line for line in lines if "***" not in redact(line)] == []
    assert [line for line in lines if redact(redact(line)) != redact(line)] == []


@pytest.mark.parametrize(
    "name",
    [
        *(
            "apiKey",
            "xApiKey",
            "XApiKey",
            "APIKey",
            "API_KEY",
            "accessToken",
            "authToken",
            "apikey",
        ),
        *("singleUseToken", "xiApiKey", "client_secret", "dbPassword", "OPENAI_API_KEY", "idToken"),
        *("kyutaiApiKey", "secretAccessKey", "Set-Cookie", "aws.credentials", "csrfToken", "jwt"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)
    assert all(SECRET not in redact(line) for line in dumps(name, SECRET))


@pytest.mark.parametrize(
    "name",
    [
        *("max_tokens", "maxTokens", "prompt_tokens", "token_count", "tokenizer", "tokens", "key"),
        *("keyboard", "monkey", "keyId", "authors", "secretary", "cookies", "firstToken", "text"),
        *("time_to_first_token", "eos_token", "nextToken", "passwords_tried", "session", ""),
    ],
)
def test_names_of_what_is_no_secret(name: str) -> None:
    assert not is_secret(name)
    for line in (f"{name}: 5", f"{name}=us", f'{{"{name}": "shift"}}', repr((name, "x"))):
        assert redact(line) == line


@pytest.mark.parametrize(
    "text",
    [
        *("Authorization: Bearer hush", "authorization=Bearer hush", '{"token": "hush"}'),
        *("ws://h/v1/session?api_key=hush&node=a", "x-api-key: hush", "password='hush'"),
        *("Secret=hush; other", "Authorization: Token hush", "'Authorization': 'Basic hush'"),
        "GET /v1/session?ticket=hush HTTP/1.1",
        "Sec-WebSocket-Protocol: playhead.v1.json, playhead.ticket.pht_hush_hush-hush_hush",
        "Sec-WebSocket-Protocol: hush",
        "xi-api-key is ph_abcdefgh_hush-hush_hush-hush",
        "%22ph_abcdefgh_hush-hush_hush-hush%22",
        *("_ph_abcdefgh_hush-hush_hush-hush", "xpht_hush_hush-hush_hush"),
        *("access_token=hush", "client_secret=hush", "single_use_token=hush", "auth_id=hush"),
        *("GET /v1/session?key=hush HTTP/1.1", "('xi-api-key', 'hush')", "(b'token', b'hush')"),
        *("Authorization: Digest hush", "token: b'hush'", "a:b:token=hush", "--api-key=hush"),
        *("no voice 'sk-proj-hush0hush0hush0'", "no voice 'ek_hush0hush0hush0hush0'"),
        "eyJhbGciOiJIUzI1NiJ9.eyJodXNoIjoiaHVzaCJ9.hush-hush",
        'Authorization: Digest username="x", nonce="1", response="hush"',
        *("Cookie: a=hush; b=hush", "{'cookie': 'a=hush; b=hush'}", "token: (hush, hush)"),
        *("{'query': {'key': 'hush-hush-hush-hush'}}", "password='it\\'s hush'"),
        "PLAYHEAD_TWILIO_TOKEN='hush' is not usable",
        "the door was shown a bearer hush",
        *("passphrase: it is hush", "{'passphrase': 'it is hush', 'a': 1}", "dbPwd=hush"),
        *("https://h/p?sig=hush", "https://h/p?a=b&X-Amz-Signature=hush", "pwd: hush"),
        *("redis://user:a@hush@host/0", "redis://user:hush@b@host", "https://hush@@h"),
        *("private_key=-----BEGIN hush", "privateKey: a b hush"),
        "-----BEGIN RSA PRIVATE KEY-----\nhush\n-hush\n-----END RSA PRIVATE KEY-----",
        *("-----BEGIN PRIVATE KEY-----\nhush hush\n",),
    ],
)
def test_secrets_are_blotted_out(text: str) -> None:
    assert "hush" not in redact(text)
    assert "***" in redact(text)


@pytest.mark.parametrize("scheme", ["Token ", "token  ", "TOKEN%20"])
def test_hexadecimal_keys_are_known_by_their_scheme(scheme: str) -> None:
    digits = "0123456789abcdef" * 2
    for key in (digits, digits + "01234567", digits.upper()):
        assert redact(f"refused: {scheme}{key}.") == f"refused: {scheme}***."
    assert redact(f"{scheme}{digits[:31]}") == f"{scheme}{digits[:31]}"


def test_what_is_between_secrets_stays() -> None:
    text = "a token=x b redis://u:p@q@h/0 c https://h/?a=b&sig=x&d=e f"
    assert redact(text) == "a token=*** b redis://***@h/0 c https://h/?a=b&sig=***&d=e f"
    head, end = "-----BEGIN EC PRIVATE KEY-----", "-----END EC PRIVATE KEY-----"
    key = f"{head}\nabc\n{end}"
    assert redact(f"a {key} b") == f"a {head}***{end} b"
    assert redact(redact(key)) == redact(key)


@pytest.mark.parametrize(
    "text",
    [
        *("tokens per second: 5", "the node=a1 is up", "no bearer", "ph_abcdefgh is known"),
        *("the bearer token is missing", "token: expected a string", "monkey=a", "token: a string"),
        *("Authorization: Bearer, then the key", "ticket: one from POST /v1/tickets", 'token=""'),
        "one key, in the header Authorization: Bearer, or one ticket",
        "Sec-WebSocket-Protocol: playhead.v1.msgpack or playhead.v1.json",
        "Sec-WebSocket-Protocol: realtime, openai-beta.realtime-v1, token",
        *(
            "token=None password: null api_key=none",
            "sort(key=len)",
            "{'key': 'two words and more'}",
        ),
        *("signal sig=TERM", "inspect.signature=f", "no token 7 of 9", "token deadbeef"),
        *("-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----", "://h/a@b"),
        *("KeyError: 'token'", "one of session, token, seq", "['session', 'token', 'seq']", ""),
        *(
            "mailto:a@b.c http://h/a@b?x=1@2 ssh://host/path",
            "basic authentication",
            "token:\nnext",
        ),
        *("task_abc_def_ghi_jkl1_mno2_pqr3", "sk-learn-is-the-name-of-a-library", "token"),
        "WARNING playhead.session: dry for 40 ms session=s1 utterance=7 epoch=3 node=a",
        '{"max_tokens": 4096, "keyboard": "us-international-with-dead-keys", "monkey": "capuchin"}',
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        *("token=", "key=", 'key="', "key='a", "?key=", "-eyJaaaaaaaa.", "-sk-", "bearer ", "://"),
        *("token, ", "(((( ", "a\\\\\\", "%22", "%2Da", "a.b-", "('token' , ", "token:  ", "ph_"),
        *(
            "://@",
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN ",
            "token ",
            "-----END",
            "passphrase: ",
        ),
        *("playhead.ticket.", "Sec-WebSocket-Protocol: ,", "cookie: ", '\\"token\\": \\"', "x"),
        "authorization: digest ",
    ],
)
def test_hostile_lines_take_linear_time(piece: str) -> None:
    def took() -> float:
        begun = time.perf_counter()
        redact(text)
        return time.perf_counter() - begun

    text = (piece * 16_000)[:16_000]
    undisturbed(took, 0.5)
