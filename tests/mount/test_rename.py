"""`weft mv`: a model gets another name, while it is mounted and read; with a daemon and without."""
import json
import os

import pytest

from daemonlib import Daemon
from weftlib import Mount, files_below, random_tensors, wait_until, write_model

VISIBLE_SECONDS_MAX = 0.1


def another(tmp_path, seed):
    return write_model(tmp_path / seed, random_tensors(1, 4096, seed=seed))


@pytest.fixture
def renamed(store, small_model, tmp_path):
    """base@1 with its child tuned@1, mounted."""
    store.publish(small_model, name="base", tag="prod", message="as it came")
    store.publish(another(tmp_path, "tuned"), name="tuned", parent="base@1")
    with Mount(store, tmp_path / "mnt") as mount:
        yield mount


def test_a_mount_shows_the_new_name(renamed):
    """Without a remount; what is open or is a working directory stays."""
    before = files_below(renamed.version("base", 1))
    inode = renamed.version("base", 1).stat().st_ino
    directory = os.open(renamed / "models/base/1", os.O_RDONLY)
    with open(renamed / "models/base/1/model.safetensors", "rb") as file:
        renamed.store.weft("mv", "base", "org/base")
        took = wait_until(lambda: (renamed / "models/org/base/1").is_dir() and not (renamed / "models/base").exists())
        assert took <= VISIBLE_SECONDS_MAX
        assert file.read() == before["model.safetensors"]
    assert sorted(os.listdir(directory)) == sorted(os.listdir(renamed / "models/org/base/1"))
    os.close(directory)
    assert sorted(os.listdir(renamed / "models")) == ["org", "tuned"]
    assert files_below(renamed.version("org/base", 1)) == before
    assert renamed.version("org/base", 1).stat().st_ino == inode
    assert os.readlink(renamed / "models/org/base/prod") == os.readlink(renamed / "models/org/base/latest") == "1"
    renamed.store.assert_sound()


def test_texts_have_the_new_name(renamed):
    lineage = renamed.lineage("tuned", 1)
    texts = ["info.json", "log", "ancestors", "owners.tsv", "graph.svg"]
    for name in texts:
        (lineage / name).read_bytes()
    assert (lineage / "diff/base@1").read_text().startswith("base@1 ")
    renamed.store.weft("mv", "base", "org/first")
    wait_until(lambda: os.listdir(lineage / "parents") == ["org%2Ffirst@1"])
    assert (lineage / "parents/org%2Ffirst@1").samefile(renamed / "models/org/first/1")
    for name in texts:
        wait_until(lambda: "base@1" not in (lineage / name).read_text())
        wait_until(lambda: len((lineage / name).read_bytes()) == (lineage / name).stat().st_size)
    assert "org/first@1" in (lineage / "log").read_text()
    assert (lineage / "diff/org%2Ffirst@1").read_text().startswith("org/first@1 ")
    info = json.loads((renamed.lineage("org/first", 1) / "info.json").read_text())
    assert (info["model"], info["message"]) == ("org/first", "as it came")
    [link] = (renamed / "hub/models--org--first/snapshots").glob("*/model.safetensors")
    assert link.samefile(renamed / "models/org/first/1/model.safetensors")
    assert len(os.readlink(link)) == link.lstat().st_size


def test_the_former_name_is_free_and_its_numbers_are_not(renamed, tmp_path):
    store = renamed.store
    store.weft("mv", "base", "moved")
    for former in ("base", "base@1", renamed / "models/base/1", renamed / "models/base/latest/config.json"):
        assert "base was renamed to moved" in store.weft("info", former, check=False).stderr
    assert "base@2" in store.publish(another(tmp_path, "next"), name="base").stdout
    wait_until(lambda: sorted(os.listdir(renamed / "models/base")) == ["2", "latest"])
    assert store.json("log", "tuned")["versions"][0]["parents"][0]["model"] == "moved"
    for name in ("base", "tuned"):
        refused = store.weft("mv", "moved", name, check=False)
        assert refused.returncode == 1 and "expected a name that no other model has had" in refused.stderr
    assert refused.stderr.count("\n") == 1
    store.assert_sound()
    store.weft("fsck", "--rebuild")
    assert store.json("info", "moved@prod")["version"] == 1


def test_with_a_daemon(store, small_model, tmp_path):
    store.publish(small_model, name="base")
    with Daemon(store), Mount(store, tmp_path / "mnt") as mount:
        assert store.json("mv", "base", "org/base") == {"model": "base", "to": "org/base"}
        wait_until(lambda: (mount / "models/org/base/1").is_dir())
        refused = store.weft("mv", "base", "x", check=False)
        assert refused.returncode == 1 and "base was renamed to org/base" in refused.stderr
        assert store.weft("mv", "org/base", "1", check=False).returncode == 1
        with open(mount / ".weft/events") as events:
            store.weft("mv", "org/base", "base")
            event = json.loads(next(events))
        assert (event["event"], event["model"], event["to"]) == ("rename", "org/base", "base")
    store.assert_sound()
