"""Where keys and tickets may stand."""

import pytest
from playhead.gateway.access_offer import Misplaced, Offer, read


@pytest.mark.parametrize(
    ("headers", "path", "found"),
    [
        ([], "/", Offer()),
        ([("Accept", "pht_x")], "/?voice=ada", Offer()),
        ([("Authorization", "Bearer K")], "/", Offer(key="K")),
        ([("authorization", "  bearer   K  ")], "/", Offer(key="K")),
        ([("Authorization", "Token K")], "/", Offer(key="K")),
        ([("Authorization", "Basic dTpw")], "/", Offer()),
        ([("Authorization", "Bearer")], "/", Offer(key="")),
        ([("Authorization", "Bearer pht_T")], "/", Offer(ticket="pht_T")),
        ([("X-API-Key", " K ")], "/", Offer(key="K")),
        ([("xi-api-key", "K"), ("Authorization", "Bearer K")], "/", Offer(key="K")),
        ([("Sec-WebSocket-Protocol", "a, playhead.ticket.pht_T")], "/", Offer(ticket="pht_T")),
        ([("Sec-WebSocket-Protocol", "openai-insecure-api-key.K,b")], "/", Offer(key="K")),
        ([("Sec-WebSocket-Protocol", "token, pht_T")], "/", Offer(ticket="pht_T")),
        ([("Sec-WebSocket-Protocol", "token")], "/", Offer()),
        ([], "/v1/session?a=1&ticket=pht_T", Offer(ticket="pht_T")),
        ([], "/v1/session?ticket=&authorization=pht_T", Offer(ticket="pht_T")),
        ([], "/v1/twilio/pht_T", Offer(ticket="pht_T")),
        ([], "/v1/twilio/pht_T?ticket=pht_T", Offer(ticket="pht_T")),
        ([], "/v1/pht_T/other", Offer()),
    ],
)
def test_where_it_may_stand(headers: list[tuple[str, str]], path: str, found: Offer) -> None:
    assert read(headers, path) == found


@pytest.mark.parametrize(
    "path",
    [
        "/?key=secret",
        "/?API_KEY=secret",
        "/?token=secret",
        "/?a=b&access_token=secret",
        "/?xi-api-key=secret",
        "/?ticket=ph_abcdefgh_secret",
        "/?note=ph%5Fabcdefgh_secret",
        "/?" + "a=1&" * 70,
        "/v1/twilio/ph_abcdefgh_secret",
        "/ph_abcdefgh_secret/twilio",
    ],
)
def test_where_it_must_not_stand(path: str) -> None:
    with pytest.raises(Misplaced) as caught:
        read([], path)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "path"),
    [
        ([("Authorization", "Bearer a"), ("Authorization", "Bearer b")], "/"),
        ([("Authorization", "Bearer a"), ("X-API-Key", "b")], "/"),
        ([("Authorization", "Bearer a")], "/?ticket=pht_t"),
        ([], "/?ticket=pht_t&ticket=pht_u"),
        ([], "/v1/twilio/pht_t?ticket=pht_u"),
    ],
)
def test_two_are_one_too_many(headers: list[tuple[str, str]], path: str) -> None:
    with pytest.raises(Misplaced, match="more than one"):
        read(headers, path)


def test_an_offer_prints_no_secret() -> None:
    shown = [repr(Offer(key="hush")), repr(Offer(ticket="hush")), repr(Offer())]
    assert shown == ["Offer(key)", "Offer(ticket)", "Offer(nothing)"]
