"""The OpenAPI document says what the checks do."""

from harness import facts
from playhead.gateway.api.openapi import VENDORS, document
from playhead.gateway.api.request import _FIELDS, FORMATS


def test_every_field_that_is_checked_is_described() -> None:
    schema = document(facts())["components"]["schemas"]["SpeechRequest"]
    assert set(schema["properties"]) == set(_FIELDS)
    assert set(schema["required"]) == {"model", "input", "voice"}
    assert set(schema["properties"]["response_format"]["enum"]) == set(FORMATS)
    assert {"alto", "tenor", "alloy"} <= set(schema["properties"]["voice"]["enum"])


def test_references_lead_somewhere() -> None:
    whole = document(facts())
    names = whole["components"]["schemas"]
    found = [part.split('"')[0] for part in str(whole).replace("'", '"').split("/schemas/")[1:]]
    assert set(found) == {"SpeechRequest", "Error"} <= set(names)


def test_every_path_of_another_vendor_is_described() -> None:
    paths = document(facts())["paths"]
    for path in VENDORS:
        told = paths[path]["post"]
        assert ("parameters" in told) == ("{voice}" in path)
        assert told["responses"]["200"]["content"]


def test_version_is_the_servers() -> None:
    assert document(facts())["info"]["version"] == "test"
