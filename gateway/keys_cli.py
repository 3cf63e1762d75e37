"""``playhead keys``: make, list and revoke API keys."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from playhead.engine import clock
from playhead.gateway import access_file
from playhead.gateway.access_keys import (
    ROLES,
    SPEAK,
    ApiKey,
    KeyFileError,
    KeyRing,
    new_key,
    stamp,
)
from playhead.gateway.access_quota import KEY_QUOTA, Quota

DAY = 86_400.0
VARIABLE = "PLAYHEAD_KEYS"
EXIT_FAULT = 1
EXIT_USAGE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions and their flags."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")
    add = actions.add_parser("add", help="make a key; it is shown once")
    add.add_argument("--name", required=True, help="whose key it is, for lists and logs")
    add.add_argument("--days", type=_whole, help="days until it expires (default: never)")
    add.add_argument("--role", choices=ROLES, default=SPEAK, help=f"default {SPEAK}")
    for name, default, what in (
        ("connections", KEY_QUOTA.connections, "open connections"),
        ("streams", KEY_QUOTA.streams, "sessions speaking at a time"),
        ("characters-per-minute", KEY_QUOTA.characters_per_minute, "code points of text"),
    ):
        add.add_argument(
            f"--{name}", type=_whole, default=default, help=f"{what} (default {default})"
        )
    listing = actions.add_parser("list", help="show all keys, without their secrets")
    revoke = actions.add_parser("revoke", help="end a key; servers close its sessions in seconds")
    revoke.add_argument("id", help="the id that `keys list` shows, or the key itself")
    for action in (add, listing, revoke):
        action.add_argument("--keys", help=f"the key file (default: ${VARIABLE})")


def _whole(text: str) -> int:
    value = int(text)
    if not 0 < value <= 10**9:
        raise ValueError
    return value


def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Perform one action; returns the exit status."""
    name = args.keys or environ.get(VARIABLE)
    if not name:
        print(f"playhead keys: name the key file with --keys or {VARIABLE}", file=sys.stderr)
        return EXIT_USAGE
    path = Path(name)
    try:
        return {"add": _add, "list": _list, "revoke": _revoke}[args.action](args, path)
    except KeyFileError as fault:
        print(f"playhead keys: {fault}", file=sys.stderr)
    except OSError as fault:
        print(f"playhead keys: {path}: {fault.strerror}", file=sys.stderr)
    return EXIT_FAULT


def _add(args: argparse.Namespace, path: Path) -> int:
    now = clock.wall()
    text, key = new_key(
        args.name,
        now,
        expires=None if args.days is None else now + args.days * DAY,
        roles=(args.role,),
        quota=Quota(args.connections, args.streams, args.characters_per_minute),
    )
    with access_file.edit(path) as put:
        ring = access_file.load(path) if path.exists() else KeyRing()
        put(KeyRing((*ring.keys, key)))
    # The key alone on standard output, so that a script can take it from there.
    print(f"key {key.id} for {args.name} is in {path}; it is shown only now:", file=sys.stderr)
    print(text)
    return 0


def _list(args: argparse.Namespace, path: Path) -> int:
    now = clock.wall()
    print(f"{'id':8}  {'state':8}  {'created':20}  {'expires':20}  {'role':8}  name")
    for key in access_file.load(path).keys:
        expires = "never" if key.expires is None else stamp(key.expires)
        print(
            f"{key.id:8}  {_state(key, now):8}  {stamp(key.created):20}  {expires:20}  "
            f"{','.join(key.roles):8}  {key.name}"
        )
    return 0


def _state(key: ApiKey, now: float) -> str:
    if key.usable(now):
        return "usable"
    return "expired" if key.revoked is None else "revoked"


def _revoke(args: argparse.Namespace, path: Path) -> int:
    # Somebody in a hurry pastes the whole key: its id is in it.
    parts = args.id.split("_")
    identity = parts[1] if len(parts) > 1 else args.id
    with access_file.edit(path) as put:
        ring = access_file.load(path)
        found = [key for key in ring.keys if key.id == identity]
        if not found:
            print(f"playhead keys: no key with that id is in {path}", file=sys.stderr)
            return EXIT_FAULT
        now = clock.wall()
        put(
            KeyRing(
                replace(key, revoked=now if key.revoked is None else key.revoked)
                if key.id == identity
                else key
                for key in ring.keys
            )
        )
    print(f"key {identity} ({found[0].name}) is revoked")
    return 0
