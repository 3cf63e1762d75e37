"""`playhead` from the source tree, on a machine where it is not installed.

    python bench/gpu/run_playhead.py bench selfcheck --listeners 2000 --processes 4 --cores 4 \
        --servers 4 --speech 10 --window 15 --out /tmp/scale

The packages that pyproject.toml names as needs must be importable.
"""

import source_tree

if __name__ == "__main__":
    source_tree.link()
    from playhead.gateway.cli import main

    raise SystemExit(main())
