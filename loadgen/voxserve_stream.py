"""VoxServe's endpoints for text in pieces: ``/generate/stream/…``, two connections an utterance.

By its public source (vox_serve/launch.py of 0.1.0): ``POST …/start`` with a form (``speaker`` for
models with named voices) is answered with ``{"request_id": …}``. Then ``GET …/ID/audio`` streams a
WAV file while ``POST …/ID/text`` (field ``text``) brings pieces, and ``POST …/ID/end`` says that
there are no more. It speaks once it holds 20 characters, or all (typist.py). Nothing cancels. The
start is sent with the first piece, so that it counts.
"""

import json
from collections import deque
from collections.abc import Callable, Sequence
from urllib.parse import urlencode

from playhead.engine.clock import monotonic
from playhead.gateway.messages import Cancel, ClientMessage, End, Text
from playhead.loadgen.habits import Caller
from playhead.loadgen.http_body import BadResponse, Response
from playhead.loadgen.http_speech import Dialect, SpeechRequest, connected, message
from playhead.loadgen.line import Line, connect
from playhead.loadgen.plan import Plan

PATH = "/generate/stream"
_FORM = "application/x-www-form-urlencoded"


class Control:
    """The connection that carries text: one request at a time, each answered before the next.

    ``started`` takes the request's id, ``refused`` a status that is not 200, ``lost`` the reason
    and the fault of a connection that is of no more use."""

    def __init__(
        self,
        plan: Plan,
        started: Callable[[str], None],
        refused: Callable[[int], None],
        lost: Callable[[str, str], None],
    ) -> None:
        self.line: Line | None = None
        self._plan = plan
        self._started = started
        self._refused = refused
        self._lost = lost
        self._id = ""
        self._waiting: deque[tuple[str, dict[str, str]]] = deque()
        self._response: Response | None = None  # to the request under way
        self._body = b""

    def ask(self, step: str, form: dict[str, str]) -> None:
        """``start``, ``text`` or ``end``, after all that was asked before."""
        self._waiting.append((step, form))
        self._next()

    def received(self, data: bytes, at: float) -> None:
        """See :class:`~playhead.loadgen.line.Receiver`."""
        if self._response is None:
            return
        try:
            self._body += self._response.feed(data)
        except BadResponse as error:
            self._stop()
            self._lost(str(error), "protocol")
            return
        if self._response.status not in (0, 200):
            status = self._response.status
            self._stop()
            self._refused(status)
        elif self._response.over:
            self._answered()

    def settled(self, now: float) -> None:
        """See :class:`~playhead.loadgen.line.Receiver`."""

    def closed(self, reason: str) -> None:
        """See :class:`~playhead.loadgen.line.Receiver`. After ``end`` nothing is missed."""
        if self._response is not None or self._waiting:
            self._stop()
            self._lost(reason or "the connection of the text was closed", "connection_lost")

    def _next(self) -> None:
        if self._response is None and self._waiting and self.line is not None:
            step, form = self._waiting.popleft()
            self._response, self._body = Response(), b""
            content = (_FORM, urlencode(form).encode())
            self.line.write(message(self._plan, "POST", self._path(step), content))

    def _path(self, step: str) -> str:
        return f"/{step}" if step == "start" else f"/{self._id}/{step}"

    def _answered(self) -> None:
        self._response = None
        if not self._id:
            self._id = _request_id(self._body)
            if not self._id:
                self._stop()
                self._lost(f"{self._body[:40]!r} names no request_id", "protocol")
                return
            self._started(self._id)
        self._next()

    def _stop(self) -> None:
        self._response = None
        self._waiting.clear()


class StreamRequest(SpeechRequest):
    """Its own line streams the audio; a second one carries the text."""

    def __init__(self, plan: Plan, caller: Caller, number: int) -> None:
        super().__init__(plan, _AUDIO, caller, number)
        self._asked = False
        self._control = Control(plan, self._begun, self._text_refused, self._text_lost)

    async def dial(self, host: str, port: int, secure: bool) -> None:
        """Both. Raises ``OSError``."""
        await super().dial(host, port, secure)
        try:
            self._control.line = await connect(host, port, secure, self._control)
        except BaseException:
            await super().close()
            raise

    async def close(self) -> None:
        """See :class:`~playhead.loadgen.session.Session`."""
        await super().close()
        if self._control.line is not None:
            self._control.line.abort()

    def _send(self, messages: Sequence[ClientMessage]) -> None:
        for said in messages:
            match said:
                case Text(text):
                    if self._first():
                        voice = self._plan.voice
                        self._control.ask("start", {"speaker": voice} if voice else {})
                    self._control.ask("text", {"text": text})
                case End():
                    self._control.ask("end", {})
                case Cancel():
                    self._hang_up()
                case _:
                    pass  # it takes no reports

    def _first(self) -> bool:
        first, self._asked = not self._asked, True
        return first

    def _begun(self, name: str) -> None:
        assert self._line is not None
        self._line.write(message(self._plan, "GET", f"/{name}/audio", None, "Connection: close"))

    def _text_refused(self, status: int) -> None:
        """Where it has spoken to its end already, it need not take more."""
        assert self._turn is not None
        if not self._response.over:
            now = monotonic()
            self._turn.take(self._refused(status), 0, now)
            self.settled(now)

    def _text_lost(self, reason: str, fault: str) -> None:
        assert self._turn is not None
        if not self._response.over:
            now = monotonic()
            self._turn.lost(reason, now, fault)
            self.settled(now)


_AUDIO = Dialect(lambda plan, text: (_FORM, b""), wav=True)
"""What is asked for by this module; only the shape of the answer counts."""


def _request_id(body: bytes) -> str:
    try:
        answer = json.loads(body)
    except ValueError:
        return ""
    return str(answer.get("request_id", "")) if isinstance(answer, dict) else ""


async def open_stream(url: str, plan: Plan, caller: Caller, number: int) -> StreamRequest:
    """Connect only. Raises :class:`~playhead.loadgen.session.SessionError`."""
    session = StreamRequest(plan, caller, number)
    await connected(url, session)
    return session
