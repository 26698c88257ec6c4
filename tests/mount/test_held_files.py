"""A user who keeps a hold on a file that he publishes changes no published byte, on any file system."""
import contextlib
import ctypes
import errno
import json
import mmap
import os
import shutil
import threading

import pytest

from daemonlib import Daemon
from slowfile import SlowFile
from uring import RegisteredBuffer
from users import import_of
from weftlib import (FILE_SYSTEMS, Mount, Store, disk_of, process_of, programs_for_everybody, random_bytes, refused_by,
                     run, wait_until)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
OWNER, USER = 0, 64001  # of the store; somebody else
SIZE = 2 << 20
HELD = slice(1 << 20, (1 << 20) + (64 << 10))  # of the file
CHANGE = b"\xff" * (HELD.stop - HELD.start)  # what the holder writes there
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.read.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]


class World:
    """A file system with a store, mounted and with a daemon. Cases share it, each with names and bytes of its own."""

    def __init__(self, kind, disk, mount, programs):
        self.kind, self.disk, self.mount, self.programs = kind, disk, mount, programs

    def published(self, name):
        """The bytes of the file in the newest version, as the disk has them: nothing is in the page cache."""
        for pack in (self.mount.store.path / "packs").glob("*.pack"):
            with open(pack, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return (self.mount / "models" / name / "latest/w.bin").read_bytes()


@pytest.fixture(name="world", scope="module", params=FILE_SYSTEMS)
def a_world(request, tmp_path_factory):
    area = tmp_path_factory.mktemp(request.param)
    programs = area / "programs"
    programs.mkdir()
    with disk_of(request.param, area) as disk:
        disk.chmod(0o755)
        store = Store(disk / "store")
        with Mount(store, area / "mnt", "publish,drafts_max=64G") as mount, Daemon(store, "--control-publish", USER):
            mount.let_in()
            yield World(request.param, disk, mount, programs_for_everybody(programs))
        store.assert_sound()


class Way:
    """How a file w.bin is published. The calls are the user's, beside the test."""

    def __init__(self, world, name, user):
        self.world, self.name, self.user = world, name, user
        self.own = world.mount / "new" / f"{name}-own"  # where the user has other files

    def prepare(self, content):
        """Makes `place`, the directory that is published, with the file."""
        self.own.mkdir(exist_ok=True)
        self.place.mkdir()
        (self.place / "w.bin").write_bytes(content)

    def clear(self):
        shutil.rmtree(self.own, ignore_errors=True)
        shutil.rmtree(self.place, ignore_errors=True)


class ByRename(Way):
    waits_for_writers = True

    def __init__(self, *words):
        super().__init__(*words)
        self.place = self.world.mount / "new" / self.name

    def publish(self):
        self.place.rename(f"{self.place}@")

    def is_refused(self):
        refused_by(errno.EBUSY, self.publish)


class AsCheckpoint(Way):
    waits_for_writers = True

    def __init__(self, *words):
        super().__init__(*words)
        self.place = self.own / "c-1"

    def prepare(self, content):
        self.own.mkdir()
        (self.own / ".weft.json").write_text(json.dumps({"model": self.name, "each": "c-*", "when": "done"}))
        super().prepare(content)

    def publish(self):
        if not (self.place / "done").exists():
            (self.place / "done").write_text("1")
        wait_until((self.place / ".weft.published").exists)

    def is_refused(self):
        """It waits: a checkpoint that is complete after it becomes a version before it."""
        (self.place / "done").write_text("1")
        (self.own / "c-2").mkdir()
        (self.own / "c-2/done").write_text("1")
        wait_until((self.own / "c-2/.weft.published").exists)
        assert not (self.place / ".weft.published").exists()


class ByImport(Way):
    waits_for_writers = False
    options = ()

    def __init__(self, *words):
        super().__init__(*words)
        self.own = self.world.disk / f"{self.name}-own"
        self.place = self.own / "source"
        self.own.mkdir()
        os.chown(self.own, self.user, self.user)

    def publish(self):
        run([self.world.programs / "weft", "--store", self.world.mount.store.path, "import", *self.options, "--name",
             self.name, self.place])


class ByMove(ByImport):
    options = ("--move",)


WAYS = {"rename": ByRename, "checkpoint": AsCheckpoint, "import": ByImport, "move": ByMove}

# Each holds the file of a way as a context, and gives a function that writes through the hold.


@contextlib.contextmanager
def mapped(path):
    """The address of a mapping that goes, with its descriptor, when the context ends."""
    with open(path, "r+b") as file:
        pages = LIBC.mmap(None, len(CHANGE), mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file.fileno(), HELD.start)
        assert pages != ctypes.c_void_p(-1).value, os.strerror(ctypes.get_errno())
        try:
            yield pages
            os.fsync(file.fileno())
        finally:
            LIBC.munmap(pages, len(CHANGE))


@contextlib.contextmanager
def by_pinned_pages(way, slow):
    """A direct read into a mapping ends after the publish: the kernel writes into its pages then."""
    source = os.open(slow.path, os.O_RDONLY)
    with mapped(way.place / "w.bin") as pages:
        ctypes.memmove(pages, ctypes.string_at(pages, len(CHANGE)), len(CHANGE))
        reader = threading.Thread(target=lambda: LIBC.read(source, pages, len(CHANGE)))
        reader.start()
        os.read(slow.hears, 1)  # the read waits

    def write():
        with contextlib.suppress(OSError):
            (slow.at / "release").stat()
        reader.join()

    yield write


@contextlib.contextmanager
def by_a_registered_buffer(way, _slow):
    with contextlib.ExitStack() as stack:
        with mapped(way.place / "w.bin") as pages:
            ctypes.memmove(pages, ctypes.string_at(pages, len(CHANGE)), len(CHANGE))
            buffer = stack.enter_context(RegisteredBuffer(pages, len(CHANGE)))
        source = os.memfd_create("change")
        os.write(source, CHANGE)
        yield lambda: buffer.read(source)


@contextlib.contextmanager
def by_an_open_file(way, _slow):
    with open(way.place / "w.bin", "r+b", buffering=0) as file:
        yield lambda: os.pwrite(file.fileno(), CHANGE, HELD.start)


@contextlib.contextmanager
def by_a_mapping(way, _slow):
    with mapped(way.place / "w.bin") as pages:
        yield lambda: ctypes.memmove(pages, CHANGE, len(CHANGE))


def write_to(path, directory=None):
    """The publish may have removed the name."""
    try:
        file = os.open(path, os.O_RDWR, dir_fd=directory)
    except (FileNotFoundError, PermissionError):
        return
    os.pwrite(file, CHANGE, HELD.start)
    os.fsync(file)
    os.close(file)


@contextlib.contextmanager
def by_a_second_name(way, _slow):
    os.link(way.place / "w.bin", way.own / "second")
    yield lambda: write_to(way.own / "second")


@contextlib.contextmanager
def by_a_directory(way, _slow):
    """By its descriptor, and as the working directory of a process."""
    directory = os.open(way.place, os.O_RDONLY | os.O_DIRECTORY)
    os.chdir(way.place)

    def write():
        write_to("w.bin", directory)
        write_to(f"/proc/{os.getpid()}/cwd/w.bin")

    yield write
    os.chdir("/")
    os.close(directory)


@contextlib.contextmanager
def by_the_import(way, _slow):
    """The import that the mount starts works in the draft: its working directory leads to the files of the store."""
    with open(way.place / "a.pad", "wb") as pad:
        pad.truncate(128 << 20)  # the import takes its time before it comes to the other file
    opened = []

    def open_by_it():
        wait_until(lambda: import_of(way.user))
        opened.append(os.open(import_of(way.user) / "cwd/w.bin", os.O_RDWR))

    opener = threading.Thread(target=open_by_it)
    opener.start()

    def write():
        opener.join()
        os.pwrite(opened[0], CHANGE, HELD.start)

    yield write


HOLDS = {"pinned pages": by_pinned_pages, "registered buffer": by_a_registered_buffer, "open file": by_an_open_file,
         "mapping": by_a_mapping, "second name": by_a_second_name, "directory": by_a_directory,
         "import's directory": by_the_import}
WRITERS = ("open file", "mapping")  # the kernel says that they are there
UNSEEN = ("pinned pages", "registered buffer", "import's directory")


def is_a_case(hold, way, user):
    """The owner of the store may harm himself by what nobody can see. Else his file may become a part of the store as it
    lies, but for a plain import."""
    if hold == "import's directory" and way in ("import", "move"):
        return False  # an import that the user has started himself
    if user == USER:
        return True
    return hold not in UNSEEN and way != "import" and (way == "move" or hold not in WRITERS)


CASES = [(hold, way, user) for user in (USER, OWNER) for hold in HOLDS for way in WAYS if is_a_case(hold, way, user)]


def skip_unless_buffers_are_registered(world, directory):
    """The kernel takes no memory of a file whose file system wants to hear of each write to it."""
    probe = directory / "probe"
    probe.mkdir()
    (probe / "w.bin").write_bytes(bytes(HELD.stop))
    try:
        with mapped(probe / "w.bin") as pages, RegisteredBuffer(pages, len(CHANGE)):
            pass
    except OSError as error:
        pytest.skip(f"io_uring registers no memory of a file here, on {world.kind}: {error}")
    finally:
        shutil.rmtree(probe)


@pytest.mark.parametrize("hold, way, user", CASES,
                         ids=[f"{hold}-{way}-{'user' if user else 'owner'}" for hold, way, user in CASES])
def test_a_held_file_is_published_as_it_was(world, tmp_path, hold, way, user):
    """Either the publish waits for the holder, or what he writes later is not in the version."""
    if hold == "registered buffer":
        skip_unless_buffers_are_registered(world, world.disk if issubclass(WAYS[way], ByImport) else world.mount / "new")
    name = f"{hold}-{way}-{user}".replace(" ", "-").replace("'", "")
    content = random_bytes(SIZE, seed=f"held {world.kind} {name}")
    changed = content[:HELD.start] + CHANGE + content[HELD.stop:]
    published = WAYS[way](world, name, user)
    is_refused = hold in WRITERS and published.waits_for_writers

    def work(companion):
        published.prepare(content)
        with HOLDS[hold](published, slow) as write_through_it:
            if is_refused:
                published.is_refused()
            else:
                published.publish()
            write_through_it()
        if is_refused:
            published.publish()
        companion.is_ready()

    tmp_path.chmod(0o755)
    place = tmp_path / "slow"
    place.mkdir()
    with SlowFile(place) as slow, process_of(user, work):
        pass
    assert world.published(name) == (changed if is_refused else content)
    published.clear()
