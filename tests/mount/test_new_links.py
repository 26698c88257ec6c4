"""Hard links between drafts of one user: each name is a file of its own as soon as it is written to."""
import errno
import os
import shutil

import pytest

from daemonlib import Daemon
from weftlib import NOBODY, Mount, Store, act_as, files_below, random_bytes, refused_by, run

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
MIB = 1 << 20


@pytest.fixture(name="mount")
def a_mount(tmp_path):
    store = Store(tmp_path / "store")
    with Mount(store, tmp_path / "mnt", "publish") as mount, Daemon(store, "--control-publish", NOBODY):
        mount.let_in()
        yield mount


def two_names(mount):
    """run/epoch1, also as best/epoch1."""
    for name in ("run", "best"):
        (mount / "new" / name).mkdir()
    first, second = mount / "new/run/epoch1", mount / "new/best/epoch1"
    first.write_bytes(random_bytes(2 * MIB, 1))
    os.link(first, second)
    return first, second


@pytest.mark.parametrize("user", [0, NOBODY])
def test_both_names_have_the_bytes(user, mount):
    def link():
        first, second = two_names(mount)
        assert second.read_bytes() == first.read_bytes() == random_bytes(2 * MIB, 1)
        assert first.samefile(second)
        assert first.stat().st_nlink == second.stat().st_nlink == 1
        first.unlink()
        assert second.read_bytes() == random_bytes(2 * MIB, 1)

    act_as(user, link)


CHANGES = {
    "overwritten": lambda path: path.write_bytes(b"new"),
    "extended": lambda path: path.open("ab").write(b"new"),
    "truncated": lambda path: os.truncate(path, 7),
    "its mode": lambda path: path.chmod(0o600),
    "replaced": lambda path: os.replace(shutil.copy(__file__, path.with_name("other")), path),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("user", [0, NOBODY])
def test_a_change_leaves_the_other_name_alone(user, what, mount):
    def change():
        for number in (0, 1):
            names = two_names(mount)
            mode = names[0].stat().st_mode
            CHANGES[what](names[number])
            assert names[1 - number].read_bytes() == random_bytes(2 * MIB, 1)
            assert names[1 - number].stat().st_mode == mode
            for name in names:
                shutil.rmtree(name.parent)

    act_as(user, change)


@pytest.mark.parametrize("user", [0, NOBODY])
def test_no_name_leads_into_a_version(user, mount):
    def publish():
        first, second = two_names(mount)
        os.rename(first.parent, mount / "new/run@")
        with second.open("r+b") as file:
            file.write(b"changed")
        assert second.read_bytes()[:7] == b"changed"

    act_as(user, publish)
    version = mount.version("run", 1)
    assert (version / "epoch1").read_bytes() == random_bytes(2 * MIB, 1)
    act_as(user, lambda: os.rename(mount / "new/best", mount / "new/best@"))
    assert (mount.version("best", 1) / "epoch1").read_bytes() == b"changed" + random_bytes(2 * MIB, 1)[7:]
    assert (version / "epoch1").read_bytes() == random_bytes(2 * MIB, 1)
    mount.store.assert_sound()


def test_a_draft_with_a_writer_of_the_other_name_is_busy(mount):
    """The program has had the file open since before it was linked."""
    (mount / "new/run").mkdir()
    with open(mount / "new/run/x", "wb") as file:
        file.write(random_bytes(MIB, 1))
        file.flush()
        (mount / "new/best").mkdir()
        os.link(mount / "new/run/x", mount / "new/best/x")
        for name in ("run", "best"):
            refused_by(errno.EBUSY, os.rename, mount / "new" / name, mount / f"new/{name}@")
    os.rename(mount / "new/best", mount / "new/best@")
    assert (mount.version("best", 1) / "x").read_bytes() == random_bytes(MIB, 1)


def test_programs_copy_by_links(mount):
    """cp -al, and rsync with --link-dest; a directory with both names becomes a version."""
    first, _ = two_names(mount)
    (first.parent / "below").mkdir()
    os.link(first, first.parent / "below/last")
    run(["cp", "-al", first.parent, mount / "new/copy"])
    run(["rsync", "-a", f"--link-dest={first.parent}/", f"{first.parent}/", mount / "new/snapshot/"])
    expected = {name: random_bytes(2 * MIB, 1) for name in ("epoch1", "below/last")}
    for name in ("run", "copy", "snapshot"):
        assert files_below(mount / "new" / name) == expected
        os.rename(mount / "new" / name, mount / f"new/{name}@")
        assert files_below(mount.version(name, 1)) == expected
    assert mount.store.pack_bytes() < 3 * MIB


def test_a_file_of_another_user_is_not_linked(mount):
    (mount / "new/single").write_bytes(b"x")
    (mount / "new/single").chmod(0o644)

    def link():
        (mount / "new/own").mkdir()
        with pytest.raises(PermissionError):  # by the kernel, if it protects hard links
            os.link(mount / "new/single", mount / "new/own/link")
        refused_by(errno.EROFS, os.link, mount.version("m", 1) / "x", mount / "new/own/link")
        assert os.listdir(mount / "new/own") == []

    (mount / "new/m").mkdir()
    (mount / "new/m/x").write_bytes(b"x")
    os.rename(mount / "new/m", mount / "new/m@")
    act_as(NOBODY, link)
