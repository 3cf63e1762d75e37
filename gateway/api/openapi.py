"""The OpenAPI 3.1 description of the HTTP API, made from the same tables that check requests."""

from typing import Any

from playhead.gateway.api.body import EVENTS, FORMATS
from playhead.gateway.api.request import FASTEST, MOST_INPUT, SLOWEST, STREAM_FORMATS
from playhead.gateway.api.voices import MODELS, VOICES
from playhead.gateway.session_types import ServerFacts

_JSON = "application/json"
VENDORS = {
    "/tts/bytes": ("Cartesia: a body of sound", "audio/*"),
    "/tts/sse": ("Cartesia: events, with word times where they are asked for", EVENTS),
    "/v1/speak": ("Deepgram: a body of sound", "audio/*"),
    "/v1/text-to-speech/{voice}": ("ElevenLabs: a body of sound", "audio/*"),
    "/v1/text-to-speech/{voice}/stream": ("ElevenLabs: the same", "audio/*"),
    "/v1/text-to-speech/{voice}/with-timestamps": (
        "ElevenLabs: sound and its characters' times in one object",
        _JSON,
    ),
    "/v1/text-to-speech/{voice}/stream/with-timestamps": (
        "ElevenLabs: one object a line as speech is made",
        _JSON,
    ),
}
"""Paths that answer as another vendor's do: summary and media type."""


def document(facts: ServerFacts) -> dict[str, Any]:
    """For ``GET /openapi.json``."""
    version = facts.server.rpartition(" ")[2]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Playhead", "version": version, "license": {"name": "Apache-2.0"}},
        "paths": {
            "/v1/audio/speech": {"post": _speech()},
            "/v1/models": {"get": _list("Models that may be asked for")},
            "/v1/models/{model}": {"get": _model()},
            "/v1/voices": {"get": _list("Voices, and the names that stand for them")},
            **{path: {"post": _vendor(path, *told)} for path, told in VENDORS.items()},
        },
        "components": {
            "schemas": {"SpeechRequest": _request(facts), "Error": _error()},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _speech() -> dict[str, Any]:
    binary = {"schema": {"type": "string", "format": "binary"}}
    types = [form.media_type for form in FORMATS.values()]
    content: dict[str, Any] = dict.fromkeys(types, binary)
    content[EVENTS] = {"schema": {"type": "string"}}
    return {
        "summary": "Speak a text; the answer streams from the first chunk of speech",
        "operationId": "createSpeech",
        "requestBody": {
            "required": True,
            "content": {_JSON: {"schema": {"$ref": "#/components/schemas/SpeechRequest"}}},
        },
        "responses": {
            "200": {"description": "Speech", "content": content},
            **_faults("400", "401", "404", "429", "503"),
        },
    }


def _vendor(path: str, summary: str, media_type: str) -> dict[str, Any]:
    found = {"description": "Speech", "content": {media_type: {"schema": {}}}}
    told: dict[str, Any] = {
        "summary": summary,
        "description": "The request, and the shape of faults, are the vendor's: docs/clients.md",
        "requestBody": {"required": True, "content": {_JSON: {"schema": {"type": "object"}}}},
        "responses": {"200": found},
    }
    if "{voice}" in path:
        schema = {"type": "string"}
        told["parameters"] = [{"name": "voice", "in": "path", "required": True, "schema": schema}]
    return told


def _model() -> dict[str, Any]:
    name = {"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}
    return _list("One model") | {"parameters": [name]}


def _list(summary: str) -> dict[str, Any]:
    found = {"description": "Found", "content": {_JSON: {"schema": {"type": "object"}}}}
    return {"summary": summary, "responses": {"200": found, **_faults("401", "404")}}


def _faults(*statuses: str) -> dict[str, Any]:
    content = {_JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {status: {"description": "Refused", "content": content} for status in statuses}


def _request(facts: ServerFacts) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["model", "input", "voice"],
        "additionalProperties": False,
        "properties": {
            "model": {"type": "string", "enum": [facts.model, *MODELS]},
            "input": {"type": "string", "minLength": 1, "maxLength": MOST_INPUT},
            "voice": {"type": "string", "enum": list(dict.fromkeys([*facts.voices, *VOICES]))},
            "instructions": {"type": "string", "description": "For models that take any"},
            "response_format": {"type": "string", "enum": list(FORMATS), "default": "mp3"},
            "speed": {"type": "number", "minimum": SLOWEST, "maximum": FASTEST, "default": 1},
            "stream_format": {
                "type": "string",
                "enum": list(STREAM_FORMATS),
                "default": STREAM_FORMATS[0],
            },
        },
    }


def _error() -> dict[str, Any]:
    text = {"type": ["string", "null"]}
    names = ("message", "type", "param", "code")
    inner = {"type": "object", "properties": dict.fromkeys(names, text)}
    return {"type": "object", "required": ["error"], "properties": {"error": inner}}
