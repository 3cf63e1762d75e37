"""The rules of the code base that no linter knows: who may import whom, who may read a clock, and
how large a function, a nesting or a file may get. Product code only."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("codecs", "engine", "gateway", "loadgen")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

MAX_FUNCTION_LINES = 60
MAX_NESTING = 3
MAX_FILE_LINES = 300
MAX_MODEL_FILE_LINES = 400
MIN_DUPLICATE_LINES = 8

# Pure files, and with them whatever they import of ours, do no input or output and never wait.
CORE_ROOTS = (
    *("types", "clock", "playhead", "policy", "lead", "ledger", "scheduler", "simulator", "text"),
)
SANS_IO_ROOTS = (  # prefixes
    *("protocol", "messages", "session", "effects", "heard", "outbox"),
    *("access_keys", "access_offer", "access_places", "access_quota", "access_tickets"),
    *("accepts", "flood", "hush", "pulse", "redact"),
)

# Modules that block, wait, or talk to the world: never in a pure file.
WORLD = {
    *("asyncio", "concurrent", "multiprocessing", "select", "selectors", "signal", "socket"),
    *("ssl", "subprocess", "threading", "time", "torch", "uvloop", "websockets"),
}
CLOCKS = {
    *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
    *("process_time", "process_time_ns", "thread_time", "thread_time_ns"),
    *("clock_gettime", "clock_gettime_ns"),
}
DATE_CLOCKS = {"now", "utcnow", "today"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def where(path: Path, node: ast.AST | None = None) -> str:
    line = f":{node.lineno}" if isinstance(node, ast.stmt | ast.expr | ast.excepthandler) else ""
    return f"{path.relative_to(ROOT)}{line}"


def package_of(path: Path) -> str:
    """The import package of a source folder: gateway/client is playhead.client."""
    folder = path.parent.relative_to(ROOT).parts
    if folder[:2] == ("gateway", "client"):
        folder = ("client", *folder[2:])
    return ".".join(("playhead", *folder))


def imports(path: Path) -> Iterator[tuple[str, ast.stmt]]:
    """Every module that a file names, absolute, wherever in the file the import stands."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package_of(path).split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [base])])
            yield base, node
            yield from ((f"{base}.{alias.name}", node) for alias in node.names)


def own_names(path: Path) -> Iterator[tuple[str, ast.stmt]]:
    """The imports of a file that are the project's own, without the leading ``playhead.``"""
    for name, node in imports(path):
        if name.startswith("playhead."):
            yield name.removeprefix("playhead."), node


def below(name: str, *tops: str) -> bool:
    return any(name == top or name.startswith(f"{top}.") for top in tops)


def file_of(name: str) -> Path | None:
    """The file of an import name without ``playhead.``; None when the name is no module."""
    parts = name.split(".")
    folder = ROOT.joinpath("gateway", *parts) if parts[0] == "client" else ROOT.joinpath(*parts)
    files = (folder.with_suffix(".py"), folder / "__init__.py")
    return next((path for path in files if path.exists()), None)


@functools.cache
def closure(*roots: Path) -> tuple[Path, ...]:
    """The given files and every file of ours that they import, directly or not."""
    found: set[Path] = set()
    waiting = list(roots)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += [file for name, _ in own_names(path) if (file := file_of(name))]
    return tuple(sorted(found))


def core() -> tuple[Path, ...]:
    named = (ROOT / "engine" / f"{stem}.py" for stem in CORE_ROOTS)
    return closure(*(path for path in named if path.exists()))


def sans_io() -> tuple[Path, ...]:
    """The gateway's pure files, the client's player among them."""
    named = [
        path for path in (ROOT / "gateway").glob("*.py") if path.stem.startswith(SANS_IO_ROOTS)
    ]
    reached = closure(*named, ROOT / "gateway" / "client" / "player.py")
    return tuple(path for path in reached if path.is_relative_to(ROOT / "gateway"))


def dialects() -> list[Path]:
    """The pure files of the dialects: all but those that run one over a socket."""
    adapters = {"adapter", "upgrade"}
    return [path for path in folder("gateway/dialects") if path.stem not in adapters]


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(tree(path)):
        if isinstance(node, Function):
            yield node


def body(function: Function) -> list[ast.stmt]:
    """A function's statements without its docstring."""
    return function.body[1:] if ast.get_docstring(function) is not None else function.body


def length(function: Function) -> int:
    """Lines of a function, without its docstring and its decorators."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return lines


def nesting(statements: list[ast.stmt], depth: int = 0) -> int:
    """Deepest nesting of blocks. ``elif`` is a continuation, a nested function starts anew."""
    deepest = depth
    for statement in statements:
        for block, inner in blocks(statement):
            deepest = max(deepest, nesting(block, depth + inner))
    return deepest


def blocks(statement: ast.stmt) -> Iterator[tuple[list[ast.stmt], int]]:
    """The blocks inside a statement, each with the depth it adds."""
    if isinstance(statement, ast.If):
        yield statement.body, 1
        is_elif = len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If)
        yield statement.orelse, 0 if is_elif else 1
    elif isinstance(statement, ast.For | ast.AsyncFor | ast.While):
        yield statement.body, 1
        yield statement.orelse, 1
    elif isinstance(statement, ast.With | ast.AsyncWith):
        yield statement.body, 1
    elif isinstance(statement, ast.Match):
        yield from ((case.body, 1) for case in statement.cases)
    elif isinstance(statement, ast.Try | ast.TryStar):
        for block in (statement.body, statement.orelse, statement.finalbody):
            yield block, 1
        yield from ((handler.body, 1) for handler in statement.handlers)


def foreign(paths: Iterable[Path], *allowed: str) -> list[str]:
    """Imports of our own that are not below one of the allowed names."""
    return [
        f"{where(path, node)}: {name}"
        for path in paths
        for name, node in own_names(path)
        if not below(name, *allowed) and name not in {"engine", "gateway"}
    ]


def libraries(paths: Iterable[Path], allowed: set[str]) -> list[str]:
    """Imports of libraries other than the allowed ones, by their top-level name."""
    return [
        f"{where(path, node)}: {name}"
        for path in paths
        for name, node in imports(path)
        if name.split(".")[0] not in allowed | {"playhead"}
    ]


def folder(name: str) -> list[Path]:
    return [path for path in FILES if path.is_relative_to(ROOT / name)]


STDLIB = set(sys.stdlib_module_names) - WORLD


def test_there_is_something_to_check() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in FILES} == set(FOLDERS)
    assert {path.stem for path in core()} >= {"types", "clock", "playhead", "policy", "scheduler"}
    assert {path.stem for path in sans_io()} >= {"protocol", "messages", "session", "player"}


def test_codecs_import_nothing_of_ours() -> None:
    assert not foreign(folder("codecs"), "codecs")


def test_codecs_use_only_their_libraries() -> None:
    # A lock is no waiting: encoders run on worker threads.
    allowed = {"numpy", "soxr", "opuslib", "lameenc", "threading"}
    assert not libraries(folder("codecs"), STDLIB | allowed)


def test_engine_core_uses_the_standard_library_and_numpy_only() -> None:
    clock = ROOT / "engine" / "clock.py"
    assert not libraries(set(core()) - {clock}, STDLIB | {"numpy"})


def test_engine_core_stays_inside_the_engine_and_out_of_its_models() -> None:
    assert not [where(path) for path in core() if path.parent != ROOT / "engine"]


def test_engine_never_imports_who_uses_it() -> None:
    assert not foreign(folder("engine"), "engine")


def test_protocol_and_session_do_no_input_or_output() -> None:
    assert not libraries(sans_io(), STDLIB | {"msgpack", "numpy"})


def test_dialects_do_no_input_or_output() -> None:
    assert {path.stem for path in dialects()} >= {"base", "wire", "table", "aura"}
    assert not libraries(dialects(), STDLIB | {"msgpack", "numpy"})
    assert not foreign(dialects(), "gateway", "engine.types", "codecs")


def test_protocol_and_session_know_only_engine_types_and_codecs() -> None:
    assert not foreign(sans_io(), "engine.types", "codecs", "gateway", "client")


def test_client_knows_the_protocol_and_the_codecs_only() -> None:
    protocol = [f"gateway.{path.stem}" for path in sans_io()]
    allowed = ("client", "codecs", "engine.types", "engine.clock", *protocol)
    assert not foreign(folder("gateway/client"), *allowed)


def test_loadgen_knows_no_model_and_no_server() -> None:
    pure = [f"engine.{path.stem}" for path in core()]
    pure += [f"gateway.{path.stem}" for path in sans_io()]
    assert not foreign(folder("loadgen"), "loadgen", "codecs", "client", *pure)


def test_only_the_clock_file_reads_a_clock() -> None:
    faults = [
        f"{where(path, node)}: {ast.unparse(node)}"
        for path in FILES
        if path != ROOT / "engine" / "clock.py"
        for node in ast.walk(tree(path))
        if reads_clock(node)
    ]
    assert not faults


def reads_clock(node: ast.AST) -> bool:
    """``time.monotonic`` in any use, ``loop.time()``, ``datetime.now()``, ``from time import …``"""
    if isinstance(node, ast.ImportFrom):
        return node.module == "time" and any(alias.name in CLOCKS for alias in node.names)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if node.value.id == "time":
            return node.attr in CLOCKS
        return node.value.id in {"datetime", "date"} and node.attr in DATE_CLOCKS
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "time" and not node.args
    return False


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.monotonic_ns()",
        "f(clock=time.perf_counter)",
        "from time import time",
        "loop.time()",
        "asyncio.get_running_loop().time()",
        "datetime.now(UTC)",
        "date.today()",
    ],
)
def test_a_clock_is_recognised(source: str) -> None:
    assert any(reads_clock(node) for node in ast.walk(ast.parse(source)))


@pytest.mark.parametrize("source", ["time.sleep(1)", "report.time", "clock.monotonic()", "now()"])
def test_what_is_no_clock_is_left_alone(source: str) -> None:
    assert not any(reads_clock(node) for node in ast.walk(ast.parse(source)))


def test_functions_are_short() -> None:
    faults = [
        f"{where(path, function)}: {function.name}: {length(function)} lines"
        for path in FILES
        for function in functions(path)
        if length(function) > MAX_FUNCTION_LINES
    ]
    assert not faults


def test_nesting_is_shallow() -> None:
    faults = [
        f"{where(path, function)}: {function.name}: {nesting(body(function))} deep"
        for path in FILES
        for function in functions(path)
        if nesting(body(function)) > MAX_NESTING
    ]
    assert not faults


@pytest.mark.parametrize(
    ("source", "depth"),
    [
        ("x = 1", 0),
        ("if a:\n    x\nelif b:\n    y\nelse:\n    z", 1),
        ("for a in b:\n    if a:\n        x", 2),
        ("if a:\n    x\nelse:\n    if b:\n        y\n    z", 2),
        ("with a:\n    try:\n        x\n    except E:\n        if b:\n            y", 3),
        ("match a:\n    case 1:\n        while b:\n            x", 2),
        ("if a:\n    def f():\n        if b:\n            x", 1),
    ],
)
def test_nesting_is_counted_as_a_reader_counts(source: str, depth: int) -> None:
    assert nesting(ast.parse(source).body) == depth


def test_files_are_short() -> None:
    faults = []
    for path in FILES:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        in_models = path.is_relative_to(ROOT / "engine" / "models")
        limit = MAX_MODEL_FILE_LINES if in_models else MAX_FILE_LINES
        if lines > limit:
            faults.append(f"{where(path)}: {lines} lines, at most {limit}")
    assert not faults


def test_pure_files_do_not_probe_attributes() -> None:
    faults = [
        f"{where(path, node)}: {ast.unparse(node)}"
        for path in {*core(), *sans_io(), *dialects()}
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"getattr", "hasattr", "setattr", "delattr"}
    ]
    assert not faults


def test_broad_excepts_say_why() -> None:
    faults = [
        where(path, node)
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler)
        and is_broad(node)
        and not raises_again(node)
        and not is_explained(path, node.lineno)
    ]
    assert not faults


def is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        isinstance(name, ast.Name) and name.id in {"Exception", "BaseException"} for name in caught
    )


def raises_again(handler: ast.ExceptHandler) -> bool:
    """It only tidies up and lets the exception go on."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def is_explained(path: Path, line: int) -> bool:
    """A comment of several words, linter directives apart, on the line or next to it."""
    lines = path.read_text(encoding="utf-8").splitlines()[max(0, line - 2) : line + 1]
    comments = [text.split("#", 1)[1] for text in lines if "#" in text]
    return any(len(re.sub(r"noqa(: \w+)?", "", text).split()) > 2 for text in comments)


def test_no_function_is_written_twice() -> None:
    seen: dict[str, str] = {}
    faults = []
    for path in FILES:
        for function in functions(path):
            statements = body(function)
            if not statements or lines_of(statements) < MIN_DUPLICATE_LINES:
                continue
            key = "\n".join(ast.dump(statement) for statement in statements)
            place = f"{where(path, function)} {function.name}"
            if key in seen:
                faults.append(f"{place} repeats {seen[key]}")
            seen[key] = place
    assert not faults


def lines_of(statements: list[ast.stmt]) -> int:
    return (statements[-1].end_lineno or 0) - statements[0].lineno + 1


PLAYHEAD = str(Path(sys.executable).with_name("playhead"))


@pytest.mark.parametrize(
    "program",
    [
        [sys.executable, "-c", "import playhead.gateway.server"],
        [sys.executable, "-c", "import playhead.client"],
        [PLAYHEAD, "--help"],
        [PLAYHEAD, "serve", "--help"],
    ],
    ids=["server", "client", "help", "serve"],
)
def test_torch_is_not_imported(program: list[str], tmp_path: Path) -> None:
    """A decoy ends the process whatever guards the import: SystemExit passes ImportError by."""
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')\n")
    environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"}
    result = subprocess.run(
        program, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_the_torch_decoy_works(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "try:\n import torch\nexcept ImportError:\n pass"]
    with pytest.raises(AssertionError, match="torch was imported"):
        test_torch_is_not_imported(program, tmp_path)
