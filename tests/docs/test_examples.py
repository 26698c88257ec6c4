"""The commands in weft.7 print what the page shows. They run in a mount of the models of README.md."""
import re
import sys

import pytest
from sessions import commands, outputs, words
from test_man_pages import rendered

from weftlib import TOP, Mount, Store, real_model, run

NAME = "sentence/minilm"


def examples(page):
    """The commands of the displays that begin with one."""
    displays = [re.sub(r"^ +", "", display, flags=re.M).splitlines()
                for display in re.findall(r"(?:^ {6,}\S.*\n)+", rendered(page), flags=re.M)]
    return commands([line for display in displays if display[0].startswith("$ ") for line in display])


@pytest.fixture
def mount(tmp_path):
    store = Store(tmp_path / "store")
    tuned = tmp_path / "tuned"
    run([sys.executable, TOP / "scripts/lib/demo_model.py", "derive", real_model(), tuned])
    store.publish(real_model(), name=NAME, tag="base", message="as it came")
    store.publish(tuned, name=NAME, tag="prod", message="layer 5 tuned", metric="loss=0.12")
    with Mount(store, tmp_path / "mnt") as mounted:
        yield mounted


def test_weft_7(mount):
    shown = examples("weft.7")
    printed = outputs([command for command, _ in shown], mount.path)
    assert len(shown) > 10 and len(printed) == len(shown)
    for (command, lines), (code, output) in zip(shown, printed):
        assert (command, code, words(output)) == (command, 0, words("\n".join(lines)))
