"""The numbers of drafts: a file system gives the number of a removed file to a new one at once."""
import ctypes
import os
import shutil
import struct

import pytest

from daemonlib import Daemon
from users import ONE, OTHER
from weftlib import Mount, Store, act_as, disk_of, linux_version, process_of, random_bytes

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
FUSE_HANDLE = 0x81  # the number of a node in two words, and its generation


@pytest.fixture(name="mount", params=["ext4", "xfs"])
def a_mount(request, tmp_path):
    """On a file system that gives numbers again."""
    with disk_of(request.param, tmp_path) as disk:
        disk.chmod(0o755)
        store = Store(disk / "store")
        with Mount(store, tmp_path / "mnt", "publish") as mount, \
                Daemon(store, "--control-publish", ONE, "--control-publish", OTHER):
            mount.let_in()
            yield mount


def node_of(path):
    """(number, generation) of a directory, as the kernel knows it."""
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    unused = ctypes.c_int()
    if LIBC.name_to_handle_at(AT_FDCWD, os.fsencode(path), handle, ctypes.byref(unused), 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    size, kind, high, low, generation = struct.unpack_from("Ii3I", handle.raw)
    assert (size, kind) == (12, FUSE_HANDLE)
    return high << 32 | low, generation


@pytest.mark.skipif(linux_version() < (6, 13), reason="before Linux 6.13 two files of one tick have the same birth")
def test_a_number_that_is_given_again_has_another_generation(mount):
    nodes = []
    for _ in range(300):
        (mount / "new/m").mkdir()
        nodes.append(node_of(mount / "new/m"))
        (mount / "new/m").rmdir()
    assert len({number for number, _ in nodes}) < len(nodes), "no number was given again"
    assert len(set(nodes)) == len(nodes)


def test_a_mkdir_beside_publishes_is_never_stale(mount):
    """The kernel would take the new directory for a published one of its number, whose name is still there."""
    new = mount / "new"

    def publish(name, size):
        def go_on(companion):
            companion.is_ready()
            number = 0
            while not companion.is_over():
                draft, number = new / name, number + 1
                draft.mkdir()
                (draft / "w").write_bytes(random_bytes(100, f"{name} {number}") + bytes(size))
                draft.rename(f"{draft}@")
        return go_on

    def make_and_remove():
        (new / "run").mkdir()
        for number in range(400):
            checkpoint = new / "run" / f"c-{number}"
            checkpoint.mkdir()
            (checkpoint / "w").write_bytes(b"x" * 1000)
            shutil.rmtree(checkpoint)

    with process_of(OTHER, publish("small", 0)), process_of(OTHER, publish("large", 8 << 20)):
        act_as(ONE, make_and_remove)
    for name in ("small", "large"):
        assert (mount / "models" / name / "1/w").exists(), "nothing was published beside"
