"""The console command ``playhead``: ``serve``, ``say``, ``keys``, ``simulate``, ``bench``.

Subcommands import what they need when they run, so that ``playhead --help`` is quick.
"""

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata

from playhead.gateway import settings as gateway_settings


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Run one command; returns its exit status. 2 means that the command line is wrong."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    args = _parser(arguments).parse_args(arguments)
    args.line = arguments
    try:
        return _run(args, os.environ if environ is None else environ)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader of a pipe (head, say) has seen enough; what is still buffered goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    if args.command == "say":
        from playhead.client import say

        return say.run(args)
    if args.command == "keys":
        from playhead.gateway import keys_cli

        return keys_cli.run(args, environ)
    if args.command == "simulate":
        from playhead.engine import simulate

        return simulate.run(args)
    if args.command == "bench":
        from playhead.loadgen import cli as bench

        return bench.run(args)
    if args.command == "top":
        return _top(args)
    if args.command == "doctor":
        from playhead.gateway import doctor

        return doctor.run(args, environ)
    if args.command == "engine":
        return _engine(args, environ)
    if args.command == "model":
        from playhead.gateway import model_process

        return model_process.run(args.lines)
    return _serve(args, environ)


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="playhead",
        description="Real-time voice gateway: text in over a WebSocket, speech out, steered by "
        "what each listener still holds.",
    )
    parser.add_argument("--version", action="version", version=metadata.version("playhead"))
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    _add_servers(commands)
    say = commands.add_parser("say", help="speak a text through a running server")
    keys = commands.add_parser("keys", help="make, list and revoke API keys")
    top = commands.add_parser("top", help="watch running servers in the terminal")
    simulate = commands.add_parser("simulate", help="compare urgency signals in virtual time")
    bench = commands.add_parser("bench", help="measure a running server with virtual listeners")
    # The flags of a command come with its module, which is imported only when that is asked for.
    chosen = next((word for word in arguments if not word.startswith("-")), "")
    if chosen == "say":
        from playhead.client.say import add_arguments as say_arguments

        say_arguments(say)
    if chosen == "keys":
        from playhead.gateway.keys_cli import add_arguments as keys_arguments

        keys_arguments(keys)
    if chosen == "top":
        from playhead.gateway.top_arguments import add_arguments as top_arguments

        top_arguments(top)
    if chosen == "simulate":
        from playhead.engine.simulate import add_arguments as simulate_arguments

        simulate_arguments(simulate)
    if chosen == "bench":
        from playhead.loadgen.cli import add_arguments as bench_arguments

        bench_arguments(bench)
    return parser


def _add_servers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The commands that take a server's settings."""
    serve = commands.add_parser(
        "serve",
        help="start the server",
        description="Start the server. Every flag may also be set as PLAYHEAD_<NAME>.",
    )
    gateway_settings.add_arguments(serve)
    serve.add_argument("--workers", help="start so many processes, on ports from --port on")
    serve.add_argument(
        "--gateways", help="start so many processes for sessions before one engine (or one per GPU)"
    )
    serve.add_argument("--gpus", help="a process per CUDA device: all, or numbers such as 0,2")
    engine = commands.add_parser(
        "engine",
        help="run a speech engine for gateways in other processes",
        description="Run an engine at a Unix socket, for `playhead serve --engine SOCKET`.",
    )
    engine.add_argument("--socket", required=True, help="where gateways find it")
    gateway_settings.add_arguments(engine)
    # Started by an engine alone: has no help, and so is not shown.
    commands.add_parser("model").add_argument("lines")
    doctor = commands.add_parser(
        "doctor",
        help="check this machine for a server with these settings",
        description="Check what a server with these settings needs, and say what to do.",
    )
    gateway_settings.add_arguments(doctor)
    doctor.add_argument("--workers", type=int, help="processes that this machine is to carry")


def _top(args: argparse.Namespace) -> int:
    try:
        from playhead.gateway import top
    except ImportError as error:
        print(f"playhead top: {error}: pip install 'playhead[top]'", file=sys.stderr)
        return 2
    return top.run(args)


def _serve(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    try:
        settings = gateway_settings.from_args(args, environ)
    except gateway_settings.SettingsError as error:
        print(f"playhead serve: {error}", file=sys.stderr)
        return 2
    if any(given is not None for given in (args.workers, args.gateways, args.gpus)):
        from playhead.gateway import supervise

        return supervise.run(args, args.line, settings)
    from playhead.gateway import lifeline, serve

    lifeline.follow(environ)
    return serve.run(settings)


def _engine(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    # It reads no setting of the network, and needs no key to be reached by nobody else.
    args.host = gateway_settings.DEFAULTS.host
    try:
        settings = gateway_settings.from_args(args, environ)
    except gateway_settings.SettingsError as error:
        print(f"playhead engine: {error}", file=sys.stderr)
        return 2
    from playhead.gateway import engine_process, lifeline

    lifeline.follow(environ)
    return engine_process.run(settings, args.socket)
