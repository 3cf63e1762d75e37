"""Plots as PNG files."""

import sys
from pathlib import Path

import pytest
from playhead.gateway import cli as playhead
from playhead.loadgen.charts import Chart, Series
from playhead.loadgen.png import NoPlots, write_png

CHART = Chart("ttfa", "Time", "rate", "ms", [Series("p50", [(2, 3), (1, 2)]), Series("none", [])])


def test_each_chart_is_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (path,) = write_png([CHART], tmp_path)
    assert path == tmp_path / "ttfa.png"
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n")
    assert int.from_bytes(data[16:20], "big") == 960


def test_without_the_library_its_name_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NoPlots, match=r"pip install 'playhead\[plots\]'"):
        write_png([CHART], tmp_path)
    line = '{"kind":"run","format":1,"plan":{"rate":1,"seed":0,"window":1,"warmup":0,"mix":"m"}}\n'
    (tmp_path / "one.jsonl").write_text(line)
    arguments = ["bench", "report", str(tmp_path), "--png", str(tmp_path / "pictures")]
    assert playhead.main(arguments) == 2
    assert "--png needs matplotlib" in capsys.readouterr().err
