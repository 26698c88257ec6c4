"""ARCHITECTURE.md and CONTRIBUTING.md: short enough to be read, and each file that they name is there."""
import re

import pytest

from weftlib import TOP

LINES_MAX = {"ARCHITECTURE.md": 250, "CONTRIBUTING.md": 150}
# A path of the source tree. NAME, FOLDER and a glob stand for a reader's own.
PATH = re.compile(r"(?<![\w/.])(?:src|fuse|daemon|include|tests|scripts|man|bench)/[\w./-]*\w")
papers = pytest.mark.parametrize("paper", LINES_MAX)


@papers
def test_length(paper):
    assert len((TOP / paper).read_text().splitlines()) <= LINES_MAX[paper]


@papers
def test_files_that_are_named_exist(paper):
    named = {path for path in PATH.findall((TOP / paper).read_text())
             if not re.search("NAME|FOLDER", path)}
    assert len(named) > 30
    assert [path for path in sorted(named) if not (TOP / path).exists()] == []


def test_readme_leads_to_both():
    assert all(f"({paper})" in (TOP / "README.md").read_text() for paper in LINES_MAX)
