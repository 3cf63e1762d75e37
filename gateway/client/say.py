"""``playhead say``: speak a text through a running server, into a WAV file or a loudspeaker."""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TextIO

from playhead.client.connection import connect
from playhead.client.errors import ConnectionFailed, PlayheadError
from playhead.client.feed import feed, standard_input
from playhead.client.progress import Progress
from playhead.client.speaker import Speaker, SpeakerMissing
from playhead.client.utterance import Utterance
from playhead.client.voice import Voice
from playhead.codecs.registry import UnsupportedCodec, UnsupportedRate
from playhead.codecs.wav import WavWriter

DEFAULT_URL = "ws://127.0.0.1:8080"
OK, FAILED, USAGE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130
_FILE_RATE = 2.0  # into a file nobody listens: ask for sound twice as fast as real time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of ``playhead say``."""
    parser.description = (
        "Speak a text through a running server. Without a text, or with '-', the text is taken "
        "from standard input and spoken while it arrives."
    )
    parser.epilog = (
        "The API key, if the server asks for one, is taken from PLAYHEAD_API_KEY. "
        "Exit status: 0 spoken; 1 the server could not speak it; 2 wrong usage; 3 no server; "
        "130 interrupted (the file holds what had arrived)."
    )
    parser.add_argument("text", nargs="?", help="what to say; '-' for standard input")
    parser.add_argument("--stdin", action="store_true", help="take the text from standard input")
    parser.add_argument("--out", metavar="FILE", help="write a 16-bit WAV file ('-': to stdout)")
    parser.add_argument("--play", action="store_true", help="play through the loudspeaker")
    parser.add_argument(
        "--url",
        default=os.environ.get("PLAYHEAD_URL", DEFAULT_URL),
        help=f"server (default PLAYHEAD_URL, or {DEFAULT_URL})",
    )
    parser.add_argument("--voice", help="default: the server's")
    parser.add_argument("--language", help="of the text, e.g. german (default: the server's)")
    parser.add_argument(
        "--instruct", help="how to speak, in words, where the server's model takes that"
    )
    parser.add_argument("--speed", type=float, default=1.0, help="0.5 to 2.0 (default 1.0)")
    parser.add_argument(
        "--codec",
        default="pcm_s16le",
        help="on the wire: pcm_s16le, pcm_f32le, opus, mulaw, alaw (default pcm_s16le)",
    )
    parser.add_argument(
        "--rate", type=int, help="sample rate in Hz (default 24000; 8000 for mulaw and alaw)"
    )


@dataclass(frozen=True)
class _Wish:
    """The command line, understood."""

    text: str | None  # None: from standard input
    out: str | None
    play: bool
    url: str
    options: dict[str, Any]  # for connect


def run(args: argparse.Namespace) -> int:
    """Do what the command line says; returns the exit status."""
    from_stdin = args.stdin or args.text in (None, "-")
    if args.stdin and args.text not in (None, "-"):
        return _complain("give a text or --stdin, not both", USAGE)
    if args.out is None and not args.play:
        return _complain("where to? Give --out FILE, --play, or both", USAGE)
    rate = args.rate or (8000 if args.codec in ("mulaw", "alaw") else 24000)
    wish = _Wish(
        text=None if from_stdin else args.text,
        out=args.out,
        play=args.play,
        url=args.url,
        options={
            "key": os.environ.get("PLAYHEAD_API_KEY"),  # no flag: others can see those
            "voice": args.voice,
            "speed": args.speed,
            "language": args.language,
            "instruct": args.instruct,
            "codec": args.codec,
            "sample_rate": rate,
            "playback_rate": 1.0 if args.play else _FILE_RATE,
        },
    )
    try:
        asyncio.run(_say(wish, sys.stderr))
    except KeyboardInterrupt:
        return INTERRUPTED
    except ConnectionFailed as error:
        hint = "" if error.status else "; start a server with 'playhead serve' or 'make run'"
        return _complain(f"{error}{hint}", UNREACHABLE)
    except (SpeakerMissing, UnsupportedCodec, UnsupportedRate) as error:
        return _complain(str(error), USAGE)
    except PlayheadError as error:
        return _complain(str(error), FAILED)
    except OSError as error:
        return _complain(f"cannot write {args.out}: {error.strerror}", FAILED)
    return OK


def _complain(message: str, status: int) -> int:
    print(f"playhead say: {message}", file=sys.stderr)
    return status


async def _say(wish: _Wish, stderr: TextIO) -> None:
    progress = Progress(stderr)
    with ExitStack() as outputs:
        # Before the connection: a missing device should not cost the server a session.
        speaker = Speaker(wish.options["sample_rate"]) if wish.play else None
        if speaker is not None:
            outputs.callback(speaker.close)
            wish.options["output_latency"] = speaker.latency
        async with connect(wish.url, on_event=progress.event, **wish.options) as voice:
            wav = None
            if wish.out is not None:
                target = sys.stdout.buffer if wish.out == "-" else wish.out
                wav = outputs.enter_context(WavWriter(target, voice.sample_rate))
            outputs.callback(progress.finish)
            async for utterance in _utterances(voice, wish.text, progress):
                await _hear(utterance, voice.sample_rate, wav, speaker, progress)


def _utterances(voice: Voice, text: str | None, progress: Progress) -> AsyncIterator[Utterance]:
    if text is not None:
        return feed(voice, _whole(text), progress.text_sent)
    # Who types a line and presses return wants to hear it.
    return feed(voice, standard_input(), progress.text_sent, flush_lines=sys.stdin.isatty())


async def _whole(text: str) -> AsyncIterator[str]:
    yield text


async def _hear(
    utterance: Utterance,
    sample_rate: int,
    wav: WavWriter | None,
    speaker: Speaker | None,
    progress: Progress,
) -> None:
    async for part in utterance:
        progress.audio(part, sample_rate)
        if wav is not None:
            wav.write(part.pcm)
        if speaker is not None:
            await speaker.play(part.pcm)
