"""The table of places: one spelling, no place twice, the words of the documentation."""

from pathlib import Path

import pytest
from playhead.gateway.access_places import PLACES, PUBLIC_PROTOCOLS, Use, Where, canonical, names

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("name", ["X-API-Key", "xApiKey", "x_api_key", "XAPIKEY", "x.api key"])
def test_one_spelling(name: str) -> None:
    assert canonical(name) == "xapikey"


def test_no_place_stands_there_twice() -> None:
    found = [(place.where, canonical(place.name)) for place in PLACES]
    assert len(set(found)) == len(found)


def test_names_by_part_and_use() -> None:
    assert names(Where.PROTOCOL_NEXT) == {"token", "bearer"}
    assert names(Where.MESSAGE, Use.KEY) == {"xi_api_key", "authorization"}
    assert names(Where.MESSAGE, Use.KEY, Use.TICKET) == names(Where.MESSAGE) - {"token"}


@pytest.mark.parametrize("name", ["playhead.v1.json", "playhead.observe.v1", "realtime", "token"])
def test_protocols_that_are_no_secret(name: str) -> None:
    assert PUBLIC_PROTOCOLS.fullmatch(name)
    assert not PUBLIC_PROTOCOLS.fullmatch("playhead.ticket." + name)


def test_the_documentation_has_the_same_table() -> None:
    text = (DOCS / "security.md").read_text(encoding="utf-8")
    for where in Where:
        for use in Use:
            there = [p for p in PLACES if p.where is where and p.use is use]
            shown = ", ".join(f"`{place.name}`" for place in there)
            row = f"| {where} | {shown} | {use} |"
            assert not there or row in text, row
