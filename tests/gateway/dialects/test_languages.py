"""Languages under the names that vendors use."""

from dataclasses import replace

import pytest
from dialect_kit import facts
from playhead.gateway.dialects.languages import language_of
from playhead.gateway.protocol_parse import ProtocolError

KNOWN = replace(facts(), languages=("english", "german", "auto"))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, None),
        ({"language": None}, None),
        ({"language": ""}, None),
        ({"language": "en"}, "english"),
        ({"language": "de-AT"}, "german"),
        ({"language": "en_US"}, "english"),
        ({"language": "German"}, "german"),
        ({"language": "auto"}, "auto"),
    ],
)
def test_codes_and_names_are_known(given: dict[str, str | None], found: str | None) -> None:
    assert language_of(given, "language", KNOWN) == found


def test_a_model_that_names_no_language_is_asked_for_none() -> None:
    assert language_of({"language": "fr"}, "language", facts()) is None


@pytest.mark.parametrize("name", ["fr", "klingon", "x-y"])
def test_others_are_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        language_of({"language": name}, "language", KNOWN)
    assert caught.value.code == "unknown_language"
    assert caught.value.expected == "language: one of de, en, english, german, auto"
