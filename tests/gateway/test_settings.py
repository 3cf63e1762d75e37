"""Flags and environment become settings, or a message that says what to do."""

import argparse
from dataclasses import fields

import pytest
from playhead.engine.lead import LeadLimits
from playhead.engine.types import Urgency
from playhead.gateway.settings import (
    OPTIONS,
    Settings,
    SettingsError,
    add_arguments,
    from_args,
    is_loopback,
)


def parse(*arguments: str, **environ: str) -> Settings:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return from_args(parser.parse_args(arguments), environ)


def test_every_field_has_an_option() -> None:
    assert [item.name for item in fields(Settings)] == [option.name for option in OPTIONS]


def test_defaults() -> None:
    assert parse() == Settings()


def test_flag_wins_over_environment_over_default() -> None:
    assert parse(PLAYHEAD_PORT="1234").port == 1234
    assert parse("--port", "99", PLAYHEAD_PORT="1234").port == 99


def test_values_of_all_kinds() -> None:
    settings = parse(
        *("--lead", "1.5", "--urgency", "ESTIMATED", "--voice", " alto ", "--log-level", "Debug"),
        *("--origins", "https://App.example/, http://b.example:81", "--drain-timeout", "2.5"),
        "--open",
        PLAYHEAD_SLOW_HOLD="0.5",
    )
    assert settings.urgency is Urgency.ESTIMATED
    assert settings.lead == LeadLimits(fixed=1.5)
    assert settings.voice == "alto"
    assert settings.log_level == "debug"
    assert settings.origins == ("https://app.example", "http://b.example:81")
    assert settings.drain_timeout == 2.5
    assert settings.open is True
    assert settings.slow_hold == 0.5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--port", "http"], "--port='http' is not usable: expected a whole number from 0"),
        (["--port", "65536"], "from 0 to 65535"),
        (["--urgency", "guess"], "reported, estimated, none"),
        (["--drain-timeout", "nan"], "seconds from 0 to 3600"),
        (["--drain-timeout", "soon"], "seconds from 0 to 3600"),
        (["--origins", "app.example"], "origins such as https://app.example"),
        (["--origins", "https://a.example/page"], "origins such as"),
        (["--log-level", "loud"], "debug, info, warning, error"),
        (["--voice", "  "], "not empty"),
        (["--max-connections", "0"], "from 1"),
        (["--lead", "long"], "--lead='long' is not usable: expected 'learned'"),
    ],
)
def test_bad_flags_say_what_is_right(arguments: list[str], says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(*arguments)
    assert says in str(caught.value)


def test_bad_environment_names_the_variable() -> None:
    with pytest.raises(SettingsError, match="PLAYHEAD_OPEN='maybe'"):
        parse(PLAYHEAD_OPEN="maybe")


def test_a_secret_in_the_wrong_setting_is_not_repeated() -> None:
    key = "ph_abcdefgh_" + "hush" * 11
    for variable, value in (("TWILIO_URL", "https://me:hush@voice.example"), ("OPEN", key)):
        with pytest.raises(SettingsError, match=r"\*\*\*") as caught:
            parse(**{f"PLAYHEAD_{variable}": value})
        assert "hush" not in str(caught.value)


def test_environment_booleans() -> None:
    assert parse(PLAYHEAD_OPEN="yes").open is True
    assert parse(PLAYHEAD_OPEN="0").open is False


def test_other_machines_are_served_only_on_demand() -> None:
    with pytest.raises(SettingsError, match="--open"):
        parse("--host", "0.0.0.0")
    assert parse("--host", "0.0.0.0", "--open").host == "0.0.0.0"


def test_contradicting_timeouts() -> None:
    with pytest.raises(SettingsError, match="slow_close"):
        Settings(slow_hold=2.0, slow_close=1.0)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("::", False),
        ("localhost.example", False),
        ("10.0.0.1", False),
    ],
)
def test_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_twilio_is_set_where_no_process_list_shows_it() -> None:
    environ = {
        "PLAYHEAD_TWILIO_TOKEN": " 12345 ",
        "PLAYHEAD_TWILIO_URL": "wss://voice.example:8443/",
    }
    settings = parse(**environ)
    assert (settings.twilio_token, settings.twilio_url) == ("12345", "wss://voice.example:8443")
    assert "12345" not in repr(settings)
    for bad in ("voice.example", "https://voice.example", "wss://voice.example/v1", "wss://"):
        with pytest.raises(SettingsError, match="PLAYHEAD_TWILIO_URL"):
            parse(PLAYHEAD_TWILIO_URL=bad)
