"""Models are files of numbers: nothing that we ship can be made to run what a file says."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("codecs", "engine", "gateway", "loadgen")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
MODULES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
CALLS = {"torch.load", "torch.jit.load", "torch.hub.load", "torch.package", "pandas.read_pickle"}
TRUST = ("allow_pickle", "trust_remote_code")


def is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def asks(call: ast.Call) -> bool:
    """Whether it asks at the terminal, where it finds code, if that may run."""
    named = isinstance(call.func, ast.Attribute) and call.func.attr == "from_pretrained"
    return named and all(keyword.arg != "trust_remote_code" for keyword in call.keywords)


def wrong(source: str) -> list[str]:
    """What in ``source`` reads objects of any kind from a file."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in CALLS:
            found.append(ast.unparse(node))
        elif isinstance(node, ast.keyword) and node.arg in TRUST and not is_false(node.value):
            found.append(str(node.arg))
        elif isinstance(node, ast.Call) and asks(node):
            found.append(ast.unparse(node.func))
        found += [name for name in names if name.partition(".")[0] in MODULES]
    return found


def test_nothing_of_ours_can_unpickle() -> None:
    assert len(SOURCES) > 200
    assert {str(path): wrong(path.read_text(encoding="utf-8")) for path in SOURCES} == {
        str(path): [] for path in SOURCES
    }


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import torch\ntorch.load('m.pt')",
        "numpy.load(file, allow_pickle=True)",
        "load(name, trust_remote_code=given)",
        "AutoTokenizer.from_pretrained(folder, local_files_only=True)",
    ],
)
def test_what_unpickles_is_seen(source: str) -> None:
    assert wrong(source)


def test_what_does_not_is_left_alone() -> None:
    assert wrong("import safetensors\nnumpy.load(file, allow_pickle=False)\nself.load()") == []
    assert wrong("AutoTokenizer.from_pretrained(folder, trust_remote_code=False)") == []
