"""The flags of ``playhead top``, which are known without the package that draws it."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``playhead top``."""
    parser.add_argument("servers", nargs="*", default=["127.0.0.1:8080"], metavar="server")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds (default 1)")
    parser.add_argument(
        "--sessions", type=int, default=12, help="rows of sessions, 0 for none (default 12)"
    )
    parser.add_argument("--once", action="store_true", help="print what is known and leave")
