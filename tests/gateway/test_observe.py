"""Orders in, pictures out: what a viewer may ask for and is told."""

import json

import pytest
from fake_engine import FakeEngine
from playhead.engine.picture import Belief, EnginePicture
from playhead.engine.types import Lane
from playhead.gateway import observe
from playhead.gateway.observe import CrowdOrder, Throttle, Watch
from playhead.gateway.protocol_parse import ProtocolError


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ('{"type":"watch"}', Watch()),
        ('{"type":"watch","session":"abc"}', Watch("abc")),
        ('{"type":"crowd","listeners":0}', CrowdOrder(0)),
        ('{"type":"crowd","listeners":50,"reports":false}', CrowdOrder(50, False)),
    ],
)
def test_orders(text: str, order: observe.Order) -> None:
    assert observe.parse(text) == order


@pytest.mark.parametrize(
    ("text", "code", "names"),
    [
        (b"\x00", "bad_message", "binary"),
        ("[]", "bad_message", "map"),
        ("{", "bad_message", "JSON"),
        ("{}", "unknown_type", "None"),
        ('{"type":7}', "unknown_type", "7"),
        ('{"type":"dance"}', "unknown_type", "dance"),
        ('{"type":"watch","colour":1}', "unknown_field", "colour"),
        ('{"type":"watch","session":1}', "bad_value", "session"),
        ('{"type":"crowd"}', "missing_field", "listeners"),
        ('{"type":"crowd","listeners":101}', "bad_value", "101"),
        ('{"type":"crowd","listeners":-1}', "bad_value", "-1"),
        ('{"type":"crowd","listeners":1,"reports":"no"}', "bad_value", "reports"),
        ('{"type":"watch","session":"' + "x" * 5000 + '"}', "bad_message", "bytes"),
    ],
)
def test_bad_orders_are_named(text: str | bytes, code: str, names: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        observe.parse(text)
    assert caught.value.code == code
    assert names in caught.value.message
    told = json.loads(observe.error(caught.value))
    assert (told["type"], told["code"]) == ("error", code)
    assert told["expected"]


def test_a_throttle_keeps_its_pace_and_one_picture_on_its_way() -> None:
    throttle = Throttle(5.0)
    assert throttle.wait(5.0) == 0.0
    assert throttle.ask(5.0)
    assert not throttle.ask(5.05)
    assert throttle.wait(5.05) == pytest.approx(0.05)
    assert not throttle.ask(5.2), "the first one has not come"
    throttle.answered()
    assert not throttle.ask(5.25)
    assert throttle.ask(5.31)


def test_the_offer_says_why_not() -> None:
    assert json.loads(observe.offer(True)) == {
        "observe": True,
        "crowd_listeners": observe.MOST_LISTENERS,
        "reason": "",
    }
    refused = json.loads(observe.offer(False))
    assert (refused["observe"], refused["crowd_listeners"]) == (False, 0)
    assert "--demo" in refused["reason"]


def seen() -> EnginePicture:
    running = {lane: ((1, 2),) for lane in Lane}
    beliefs = {4: Belief(0.5, 0.75, 2.0, 0.1, False, False)}
    slack = {Lane.URGENT: 0.25, Lane.LM: None}
    return EnginePicture(FakeEngine(lambda events: None).stats(), running, beliefs, slack)


def test_stats_are_milliseconds() -> None:
    told = json.loads(observe.stats(seen(), 4, 3, {"listeners": 0}))
    assert told["type"] == "stats"
    assert (told["sessions"], told["crowd"]) == (3, {"listeners": 0})
    assert told["lanes"]["urgent"] == {
        "running": [[1, 2]],
        "workers": 1,
        "batches": 0,
        "waiting": 1,
        "busy": 2500.0,
        "dispatches": 3,
        "items": 4,
        "sojourn": 10.0,
        "slack": 250.0,
    }
    assert [told["lanes"][lane]["slack"] for lane in ("background", "lm")] == [None, None]
    assert told["own"] == {
        "utterance": 4,
        "depth": 500.0,
        "runway": 750.0,
        "lead": 2000.0,
        "margin": 100.0,
        "frozen": False,
        "estimated": False,
    }


@pytest.mark.parametrize("own", [None, 9])
def test_nothing_is_believed_of_nobody(own: int | None) -> None:
    assert json.loads(observe.stats(seen(), own, 0, {}))["own"] is None
