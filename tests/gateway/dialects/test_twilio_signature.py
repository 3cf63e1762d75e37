"""Twilio's signatures. The first vector was made with twilio 9.13.0, ``RequestValidator``."""

import pytest
from playhead.gateway.dialects.twilio_signature import signature, signed

TOKEN = "12345"
URL = "wss://voice.example/v1/twilio"


def test_the_signature_is_that_of_twilio_s_own_library() -> None:
    assert signature(TOKEN, URL) == "XSi4FBqWoCrAo//fGbmBAEkLjtA="


@pytest.mark.parametrize(
    "base",
    [
        "wss://voice.example",
        "https://voice.example",
        "wss://voice.example:443",
        "https://voice.example:443",
    ],
)
@pytest.mark.parametrize("signed_as", [URL, URL + "/", "https://voice.example:443/v1/twilio"])
def test_what_means_the_same_is_good(base: str, signed_as: str) -> None:
    assert signed(TOKEN, base, "/v1/twilio", signature(TOKEN, signed_as))


@pytest.mark.parametrize(
    "signed_as",
    [
        "wss://voice.example/v1/other",
        "wss://other.example/v1/twilio",
        "ws://voice.example/v1/twilio",
        "wss://voice.example:8443/v1/twilio",
        "wss://voice.example/v1/twilio?a=1",
    ],
)
def test_another_url_is_not(signed_as: str) -> None:
    assert not signed(TOKEN, "wss://voice.example", "/v1/twilio", signature(TOKEN, signed_as))


def test_another_token_nothing_and_rubbish_are_not() -> None:
    for shown in (signature("54321", URL), "", "\xe9", signature(TOKEN, URL) + "="):
        assert not signed(TOKEN, "wss://voice.example", "/v1/twilio", shown)


def test_ports_of_their_own_and_addresses() -> None:
    good = signature(TOKEN, "wss://[::1]:8443/v1/twilio/pht_t")
    assert signed(TOKEN, "wss://[::1]:8443", "/v1/twilio/pht_t", good)
    assert signed(TOKEN, "wss://[::1]", "/a", signature(TOKEN, "wss://[::1]:443/a"))
    assert signed(TOKEN, "gopher://a", "/a", signature(TOKEN, "gopher://a/a"))
