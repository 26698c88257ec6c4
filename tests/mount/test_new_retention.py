"""How long versions and drafts stay: --keep, gc that weftd runs by itself, and drafts that nobody writes."""
import datetime
import json
import os
import pathlib
import re
import time

import pytest

from daemonlib import Daemon
from weftlib import Mount, Store, environment, random_bytes, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def publish(store, number, *options):
    path = pathlib.Path(str(store.path) + ".source") / "x"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(random_bytes(2 << 20, number))
    return store.weft("import", path.parent, "--name", "m", *options)


def live(store):
    return [version["version"] for version in store.json("log", "m")["versions"] if not version.get("removed")]


def packs(store):
    return len(list((store.path / "packs").glob("*.pack")))


@pytest.mark.parametrize("by", ["the command", "weftd"])
def test_older_versions_go_at_once(by, store, tmp_path):
    publish(store, 0, "--tag", "first")
    publish(store, 1)
    daemon = Daemon(store).start() if by == "weftd" else None
    try:
        publish(store, 2)
        publish(store, 3, "--keep", "2")
        assert sorted(live(store)) == [1, 3, 4]
        wait_until(lambda: packs(store) == 3)
    finally:
        if daemon:
            daemon.kill()
            daemon.close()
    store.assert_sound()


def test_a_draft_says_how_many_versions_stay(store, tmp_path):
    with Mount(store, tmp_path / "mnt", "publish") as mount:
        for number in range(4):
            (mount / "new/m").mkdir()
            (mount / "new/m/x").write_bytes(random_bytes(2 << 20, number))
            (mount / "new/m/.weft.json").write_text(json.dumps({"keep": 2}))
            os.rename(mount / "new/m", mount / "new/m@")
        assert sorted(live(store)) == [3, 4]
        assert packs(store) == 2


def test_what_is_removed_stays_for_a_while(store):
    publish(store, 0)
    publish(store, 1)
    with Daemon(store, "--gc-delay", "2s"):
        store.weft("rm", "--force", "m@1")
        publish(store, 2, "--keep", "1")  # gc runs at once, for version 2 alone
        wait_until(lambda: packs(store) == 2)
        wait_until(lambda: packs(store) == 1)
    with Daemon(store, "--gc-delay", "1h") as daemon:
        publish(store, 3)
        store.weft("rm", "--force", "m@3")
        assert packs(store) == 2
        shown = store.weft("status", "--all").stdout
        assert "removed   1 version, which weftd keeps for gc_delay; the first goes in 60 minutes" in shown
        assert "kept until closed" not in shown
        assert daemon.status()["held_versions"] == 1
        store.weft("gc")
        assert packs(store) == 1
        assert "weftd keeps" not in store.weft("status", "--all").stdout
    store.assert_sound()


def test_what_is_removed_comes_back(store, tmp_path):
    """With and without weftd, until gc; rm says until when."""
    publish(store, 0, "--tag", "first")
    publish(store, 1)
    done = store.json("rm", "--force", "m@1")
    assert done["kept_until"] is None and done["kept_until_ns"] is None
    with Mount(store, tmp_path / "mnt") as mount:
        assert "undeleted m@1, with its tags: first" in store.weft("undelete", "m@1").stdout
        wait_until(lambda: os.readlink(mount / "models/m/first") == "1")
        assert (mount / "models/m/1/x").read_bytes() == random_bytes(2 << 20, 0)
        with Daemon(store, "--gc-delay", "1h") as daemon:
            begun = time.time_ns()
            done = store.json("rm", "--force", "m@1", "m@2")
            assert begun + 3500 * 10**9 < done["kept_until_ns"] < time.time_ns() + 3600 * 10**9
            assert store.weft("ls", "--removed", "--names").stdout.split() == ["m@1", "m@2"]
            done = store.json("undelete", "m@1", "m@2")
            assert [(one["version"], one["tags"], one["moved"]) for one in done["undeleted"]] == [
                (1, ["first"], []), (2, [], [])]
            assert daemon.status()["held_versions"] == 0
            wait_until(lambda: (mount / "models/m/1/x").exists())
            store.weft("gc")
            assert packs(store) == 2 and live(store) == [2, 1]
            said = store.weft("rm", "m@2", env=environment(TZ="XST-9")).stdout
            until = re.search("`weft undelete` brings it back; weftd frees its content after ([^ ]*), and earlier", said)[1]
            seconds = datetime.datetime.strptime(until, "%Y-%m-%dT%H:%M:%S%z").timestamp()
            assert 3500 < seconds - begun / 1e9 < 3600 + time.time() - begun / 1e9
            store.weft("gc")
            refused = store.weft("undelete", "m@2", check=False)
            assert refused.returncode == 1 and refused.stderr == "weft: m@2: gc has freed its content\n"
    store.assert_sound()
    store.weft("fsck", "--rebuild")
    assert live(store) == [1]


def test_a_removed_version_that_is_read_is_no_kept_one(store, tmp_path):
    publish(store, 0)
    publish(store, 1)
    with Mount(store, tmp_path / "mnt") as mount, Daemon(store, "--gc-delay", "1h"):
        with open(mount / "models/m/1/x", "rb") as file:
            store.weft("rm", "--force", "m@1")
            store.weft("gc")  # lets go of what is kept
            assert "open      1 removed version, kept until closed" in store.weft("status", "--all").stdout
            assert file.read() == random_bytes(2 << 20, 0)


def test_what_is_removed_goes_earlier_if_space_is_short(small_disk):
    store = Store(small_disk / "store")
    for number in range(3):
        publish(store, number)
    with Daemon(store, "--gc-delay", "1h") as daemon:
        store.weft("rm", "--force", "m@1")
        assert packs(store) == 3 and daemon.status()["held_versions"] == 1
        free = os.statvfs(small_disk)
        with open(small_disk / "filler", "wb") as filler:  # a fortieth stays free
            os.posix_fallocate(filler.fileno(), 0, (free.f_bavail - free.f_blocks // 40) * free.f_bsize)
        wait_until(lambda: packs(store) == 2, seconds_max=60)
        assert daemon.status()["held_versions"] == 0
        (small_disk / "filler").unlink()
        store.weft("rm", "--force", "m@2")
        assert packs(store) == 2 and daemon.status()["held_versions"] == 1
    store.assert_sound()


def test_gc_removes_drafts_that_nobody_writes(store, tmp_path):
    with Mount(store, tmp_path / "mnt", "publish") as mount, Daemon(store, "--drafts-keep", "1s"):
        (mount / "new/org").mkdir()
        (mount / "new/org/m").mkdir()
        (mount / "new/org/m/x").write_bytes(b"x")
        os.rename(mount / "new/org/m", mount / "new/org/m@")  # from now on new/org is a namespace
        for draft in "org/old", "open":
            (mount / "new" / draft).mkdir()
            (mount / "new" / draft / "x").write_bytes(b"x" * 1000)
        with open(mount / "new/open/x", "ab"):
            assert [draft["path"] for draft in store.json("status")["drafts"]] == ["org/old"]
            time.sleep(2.1)
            dry = store.json("gc", "--dry-run")["drafts"]
            assert [(draft["path"], draft["bytes"]) for draft in dry] == [("org/old", 1000)]
            assert "org/old" in store.weft("status", "--all").stdout
            (mount / "new/young").mkdir()
            assert [draft["path"] for draft in store.json("gc")["drafts"]] == ["org/old"]
        assert sorted(os.listdir(mount / "new")) == ["open", "org", "young"]
        assert os.listdir(mount / "new/org") == []


def test_status_names_a_draft_a_day_before(store, tmp_path):
    day = 24 * 3600
    with Mount(store, tmp_path / "mnt", "publish") as mount, Daemon(store, "--drafts-keep", f"{day + 3}s"):
        (mount / "new/m").mkdir()
        (mount / "new/m/x").write_bytes(b"x")
        written = (mount / "new/m/x").stat().st_ctime
        named = []

        def is_named():
            named[:] = store.json("status")["drafts"]
            return bool(named)

        wait_until(is_named)
        assert time.time() - written > 2, "of seconds, the parts of one do not count"
        assert named[0]["path"] == "m" and named[0]["bytes"] == 1
        assert "new/m, 1 B: nobody writes to it, gc removes it in 24 hours" in store.weft("status", "--all").stdout
        assert store.json("gc")["drafts"] == []
        assert os.listdir(mount / "new") == ["m"]


def test_weftd_removes_drafts_by_itself(store, tmp_path):
    with Mount(store, tmp_path / "mnt", "publish") as mount:
        for draft in "old", "open":
            (mount / "new" / draft).mkdir()
            (mount / "new" / draft / "x").write_bytes(b"x")
        with open(mount / "new/open/x", "ab"), Daemon(store, "--drafts-keep", "1s", "--gc-delay", "1s") as daemon:
            wait_until(lambda: os.listdir(mount / "new") == ["open"])
            wait_until(lambda: "the draft old is removed" in daemon.said())
