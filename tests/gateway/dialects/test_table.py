"""Paths and their dialects."""

import re

import pytest
from dialect_kit import facts
from playhead.gateway.dialects import table
from playhead.gateway.dialects.aura import Aura
from playhead.gateway.dialects.base import Dialect
from playhead.gateway.dialects.flux import Flux


@pytest.mark.parametrize(
    ("target", "kind"),
    [("/v1/speak?model=aura-2-thalia-en", Aura), ("/v2/speak?model=flux-haley-en", Flux)],
)
def test_a_path_speaks_its_dialect(target: str, kind: type[Dialect]) -> None:
    route = table.find(target)
    assert route is not None
    opening = table.opening_of(route, target, {}, ())
    assert isinstance(route.open(opening, facts(), "id"), kind)


@pytest.mark.parametrize("target", ["/", "/v1/session", "/v1/speak/", "/v3/speak?x=/v1/speak"])
def test_other_paths_speak_none(target: str) -> None:
    assert table.find(target) is None


def test_names_are_unique_and_patterns_do_not_overlap() -> None:
    assert len({route.name for route in table.ROUTES}) == len(table.ROUTES)


def test_the_opening_tells_path_query_and_what_the_path_names() -> None:
    route = table.Route("x", re.compile(r"/speak/(?P<voice>\w+)"), lambda *_: Dialect())
    target = "/speak/ada?a=1&a=2&empty=&voice=bob&t=a%20b"
    opening = table.opening_of(route, target, {"authorization": "x"}, ("token",))
    assert opening.path == "/speak/ada"
    assert opening.query == {"a": "2", "empty": "", "voice": "ada", "t": "a b"}
    assert opening.headers == {"authorization": "x"}
    assert opening.subprotocols == ("token",)
    assert table.opening_of(route, "/other?a=1", {}, ()).query == {"a": "1"}
