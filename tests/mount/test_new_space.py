"""How much programs may write into new/."""
import contextlib
import ctypes
import errno
import os
import threading
import time

import pytest

from daemonlib import Daemon
from weftlib import Mount, Store, overlay_over, process_of, random_bytes, refused_by, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
MIB = 1 << 20


@pytest.fixture(name="new", params=["passed through", "served"])
def a_small_area(tmp_path, request):
    with contextlib.ExitStack() as stack:
        served = request.param == "served"
        area = stack.enter_context(overlay_over(tmp_path / "lower", tmp_path)) if served else tmp_path
        mount = stack.enter_context(Mount(Store(area / "store"), tmp_path / "mnt", "publish,drafts_max=8M"))
        (mount / "new/m").mkdir()
        yield mount / "new"


def test_an_announced_size_is_refused(new):
    with open(new / "m/x", "wb") as file:
        for announce in (lambda: file.truncate(9 * MIB), lambda: os.posix_fallocate(file.fileno(), 0, 9 * MIB)):
            with pytest.raises(OSError) as failed:
                announce()
            assert failed.value.errno == errno.EDQUOT
        assert os.fstat(file.fileno()).st_size == 0
        file.truncate(8 * MIB)
    with pytest.raises(OSError) as failed:
        open(new / "m/y", "wb").close()
    assert failed.value.errno == errno.EDQUOT
    os.truncate(new / "m/x", MIB)
    (new / "m/y").write_bytes(random_bytes(MIB, 1))


def test_what_is_written_counts_within_a_second(new):
    with open(new / "m/x", "wb") as file:
        try:
            for _ in range(16):
                file.write(random_bytes(MIB, 1))
                file.flush()
        except OSError as error:  # writes that the server carries out
            assert error.errno == errno.EDQUOT
            assert os.fstat(file.fileno()).st_size <= 8 * MIB
            file.truncate(8 * MIB)
    time.sleep(1.1)
    for make in (lambda: open(new / "m/y", "wb"), lambda: open(new / "m/x", "r+b")):
        with pytest.raises(OSError) as failed:
            make()
        assert failed.value.errno == errno.EDQUOT
    assert (new / "m/x").read_bytes()[:MIB] == random_bytes(MIB, 1)
    os.unlink(new / "m/x")

    def fits():
        try:
            return (new / "m/y").write_bytes(b"y") == 1
        except OSError as error:
            assert error.errno == errno.EDQUOT
            return False

    wait_until(fits)  # the server hears of a close a little later


@pytest.mark.parametrize("by", ["ftruncate", "fallocate"])
def test_an_open_file_counts_without_a_name(by, new):
    with open(new / "m/x", "w+b") as file:
        os.unlink(new / "m/x")
        grow = file.truncate if by == "ftruncate" else lambda size: os.posix_fallocate(file.fileno(), 0, size)
        grow(6 * MIB)
        for refused in (lambda: grow(9 * MIB), lambda: other.truncate(3 * MIB)):
            with open(new / "m/y", "wb") as other:
                refused_by(errno.EDQUOT, refused)
        assert os.fstat(file.fileno()).st_size == 6 * MIB

    def fits():
        with contextlib.suppress(OSError), open(new / "m/y", "wb") as other:
            other.truncate(8 * MIB)
        return os.stat(new / "m/y").st_size == 8 * MIB

    wait_until(fits)  # the server hears of a close a little later


def test_a_copy_of_what_a_version_has_counts(new):
    """The files of a checkpoint that is published are a version's. One that is changed gets a copy."""
    run = new / "run"
    run.mkdir()
    (run / ".weft.json").write_text('{"model": "m", "each": "checkpoint-*", "when": "done"}')
    (run / "checkpoint-1").mkdir()
    for name in ("x", "y"):
        (run / "checkpoint-1" / name).write_bytes(random_bytes(3 * MIB, name))
    (run / "checkpoint-1/done").touch()
    wait_until(lambda: (run / "checkpoint-1/.weft.published").exists())
    with open(new / "m/filler", "wb") as file:
        file.truncate(4 * MIB)
    os.chmod(run / "checkpoint-1/x", 0o600)
    for change in (lambda: os.chmod(run / "checkpoint-1/y", 0o600), lambda: open(run / "checkpoint-1/y", "r+b").close()):
        refused_by(errno.EDQUOT, change)
    os.unlink(new / "m/filler")
    os.chmod(run / "checkpoint-1/y", 0o600)
    for name in ("x", "y"):
        assert (run / "checkpoint-1" / name).read_bytes() == random_bytes(3 * MIB, name)


def test_space_that_is_taken_beside_a_writer(new):
    """One program takes space for a file while another one writes behind it; nothing that is written goes."""
    with open(new / "m/x", "w+b") as file, open(new / "m/x", "r+b") as writer:
        for begin in range(0, 4 * MIB, MIB):
            ahead = threading.Thread(target=os.pwrite, args=(writer.fileno(), b"w" * 4096, begin + MIB))
            ahead.start()
            os.posix_fallocate(file.fileno(), begin, MIB)
            ahead.join()
        written = file.read()
    assert [written[at:at + 4096] for at in range(MIB, 4 * MIB + 1, MIB)] == [b"w" * 4096] * 4


def test_what_is_published_counts_no_more(new):
    for _ in range(4):
        (new / "m").mkdir(exist_ok=True)
        with open(new / "m/x", "wb") as file:
            file.truncate(6 * MIB)
            file.write(os.urandom(6 * MIB))
        os.rename(new / "m", new / "m@")


def grow_until_refused(path, barrier, by):
    """In steps of a page, each announced; the errno that ends it."""
    with open(path, "r+b") as file:
        barrier.wait()
        while True:
            size = os.fstat(file.fileno()).st_size + 4096
            try:
                os.ftruncate(file.fileno(), size) if by == "ftruncate" else os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                return error.errno


@pytest.mark.parametrize("by", ["ftruncate", "fallocate"])
@pytest.mark.parametrize("mounts", [1, 2])
def test_the_limit_is_exact_for_all_who_announce(mounts, by, tmp_path):
    """Programs that run at once, through one mount of the store or through two, fill it to the last page."""
    with contextlib.ExitStack() as stack:
        store = Store(tmp_path / "store")
        made = [stack.enter_context(Mount(store, tmp_path / f"mnt{i}", "publish,drafts_max=2M")) for i in range(mounts)]
        (made[0] / "new/m").mkdir()
        paths = [made[i % mounts] / "new/m" / f"x{i}" for i in range(4)]
        for path in paths:
            path.touch()
        barrier, ends = threading.Barrier(len(paths)), []
        programs = [threading.Thread(target=lambda path=path: ends.append(grow_until_refused(path, barrier, by)))
                    for path in paths]
        for program in programs:
            program.start()
        for program in programs:
            program.join()
        assert ends == [errno.EDQUOT] * len(paths)
        assert sum(path.stat().st_size for path in paths) == 2 * MIB


def test_the_drafts_of_all_users_count(tmp_path):
    """Also those that the user who announces cannot look into."""
    store = Store(tmp_path / "store")
    with Mount(store, tmp_path / "mnt", "publish,drafts_max=8M") as mount, Daemon(store, "--control-publish", 64001):
        mount.let_in()
        (mount / "new/mine").mkdir()
        (mount / "new/mine/x").touch()
        os.truncate(mount / "new/mine/x", 6 * MIB)
        time.sleep(1.1)
        draft = mount / "new/theirs"

        def other(companion):
            draft.mkdir()
            (draft / "x").touch()
            refused_by(errno.EDQUOT, os.truncate, draft / "x", 3 * MIB)
            os.truncate(draft / "x", 2 * MIB)
            companion.is_ready()

        with process_of(64001, other):
            assert (draft / "x").stat().st_size == 2 * MIB


def test_space_behind_the_end_of_a_file_is_refused(new):
    """It would take the disk and no part of the limit."""
    libc = ctypes.CDLL(None, use_errno=True)
    keep_size = 1
    with open(new / "m/x", "wb") as file:
        assert libc.fallocate(file.fileno(), keep_size, ctypes.c_long(0), ctypes.c_long(MIB)) == -1
        assert ctypes.get_errno() == errno.EOPNOTSUPP
        assert os.fstat(file.fileno()).st_blocks == 0


def test_a_reserve_is_kept(small_disk, tmp_path):
    """Drafts end with ENOSPC before publishes and gc do: a hundredth of the disk."""
    store = Store(small_disk / "store")
    with Mount(store, tmp_path / "mnt", "publish,drafts_max=1G") as mount:
        new = mount / "new"
        for name in ("old", "m"):
            (new / name).mkdir()
            (new / name / "x").write_bytes(random_bytes(2 * MIB, name))
        os.rename(new / "old", new / "old@")
        (new / "filler").mkdir()
        disk = os.statvfs(small_disk)
        reserve = disk.f_blocks * disk.f_frsize // 100
        free = disk.f_bavail * disk.f_frsize
        with open(new / "filler/x", "wb") as file:
            refused_by(errno.ENOSPC, os.posix_fallocate, file.fileno(), 0, free - reserve // 2)
            refused_by(errno.ENOSPC, file.truncate, free - reserve // 2)
            os.posix_fallocate(file.fileno(), 0, (free - reserve) // 4096 * 4096 - 4096)
        with pytest.raises(OSError) as failed:
            (new / "filler/y").write_bytes(random_bytes(8192, "y"))
            (new / "filler/z").touch()
        assert failed.value.errno == errno.ENOSPC
        os.rename(new / "m", new / "m@")
        assert (mount / "models/m/1/x").read_bytes() == random_bytes(2 * MIB, "m")
        store.weft("rm", "old@1")
        store.weft("gc")
        disk = os.statvfs(small_disk)
        assert disk.f_bavail * disk.f_frsize > 2 * MIB
    store.assert_sound()


@pytest.mark.parametrize("mode", [0, 0x10, 0x03], ids=["take", "zero", "punch"])
def test_space_is_taken_as_on_the_file_system_below(mode, small_disk, tmp_path):
    """Answers, sizes and contents; a tmpfs cannot zero a range."""
    libc = ctypes.CDLL(None, use_errno=True)

    def outcome(path, offset, length):
        path.write_bytes(b"x" * 5000)
        with open(path, "r+b") as file:
            done = libc.fallocate(file.fileno(), mode, ctypes.c_long(offset), ctypes.c_long(length))
        return done and ctypes.get_errno(), path.read_bytes()

    with Mount(Store(small_disk / "store"), tmp_path / "mnt", "publish,drafts_max=8M") as mount:
        (mount / "new/m").mkdir()
        for offset, length in ((0, 100), (4000, 5000), (6000, 10), (9000, MIB), (1, 0), (-1, 5)):
            assert outcome(mount / "new/m/x", offset, length) == outcome(small_disk / "x", offset, length), (offset, length)


def test_df_shows_the_limit(new):
    def sizes(path):
        facts = os.statvfs(path)
        return facts.f_blocks * facts.f_frsize, facts.f_bavail * facts.f_frsize

    assert sizes(new) == (8 * MIB, 8 * MIB)
    (new / "m/x").write_bytes(random_bytes(3 * MIB, 1))
    wait_until(lambda: sizes(new / "m") == (8 * MIB, 5 * MIB))
    assert sizes(new.parent / "models")[0] == sizes(new.parent)[0] > 8 * MIB


def test_a_second_name_takes_no_space(new):
    """A checkpoint of 5 MiB with a second name fits below 8 MiB until one of its names is written to."""
    (new / "m/epoch1").write_bytes(random_bytes(5 * MIB, 1))
    os.link(new / "m/epoch1", new / "m/best")
    time.sleep(1.1)  # until it counts
    refused_by(errno.EDQUOT, open, new / "m/best", "ab")
    assert (new / "m/best").read_bytes() == (new / "m/epoch1").read_bytes() == random_bytes(5 * MIB, 1)


def test_a_copy_takes_no_space_twice_once_published(new):
    (new / "m/epoch1").write_bytes(random_bytes(2 * MIB, 1))
    (new / "m/best").write_bytes((new / "m/epoch1").read_bytes())
    os.rename(new / "m", new / "m@")
    version = new.parent / "models/m/1"
    assert (version / "best").read_bytes() == (version / "epoch1").read_bytes() == random_bytes(2 * MIB, 1)
    assert {path.name: path.stat().st_size for path in version.iterdir()} == {"best": 2 * MIB, "epoch1": 2 * MIB}
