"""``playhead doctor``: what a server with these settings needs, checked and explained."""

import argparse
import sys
from collections.abc import Mapping

from playhead.gateway import checks, machine_checks
from playhead.gateway.settings import SettingsError, from_args

_MARKS = {checks.Level.OK: "ok   ", checks.Level.NOTE: "note ", checks.Level.FAULT: "FAULT"}


def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Print one line per check; 1 when something must be mended, 2 for settings that are wrong."""
    try:
        settings = from_args(args, environ)
    except SettingsError as error:
        print(f"playhead doctor: {error}", file=sys.stderr)
        return 2
    processes = 1 if args.workers is None else args.workers
    if processes < 1:
        print("playhead doctor: --workers must be 1 or more", file=sys.stderr)
        return 2
    findings = [check(settings) for check in checks.ALL]
    findings += machine_checks.findings(settings, processes)
    for finding in findings:
        print(f"{_MARKS[finding.level]} {finding.about:<12} {finding.text}")
    faults = sum(finding.level is checks.Level.FAULT for finding in findings)
    print(f"{faults} of {len(findings)} checks found a fault." if faults else "Ready to serve.")
    return 1 if faults else 0
