"""scripts/bench: what its scripts read out of logs and traces, and the headline of bench/RESULTS.md with its picture."""
import html
import json
import re
import sys

import pytest

from weftlib import TOP

sys.path.insert(0, str(TOP / "bench"))

import build as build_bench  # noqa: E402
import plot  # noqa: E402

RESULTS = (TOP / "bench/RESULTS.md").read_text()
PICTURE = TOP / "bench/headline.svg"
LOG = """# ninja log v7
5\t2005\t1\tsrc/os/CMakeFiles/weft_os.dir/sys.cc.o\tff
0\t3500\t1\tCMakeFiles/weft_pch.dir/cmake_pch.hxx.gch\tff
10\t9010\t1\tsrc/os/CMakeFiles/weft_os.dir/Unity/unity_0_cxx.cxx.o\tff
9010\t9900\t1\tsrc/os/libweft_os.a\tff
"""
UNITY = "src/os/CMakeFiles/weft_os.dir/Unity/unity_0_cxx.cxx"


def test_units_of_a_build(tmp_path):
    """Archives and programs are none; a unit of several sources is named by them."""
    (tmp_path / ".ninja_log").write_text(LOG)
    (tmp_path / UNITY).parent.mkdir(parents=True)
    (tmp_path / UNITY).write_text('/* generated */\n\n#include "/w/src/os/a.cc"\n\n#include "/w/src/os/b.cc"\n')
    found = [(seconds, build_bench.name_of(tmp_path, output)) for seconds, output in build_bench.units(tmp_path)]
    assert found == [(9.0, "src/os/{a.cc,b.cc}"), (3.5, "cmake_pch.hxx"), (2.0, "src/os/sys.cc")]


def source(name, begin, duration):
    return {"ph": "X", "name": "Source", "ts": begin, "dur": duration, "args": {"detail": name}}


def test_headers_of_a_build(tmp_path):
    """Over units: with the headers inside, and without. Other events and other JSON files do not count."""
    traces = {"a": [source("/i/outer.h", 0, 5_000_000), source("/i/inner.h", 1_000_000, 3_000_000),
                    {"ph": "X", "name": "Frontend", "ts": 0, "dur": 9_000_000, "args": {}}],
              "b": [source("/i/inner.h", 0, 1_000_000), source("/i/x/../last.h", 1_000_000, 500_000)]}
    folder = tmp_path / "src/os/CMakeFiles/weft_os.dir"
    folder.mkdir(parents=True)
    for name, events in traces.items():
        (folder / f"{name}.cc.json").write_text(json.dumps({"traceEvents": events}))
    (tmp_path / "compile_commands.json").write_text("[]")
    expected = [(5.0, 2.0, 1, "/i/outer.h"), (4.0, 4.0, 2, "/i/inner.h"), (0.5, 0.5, 1, "/i/last.h")]
    assert build_bench.headers(tmp_path) == expected


def block_of(row):
    """What RESULTS.md says after the command of a headline, up to the next command or section."""
    section = re.search(rf"^## scripts/bench {row.section}\b.*?(?=^## |\Z)", RESULTS, flags=re.M | re.S)[0]
    command, _, rest = section.partition(f"\n    {row.command}")[2].partition("\n")
    assert command or rest, row
    return re.split(r"^(?:    |### )", rest, maxsplit=1, flags=re.M)[0]


def has(table, figure):
    """A table may show an interval between the number and the unit."""
    number, _, unit = figure.partition(" ")
    return re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d.,])(?: \([^)]*\))? ?{unit}", table)


def test_headlines_are_figures_of_the_tables():
    """Each time and each ratio stands in one table below the row's command."""
    rows = plot.headlines(RESULTS)
    assert len(rows) > 10
    for row in rows:
        tables = re.findall(r"(?:^\|.*\n)+", block_of(row), flags=re.M)
        assert any(all(has(table, figure) for figure in (row.weft, row.time, row.ratio)) for table in tables), row


def test_the_picture_has_the_headlines():
    drawn = html.unescape(PICTURE.read_text())
    assert [text for row in plot.headlines(RESULTS) for text in (row.measure, row.label) if f">{text}<" not in drawn] == []


def test_the_picture_is_what_the_script_draws(tmp_path):
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib draws it")
    version = re.search(r"Matplotlib v([\w.]+)", PICTURE.read_text())[1]
    if matplotlib.__version__ != version:
        pytest.skip(f"matplotlib {version} drew it, this is {matplotlib.__version__}")
    plot.draw(plot.headlines(RESULTS), tmp_path / "drawn.svg")
    assert (tmp_path / "drawn.svg").read_bytes() == PICTURE.read_bytes()


def test_a_table_that_is_not_the_first_is_no_headline():
    for text in ("# Results\n", f"| a | b |\n|---|---|\n\n{plot.HEAD}\n|---|---|---|---|---|---|\n"):
        with pytest.raises(SystemExit, match="the first table"):
            plot.headlines(text)
