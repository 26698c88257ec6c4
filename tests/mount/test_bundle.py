"""`weft bundle`: versions move from one store to another, with a daemon and without; killed and hostile."""
import json
import os
import shutil
import signal
import subprocess
import tarfile

import pytest

from daemonlib import Daemon
from weftlib import WEFT, Mount, Store, assert_refused, files_below, random_tensors, run, write_model

SAME = ("model", "version", "time", "message", "metrics", "parents", "tags", "manifest", "bytes", "tensors")
SPECS = [("bert", 1), ("bert", 2), ("org/tuned", 1)]


@pytest.fixture
def sites(store, tmp_path):
    """A store with three versions, and the path of another that does not exist."""
    shared = random_tensors(3, 256 << 10, seed="shared")
    for number in (1, 2):
        source = write_model(tmp_path / f"bert{number}", shared | random_tensors(1, 64 << 10, seed=f"b{number}", prefix="own"),
                             [("notes.txt", b"notes %d" % number)])
        store.publish(source, name="bert", message=f"run {number}", metric=f"loss=0.{number}")
    store.publish(write_model(tmp_path / "tuned", shared | random_tensors(1, 64 << 10, seed="t", prefix="head")),
                  name="org/tuned", parent="bert@2", tag="prod")
    store.weft("tag", "bert@1", "first")
    store.weft("note", "bert@1", "--message", "said later")
    return store, tmp_path / "there"


def named(store, model):
    """What `weft log` says, but for what differs between stores."""
    return [{key: one[key] for key in SAME if key in one} for one in store.json("log", model)["versions"]]


def at(path):
    """A store that is there."""
    store = object.__new__(Store)
    store.path = path
    return store


def take_over(bundle, path, *words, check=True):
    return run([WEFT, "--store", path, "bundle", "import", bundle, *words], check=check)


def same_bytes(one, other, area):
    with Mount(one, area / "mnt-one") as here, Mount(other, area / "mnt-other") as there:
        for spec in SPECS:
            assert files_below(here.version(*spec)) == files_below(there.version(*spec))


@pytest.mark.parametrize("directory", [False, True])
def test_a_store_from_its_backup(sites, tmp_path, directory):
    store, there = sites
    bundle = tmp_path / "backup.weft"
    said = store.json("bundle", "create", "--all", bundle, *(["--directory"] if directory else []))
    assert (said["versions"], said["tags"]) == (3, 2)
    listed = store.json("bundle", "list", bundle)
    assert [(one["model"], one["version"]) for one in listed["versions"]] == SPECS
    assert listed["versions"][0]["message"] == "said later" and listed["versions"][2]["tags"] == ["prod"]
    if not directory:
        names = run(["tar", "tf", bundle]).stdout.split()
        assert names[0] == "weft-bundle" and len(names) == 7
        assert sum(one["new_bytes"] for one in listed["versions"]) < bundle.stat().st_size
    report = json.loads(take_over(bundle, there, "--json").stdout)
    assert (report["imported"], report["known"], report["tags"], report["left"]) == (3, 0, 2, [])
    other = at(there)
    for model in ("bert", "org/tuned"):
        assert named(other, model) == named(store, model)
    assert other.json("lineage", "org/tuned") == store.json("lineage", "org/tuned")
    same_bytes(store, other, tmp_path)
    other.assert_sound()
    assert json.loads(take_over(bundle, there, "--json").stdout)["known"] == 3
    other.publish(tmp_path / "tuned", name="bert")
    assert other.json("info", "bert")["version"] == 3


def test_through_a_daemon(sites, tmp_path):
    store, there = sites
    store.weft("bundle", "create", "--all", "--directory", tmp_path / "d")
    store.weft("bundle", "create", tmp_path / "f", "bert@2")
    other = Store(there)
    with Daemon(other):
        assert json.loads(take_over(tmp_path / "f", there, "--json").stdout)["imported"] == 1
        report = json.loads(take_over(tmp_path / "d", there, "--json").stdout)
        assert (report["imported"], report["known"], report["tags"]) == (2, 1, 2)
        assert_refused(take_over(tmp_path / "none", there, check=False), "none")
        same_bytes(store, other, tmp_path)
    for model in ("bert", "org/tuned"):
        assert named(other, model) == named(store, model)
    other.assert_sound()


def test_standard_output_is_the_same_tar(sites, tmp_path):
    store, there = sites
    with open(tmp_path / "out.weft", "wb") as out:
        run([WEFT, "--store", store.path, "bundle", "create", "-", "org/tuned"], stdout=out)
    with tarfile.open(tmp_path / "out.weft") as members:
        assert members.getnames()[0] == "weft-bundle"
    take_over(tmp_path / "out.weft", there)
    assert at(there).json("info", "org/tuned")["parents"][0]["model"] == "bert"  # a name: bert is not there


def test_conflicts_and_tags(sites, tmp_path):
    store, there = sites
    store.weft("bundle", "create", "--all", tmp_path / "b")
    other = Store(there)
    other.publish(tmp_path / "tuned", name="bert")
    before = other.state()
    assert_refused(take_over(tmp_path / "b", there, check=False), "bert@1")
    assert other.state() == before
    take_over(tmp_path / "b", there, "org/tuned", "bert@2")
    other.publish(tmp_path / "bert1", name="org/tuned", tag="prod")
    assert "prod" in take_over(tmp_path / "b", there, "org/tuned").stderr
    assert other.json("info", "org/tuned@prod")["version"] == 2
    take_over(tmp_path / "b", there, "org/tuned", "--move-tags")
    assert other.json("info", "org/tuned@prod")["version"] == 1
    assert_refused(take_over(tmp_path / "b", there, "bert@9", check=False), "bert@9")


def killed(command, wait):
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout=wait)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    process.wait()


def test_killed_and_again(sites, tmp_path):
    store, there = sites
    store.publish(write_model(tmp_path / "large", random_tensors(8, 4 << 20, seed="l")), name="large")
    for turn, wait in enumerate([0.01, 0.03, 0.05, 0.1]):
        bundle = tmp_path / f"k{turn}"
        words = ["--directory"] if turn % 2 else []
        killed([WEFT, "--store", store.path, "bundle", "create", "--all", bundle, *words], wait)
        if not bundle.exists():
            store.weft("bundle", "create", "--all", bundle, *words)
        assert sorted(path.name for path in tmp_path.glob(".k*")) == []
        killed([WEFT, "--store", there, "bundle", "import", bundle], wait)
        take_over(bundle, there)
        other = at(there)
        other.weft("gc")
        assert os.listdir(there / "tmp") == []
        other.assert_sound()
        assert named(other, "bert") == named(store, "bert")
        shutil.rmtree(there)


def test_hostile(sites, tmp_path):
    store, there = sites
    store.weft("bundle", "create", "--all", tmp_path / "good")
    other = Store(there)
    good = (tmp_path / "good").read_bytes()
    before = other.state()
    bad = tmp_path / "bad"

    def refuse(*words):
        assert_refused(take_over(bad, there, check=False), *words)
        assert other.state() == before and os.listdir(there / "tmp") == []

    for size in (0, 100, 512, 4096, len(good) // 2, len(good) - 1024):
        bad.write_bytes(good[:size])
        refuse("bad")
    middle = len(good) // 2
    bad.write_bytes(good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1:])
    refuse("bad")
    with tarfile.open(tmp_path / "good") as members, tarfile.open(bad, "w", format=tarfile.USTAR_FORMAT) as forged:
        for number, member in enumerate(members.getmembers()):
            if number == 1:
                member.name = "../../" + member.name
            forged.addfile(member, members.extractfile(member))
    refuse("bad")
    bad.unlink()
    store.weft("bundle", "create", "--all", "--directory", bad)
    blobs = bad / "blobs/0"
    blobs.rename(tmp_path / "moved")
    blobs.symlink_to(tmp_path / "moved")
    refuse("blobs/0")
    blobs.unlink()
    os.mkfifo(blobs)
    refuse("blobs/0")
    assert json.loads(take_over(tmp_path / "good", there, "--dry-run", "--json").stdout)["imported"] == 3
    assert other.state() == before
