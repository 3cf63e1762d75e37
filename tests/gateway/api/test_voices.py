"""OpenAI's names for voices and models."""

from playhead.gateway.api.voices import (
    MODELS,
    VOICES,
    find_voice,
    model_list,
    voice_list,
)


def test_thirteen_names_are_known_wherever_there_is_a_voice() -> None:
    assert len(VOICES) == len(set(VOICES)) == 13
    assert {find_voice(name, ("one",)) for name in VOICES} == {"one"}


def test_different_names_are_different_voices_where_there_are_enough() -> None:
    served = tuple(f"v{n}" for n in range(20))
    assert len({find_voice(name, served) for name in VOICES}) == 13


def test_a_served_voice_of_that_name_wins() -> None:
    assert find_voice("nova", ("deep", "nova")) == "nova"
    assert find_voice("deep", ("deep", "nova")) == "deep"
    assert find_voice("nobody", ("deep", "nova")) is None


def test_the_list_tells_which_names_stand_for_which_voice() -> None:
    listed = voice_list(("alloy", "other"), "other")
    assert listed["voices"] == ["alloy", "other"]
    first, second = listed["data"]
    assert (first["id"], first["default"]) == ("alloy", False)
    assert (second["id"], second["default"]) == ("other", True)
    assert "alloy" not in first["aliases"]
    assert sorted([*first["aliases"], *second["aliases"], "alloy"]) == sorted(VOICES)


def test_the_loaded_model_leads_the_list() -> None:
    listed = model_list("hibari", 1_700_000_000)
    assert [entry["id"] for entry in listed["data"]] == ["hibari", *MODELS]
    assert listed["data"][0]["created"] == 1_700_000_000
