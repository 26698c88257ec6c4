"""A user who keeps a hold on a file that he publishes changes no published byte, on any file system."""
import ctypes
import json
import mmap
import os
import threading

import pytest

from daemonlib import Daemon
from slowfile import SlowFile
from weftlib import Mount, Store, process_of, programs_for_everybody, random_bytes, run, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
USER = 64001
DATA = random_bytes(4 << 20, seed="held")
HELD = slice(1 << 20, (1 << 20) + (64 << 10))  # of DATA
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.read.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]


def pin(path, slow):
    """Lets the kernel pin pages of the file for a read that waits, then unmaps and closes it. Returns the reader."""
    size = HELD.stop - HELD.start
    with open(path, "r+b") as file:
        pages = LIBC.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file.fileno(), HELD.start)
        ctypes.memmove(pages, DATA[HELD], size)
        os.fsync(file.fileno())
        source = os.open(slow.path, os.O_RDONLY)
        reader = threading.Thread(target=lambda: LIBC.read(source, pages, size))
        reader.start()
        os.read(slow.hears, 1)  # the read waits
        LIBC.munmap(pages, size)
    return reader


def by_rename(mount, _programs, _own, slow):
    draft = mount / "new" / "held"
    draft.mkdir()
    (draft / "w.bin").write_bytes(DATA)
    reader = pin(draft / "w.bin", slow)
    draft.rename(f"{draft}@")
    return reader


def as_checkpoint(mount, _programs, _own, slow):
    training = mount / "new" / "run"
    training.mkdir()
    (training / ".weft.json").write_text(json.dumps({"model": "held", "each": "c-*", "when": "done"}))
    draft = training / "c-1"
    draft.mkdir()
    (draft / "w.bin").write_bytes(DATA)
    reader = pin(draft / "w.bin", slow)
    (draft / "done").write_text("1")
    wait_until((draft / ".weft.published").exists)
    return reader


def by_import(*options):
    def publish(mount, programs, own, slow):
        source = own / "source"
        source.mkdir()
        (source / "w.bin").write_bytes(DATA)
        reader = pin(source / "w.bin", slow)
        run([programs / "weft", "--store", mount.store.path, "import", *options, "--name", "held", source])
        return reader
    return publish


WAYS = {"rename": by_rename, "checkpoint": as_checkpoint, "import": by_import(), "move": by_import("--move")}


@pytest.mark.parametrize("way", WAYS)
def test_pinned_pages_change_nothing(disk, tmp_path, open_dir, way):
    """A direct read into a mapping of the draft ends after the publish: the kernel writes into its pages then."""
    store, own, pinned = Store(disk / "store"), disk / "own", tmp_path / "slow"
    own.mkdir()
    os.chown(own, USER, USER)
    pinned.mkdir()
    for place in (disk, own):
        place.chmod(0o755)
    programs = programs_for_everybody(open_dir)
    with SlowFile(pinned) as slow, Mount(store, tmp_path / "mnt", "publish") as mount, \
            Daemon(store, "--control-publish", USER):
        mount.let_in()

        def work(companion):
            reader = WAYS[way](mount, programs, own, slow)
            companion.is_ready()
            reader.join()

        with process_of(USER, work):
            slow.release()
        for pack in (store.path / "packs").glob("*.pack"):
            with open(pack, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        assert (mount.version("held", 1) / "w.bin").read_bytes() == DATA
    store.assert_sound()
