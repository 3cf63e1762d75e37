"""Whoever guesses keys learns nothing from how long the answer took: secrets are compared by their
digests in constant time, nowhere with ``==``, and a wrong key costs the same steps however wrong.

Times are measured by ``bench/reliability/key_timing.py``; here the steps themselves are compared,
which no busy machine can disturb.
"""

import ast
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from playhead.gateway import access_keys, session_types
from playhead.gateway.access import Access, Denied
from playhead.gateway.access_keys import ApiKey, KeyRing, new_key
from playhead.gateway.access_offer import Offer
from playhead.gateway.access_tickets import Tickets

GATEWAY = Path(access_keys.__file__).parent
WALL = 1_800_000_000.0

SECRET = {"secret", "token", "digest", "ticket", "signature", "presented", "password", "sha256"}
EQUALITY = SECRET | {"key"}
"""Of names that are compared with ``==``; before ``in``, a key is that of a map."""


def last_word(node: ast.expr) -> str:
    """What an expression is called: the last word of its last name, in the singular."""
    if isinstance(node, ast.Call | ast.Subscript):
        return last_word(node.func if isinstance(node, ast.Call) else node.value)
    name = ""
    if isinstance(node, ast.Attribute):
        name = node.attr
    elif isinstance(node, ast.Name):
        name = node.id
    return "" if name.isupper() else name.lower().rpartition("_")[2].removesuffix("s")


def secrets_compared(tree: ast.AST) -> Iterator[str]:
    """Comparisons of secrets that stop at the first difference."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            found: set[str] = set()
            if isinstance(operator, ast.Eq | ast.NotEq):
                found = {last_word(left), last_word(right)} & EQUALITY
            elif isinstance(operator, ast.In | ast.NotIn):
                found = {last_word(left)} & SECRET
            if found:
                yield ast.unparse(node)


def test_no_secret_is_compared_with_an_operator() -> None:
    found = [
        f"{path.relative_to(GATEWAY)}: {comparison}"
        for path in sorted(GATEWAY.rglob("*.py"))
        for comparison in secrets_compared(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        *("presented == key.text", "key != offer.key", "digest(shown) == kept", "a.api_key == b"),
        *("self._token in known", "secret not in (one, two)", "x < y == tokens[0]"),
        'if token == "let me in": pass',
    ],
)
def test_the_check_sees_them(source: str) -> None:
    assert list(secrets_compared(ast.parse(source)))


@pytest.mark.parametrize("source", ["name in KEY_HEADERS", "key.id == identity", "key in fields"])
def test_the_check_lets_names_and_maps_alone(source: str) -> None:
    assert not list(secrets_compared(ast.parse(source)))


Step = tuple[str, int, int]
"""File, line, and place in the bytecode."""


def steps(call: Callable[[], Any]) -> list[Step]:
    """Every bytecode of ours that ``call`` executes, in order."""
    taken: list[Step] = []

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not Path(frame.f_code.co_filename).is_relative_to(GATEWAY):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            taken.append((frame.f_code.co_filename, frame.f_lineno, frame.f_lasti))
        return trace

    def run() -> None:
        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(None)

    # A thread of its own: whoever measures this one's coverage goes on doing so.
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return taken


def wrong_keys(text: str) -> dict[str, str]:
    """Guesses that have the form of a key: the id unknown, or known and more or less right."""
    head, secret = text[:12], text[12:]
    other = "A" if secret[0] != "A" else "B"
    last = "A" if secret[-1] != "A" else "B"
    return {
        "an unknown id": f"ph_{'a' * 8}_{secret}",
        "an unknown id and secret": f"ph_{'b' * 8}_{'C' * 43}",
        "the first character wrong": head + other + secret[1:],
        "the last character wrong": text[:-1] + last,
        "nothing right": head + "".join("A" if one != "A" else "B" for one in secret),
    }


def test_a_wrong_key_goes_through_the_same_steps_however_wrong_it_is() -> None:
    text, key = new_key("a client", WALL)
    taken = {}
    for name, guess in wrong_keys(text).items():
        access = Access(KeyRing([key]), address_connections=50, wall=lambda: WALL)
        offer = Offer(key=guess)

        def attempt(access: Access = access, offer: Offer = offer) -> None:
            with pytest.raises(Denied):
                access.admit(offer, "an address", 0.0)

        taken[name] = steps(attempt)
    first = taken["nothing right"]
    assert any(line for line in first if line[0].endswith("access_keys.py"))
    assert len(first) > 50, "it was watched"
    assert {name for name, found in taken.items() if found != first} == set()


def test_the_steps_of_a_comparison_that_tells_are_seen() -> None:
    """The measure itself: a ring that looks at characters one by one is found out."""
    text, _ = new_key("a client", WALL)
    namespace: dict[str, Any] = {}
    source = "def fits(a, b):\n for x, y in zip(a, b):\n  if x != y: return False\n return True\n"
    exec(compile(source, str(GATEWAY / "leaky.py"), "exec"), namespace)
    guesses = wrong_keys(text)
    early = steps(lambda: namespace["fits"](guesses["nothing right"], text))
    late = steps(lambda: namespace["fits"](guesses["the last character wrong"], text))
    assert len(late) > 2 * len(early)


class Counted:
    """What was hashed and what was compared, by size."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hashed: list[int] = []
        self.compared: list[tuple[int, int]] = []
        sha256, compare = access_keys.hashlib.sha256, access_keys.hmac.compare_digest

        def counting_sha256(data: bytes) -> Any:
            self.hashed.append(len(data))
            return sha256(data)

        def counting_compare(a: bytes, b: bytes) -> bool:
            self.compared.append((len(a), len(b)))
            return compare(a, b)

        monkeypatch.setattr("hashlib.sha256", counting_sha256)
        monkeypatch.setattr("hmac.compare_digest", counting_compare)


def revoked(key: ApiKey) -> ApiKey:
    return ApiKey(key.id, key.name, key.digest, key.created, revoked=WALL - 1)


def test_what_is_hashed_and_compared_is_the_same_for_every_guess(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text, key = new_key("a client", WALL)
    rings = (KeyRing(), KeyRing([key]), KeyRing([revoked(key)]))
    counted = Counted(monkeypatch)
    for ring in rings:
        for guess in (*wrong_keys(text).values(), text):
            ring.recognise(guess, WALL)
    assert counted.hashed == [len(text)] * 18
    assert counted.compared == [(32, 32)] * 18


def test_tickets_and_tokens_are_looked_at_by_their_digests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tickets = Tickets()
    text = tickets.give("abcdefgh", 0.0)
    assert text is not None
    kept = session_types.digest("the token")
    counted = Counted(monkeypatch)
    assert tickets.take(text[:-1], 0.0) is None
    assert tickets.take(text, 0.0) == "abcdefgh"
    assert not session_types.token_fits("the tokem", kept)
    assert session_types.token_fits("the token", kept)
    assert counted.hashed == [len(text) - 1, len(text), 9, 9]
    assert counted.compared == [(32, 32)] * 2
