"""Keys in ElevenLabs' first message."""

from typing import Any

import pytest
from playhead.gateway.access_offer import Offer
from playhead.gateway.dialects.base import Show
from playhead.gateway.dialects.elevenlabs_key import shown_in
from playhead.gateway.protocol_parse import ProtocolError


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ({"text": " "}, None),
        ({"text": " ", "xi_api_key": "", "authorization": ""}, None),
        ({"xi_api_key": None}, None),
        ({"xi_api_key": "ph_k_s"}, Offer(key="ph_k_s")),
        ({"xi_api_key": "pht_t"}, Offer(ticket="pht_t")),
        ({"authorization": "Bearer ph_k_s"}, Offer(key="ph_k_s")),
        ({"authorization": "ph_k_s"}, Offer(key="ph_k_s")),
        ({"authorization": "pht_t", "xi_api_key": "pht_t"}, Offer(ticket="pht_t")),
    ],
)
def test_where_the_key_may_be(message: dict[str, Any], found: Offer | None) -> None:
    assert shown_in(message) == (None if found is None else Show(found))


@pytest.mark.parametrize(
    "message", [{"xi_api_key": "a", "authorization": "b"}, {"xi_api_key": 7}, {"authorization": {}}]
)
def test_bad_ones(message: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        shown_in(message)
