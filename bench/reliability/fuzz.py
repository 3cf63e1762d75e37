"""Coverage-guided fuzzing of every parser of untrusted input (needs `pip install atheris`).

    python bench/reliability/fuzz.py --target json_message --seconds 60
    for t in $(python bench/reliability/fuzz.py --list); do python bench/reliability/fuzz.py \
        --target $t --seconds 600; done                                          # long form

Starts from tests/vectors/fuzz/TARGET. What it finds on the way goes to build/fuzz/TARGET; a crash
ends it with a traceback and is written to a file there.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "gateway"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--target")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    import atheris

    with atheris.instrument_imports(include=["playhead.gateway", "playhead.engine.text"]):
        from fuzz_targets import MOST, TARGETS
    if args.list or args.target not in TARGETS:
        print("\n".join(TARGETS))
        return
    found = ROOT / "build" / "fuzz" / args.target
    found.mkdir(parents=True, exist_ok=True)
    flags = [f"-max_total_time={args.seconds}", f"-max_len={MOST}", f"-artifact_prefix={found}/"]
    folders = [str(found), str(ROOT / "tests" / "vectors" / "fuzz" / args.target)]
    atheris.Setup([sys.argv[0], *flags, "-print_final_stats=1", *folders], TARGETS[args.target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
