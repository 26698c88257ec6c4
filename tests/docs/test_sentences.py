"""Each sentence of weft.7 has a test, named in sentences.tsv: how the sentence starts, then PATH::NAME of its tests."""
import re

import pytest
from test_man_pages import rendered

from weftlib import TOP

ROWS = [line.split("\t") for line in (TOP / "tests/docs/sentences.tsv").read_text().splitlines()]


def sentences():
    """Those of DESCRIPTION and ARCHITECTURE, blanks made one. Displays are none; they are indented."""
    body = re.search(r"^DESCRIPTION\n(.*)^SEE ALSO\n", rendered("weft.7"), flags=re.M | re.S)[1]
    prose = re.sub(r"^( {0,4}\S| {6,}).*\n", "\n", body, flags=re.M)
    paragraphs = [paragraph.strip() for paragraph in re.split(r"\n\s*\n", prose) if paragraph.strip()]
    return [" ".join(sentence.split()) for paragraph in paragraphs
            for sentence in re.split(r"(?<=\.)(?: {2,}|\n\s*)", paragraph)]


def is_there(test):
    path, _, name = test.partition("::")
    if not (TOP / path).is_file():
        return False
    wanted = f"\ndef {name}(" if path.endswith(".py") else f'\nTEST_CASE("{name}")'
    return wanted in (TOP / path).read_text()


def test_every_sentence_has_a_row():
    assert len(sentences()) > 40
    assert [sentence for sentence in sentences() if not any(sentence.startswith(start) for start, *_ in ROWS)] == []


@pytest.mark.parametrize("start, tests", [(start, tests) for start, *tests in ROWS], ids=[row[0] for row in ROWS])
def test_row(start, tests):
    """It begins one sentence, and its tests are there."""
    assert len([sentence for sentence in sentences() if sentence.startswith(start)]) == 1
    assert tests
    assert [test for test in tests if not is_there(test)] == []
