"""The callback of weft.7 runs beside a training, as it stands on the page."""
import itertools
import math
import os
import re
import time

import pytest
from test_man_pages import rendered

from weftlib import environment


@pytest.fixture
def advised():
    """An Advised. Its class has ten lines."""
    lines = rendered("weft.7").splitlines()
    begin = next(i for i, line in enumerate(lines) if re.match(r" +from subprocess import", line))
    indent = re.match(" +", lines[begin])[0]
    source = [line[len(indent):] for line in
              itertools.takewhile(lambda line: not line or line.startswith(indent), lines[begin:])]
    assert len([line for line in source[source.index("class Advised:"):] if line]) == 10
    names = {}
    path = os.environ["PATH"]
    os.environ["PATH"] = environment()["PATH"]
    try:
        exec("\n".join(source), names)  # pylint: disable=exec-used
        made = names["Advised"]("--until", "400", "--requests", "50000", "--rate", "1000", "--t-save", "0.02")
        yield made
        made.weft.kill()
        made.weft.wait()
    finally:
        os.environ["PATH"] = path


def test_callback(advised):
    """It saves when the advice says so, and the next advice is of a later iteration than that save."""
    saved = []
    for step in range(1, 401):
        time.sleep(0.005)
        advised(step, 2 * math.exp(-step / 100) + 0.3, lambda step=step: saved.append(step))
    advised.weft.stdin.close()
    assert advised.weft.wait(timeout=60) == 0
    assert 2 <= len(saved) < 200 and saved == sorted(set(saved)) and advised.saved == saved[-1]
