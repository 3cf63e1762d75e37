"""The HTTP API: paths, who may ask, and faults in the shape of the path's vendor."""

import asyncio
import json
import logging
import uuid
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

from playhead.gateway.access import Denied, Grant
from playhead.gateway.access_gate import Gate
from playhead.gateway.admission import address_key
from playhead.gateway.api import cartesia, deepgram, elevenlabs
from playhead.gateway.api.call import SpeechCall
from playhead.gateway.api.errors import (
    NOT_FOUND,
    SERVER,
    ApiError,
    from_door,
    invalid,
)
from playhead.gateway.api.openai import order_of
from playhead.gateway.api.openapi import document
from playhead.gateway.api.order import Order
from playhead.gateway.api.request import MOST_BODY, parse_speech
from playhead.gateway.api.response import SpeechResponse
from playhead.gateway.api.voices import MODELS, model_entry, model_list, voice_list
from playhead.gateway.dialects import refusals
from playhead.gateway.hub import Hub
from playhead.gateway.settings import Settings
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

log: Final = logging.getLogger("playhead.gateway.api")

Answer = Callable[[Request], Awaitable[Any]]
JSON: Final = "application/json"
NOSNIFF: Final = {"X-Content-Type-Options": "nosniff"}
ELEVENLABS: Final = "/v1/text-to-speech/"
DEEPGRAM: Final = "/v1/speak"
SHAPES: Final = (
    ("/tts/", refusals.cartesia),
    (ELEVENLABS, refusals.elevenlabs),
    (DEEPGRAM, refusals.deepgram),
)
"""Paths whose faults are told in another vendor's words than OpenAI's."""


class Api:
    """What is served. ``since``: Unix time at which the model was loaded, whole seconds.

    ``gate`` decides who may ask.
    """

    def __init__(
        self,
        hub: Hub,
        settings: Settings,
        gate: Gate,
        *,
        since: int,
    ) -> None:
        self._hub = hub
        self._settings = settings
        self._since = since
        self._gate = gate
        routes = [
            Route("/v1/audio/speech", self._guarded(self._speech), methods=["POST"]),
            Route("/v1/models", self._guarded(self._models), methods=["GET"]),
            Route("/v1/models/{model}", self._guarded(self._model), methods=["GET"]),
            Route("/v1/voices", self._guarded(self._voices), methods=["GET"]),
            Route("/v1/audio/voices", self._guarded(self._voices), methods=["GET"]),
            Route("/tts/bytes", self._guarded(self._cartesia_bytes), methods=["POST"]),
            Route("/tts/sse", self._guarded(self._cartesia_sse), methods=["POST"]),
            *self._spoken_by_elevenlabs(),
            Route(DEEPGRAM, self._guarded(self._deepgram), methods=["POST"]),
            Route("/openapi.json", self._guarded(self._openapi), methods=["GET"]),
        ]
        handlers: Any = {ApiError: _fault, HTTPException: _http_fault, Exception: _broken}
        self.app = Starlette(routes=routes, exception_handlers=handlers)

    def _spoken_by_elevenlabs(self) -> list[Route]:
        answer = self._guarded(self._elevenlabs)
        kinds = ("", "/stream", "/with-timestamps", "/stream/with-timestamps")
        paths = [f"{ELEVENLABS}{{voice}}{kind}" for kind in kinds]
        return [Route(path, answer, methods=["POST"]) for path in paths]

    def _guarded(self, answer: Answer) -> Answer:
        """Before every request: who asks, and whether there is room."""

        async def guard(request: Request) -> Any:
            try:
                request.state.grant = self._admit(request)
            except Denied as denied:
                self._hub.metrics.refused(denied.code)
                raise from_door(denied) from None
            return await answer(request)

        return guard

    def _admit(self, request: Request) -> Grant:
        """Pages of other sites may not speak through a visitor's browser; keys and load count."""
        headers, address = request.headers, client_address(request)
        self._gate.check_origin(headers.getlist("origin"), headers.getlist("host"))
        self._gate.check_load(address)
        target = request.url.path + "?" + request.url.query
        return self._gate.admit(headers.items(), target, address)

    async def _speech(self, request: Request) -> SpeechResponse:
        body = await self._body(request)
        return self._answer(request, order_of(parse_speech(body, self._hub.facts)))

    async def _cartesia_bytes(self, request: Request) -> SpeechResponse:
        body = await self._body(request)
        return self._answer(request, cartesia.read_bytes(body, self._hub.facts))

    async def _cartesia_sse(self, request: Request) -> SpeechResponse:
        body = await self._body(request)
        return self._answer(request, cartesia.read_sse(body, self._hub.facts))

    async def _deepgram(self, request: Request) -> SpeechResponse:
        body = await self._body(request)
        return self._answer(
            request, deepgram.read_speech(body, request.query_params, self._hub.facts)
        )

    async def _elevenlabs(self, request: Request) -> SpeechResponse:
        body = await self._body(request)
        voice = str(request.path_params["voice"])
        kind = request.url.path.removeprefix(ELEVENLABS).partition("/")[2]
        order = elevenlabs.read_speech(body, voice, request.query_params, self._hub.facts, kind)
        return self._answer(request, order)

    async def _body(self, request: Request) -> bytes:
        return await read_body(request, self._settings.open_timeout)

    def _answer(self, request: Request, order: Order) -> SpeechResponse:
        call = SpeechCall(self._hub, order, request.state.grant)
        return SpeechResponse(call, order, self._settings)

    async def _models(self, request: Request) -> Response:
        return json_response(model_list(self._hub.facts.model, self._since))

    async def _model(self, request: Request) -> Response:
        name = str(request.path_params["model"])
        if name not in (self._hub.facts.model, *MODELS):
            raise ApiError(
                HTTPStatus.NOT_FOUND, "there is no such model", NOT_FOUND, code="model_not_found"
            )
        return json_response(model_entry(name, self._since))

    async def _voices(self, request: Request) -> Response:
        facts = self._hub.facts
        return json_response(voice_list(facts.voices, facts.default_voice))

    async def _openapi(self, request: Request) -> Response:
        return json_response(document(self._hub.facts))


def client_address(request: Request) -> str:
    """The key of the client's address."""
    return address_key(request.client.host if request.client is not None else "")


async def read_body(request: Request, patience: float) -> bytes:
    """The whole body. Raises :class:`ApiError` when it is too long or comes too slowly."""
    try:
        async with asyncio.timeout(patience):
            return await _bounded_body(request)
    except TimeoutError:
        raise ApiError(
            HTTPStatus.REQUEST_TIMEOUT, f"the body was not there within {patience:g} s"
        ) from None
    except ClientDisconnect:
        raise invalid("the client has gone") from None


async def _bounded_body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY:
            raise ApiError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the body is too long: expected at most {MOST_BODY} bytes",
            )
    return body


def json_response(
    content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """JSON as every path of the API answers."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"
    return Response(text, status, {**NOSNIFF, **(headers or {})}, JSON)


def _fault(request: Request, fault: ApiError) -> Response:
    return _refusal(request, fault, fault.headers())


def _refusal(request: Request, fault: ApiError, headers: dict[str, str]) -> Response:
    """In the words of the vendor whose path it is; elsewhere in OpenAI's."""
    shape = next((shape for path, shape in SHAPES if request.url.path.startswith(path)), None)
    if shape is None:
        return json_response(fault.body(), fault.status, headers)
    code = fault.code or fault.type
    body, more = shape(fault.status, code, fault.message, str(uuid.uuid4()))
    return Response(body, fault.status, {**NOSNIFF, **headers, **more}, JSON)


def _http_fault(request: Request, fault: HTTPException) -> Response:
    """What the framework itself refuses: an unknown path, a wrong method."""
    told = {
        HTTPStatus.NOT_FOUND: "there is nothing at this path: /openapi.json lists what there is",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not served at this path",
    }
    status = HTTPStatus(fault.status_code)
    shown = ApiError(status, told.get(status, fault.detail), code=status.name.lower())
    return _refusal(request, shown, dict(fault.headers or {}))


def _broken(request: Request, fault: Exception) -> Response:
    """A fault of ours; the framework logs it."""
    shown = ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error", SERVER)
    return _refusal(request, shown, {})
