"""The commands in weft.7 print what the page shows. They run in a mount of the models of README.md. The commands of the
table in weft.1 answer what it says."""
import os
import pwd
import re
import sys

import pytest
from sessions import commands, outputs, words
from test_man_pages import rendered, sections

from weftlib import TOP, Mount, Store, random_tensors, real_model, run, write_model

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


def test_what_is_asked_for_most(tmp_path):
    """Each command of the table in EXAMPLES of weft.1 finds what stands before it."""
    store = Store(tmp_path / "store")
    for number, loss in enumerate(["0.5", "0.2123456", "0.9", "0.4", "0.3", "0.35", "0.6"], 1):
        model = write_model(tmp_path / "model", random_tensors(1, 4096, seed=f"asked for {number}"))
        store.publish(model, name="bert", metric=f"loss={loss}", message=f"number {number}")
    store.weft("tag", "bert@1", "production")
    store.weft("tag", "bert@2", "production")
    table = re.findall(r"^ +(\S.*?) {2,}(weft .+)$", sections("weft.1")["EXAMPLES"], flags=re.M)
    printed = outputs([command for _, command in table], tmp_path, WEFT_STORE=str(store.path))
    assert [code for code, _ in printed] == [0] * len(table)
    found = {what: words(output) for (what, _), (_, output) in zip(table, printed, strict=True)}
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert found.pop("the best loss") == "VERSION loss bert@2 0.2123".split()
    last = found.pop("the last five versions")
    assert [word for word in last if word.startswith("bert@")] == [f"bert@{number}" for number in (7, 6, 5, 4, 3)]
    assert found.pop("who moved a tag, and when") == (
        f"CHANGED TAG FROM TO BY TIME TIME production 1 2 {user} TIME TIME production - 1 {user}".split())
    assert found.pop("what a tidy would remove") == "would remove bert@1".split()
    assert found == {}
