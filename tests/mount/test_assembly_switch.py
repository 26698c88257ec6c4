"""Files that are open through the server while they get an assembled file, and while it is evicted. No read, open or
mapping may fail or see a wrong byte."""
import mmap
import os
import random
import threading
import time

import pytest

from assembled import assembled, assembly, container_of, open_again, publish_family, whole_files
from weftlib import PATIENCE, Mount, rounds, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="passthrough needs root")

SECONDS = rounds(4, 100)
SECONDS_MORE = 60 * PATIENCE  # for what must have happened, where that is slow
SWITCHES = 24  # of each kind: files assembled, opened assembled, evicted; for a file of its own a quarter of it
PIECE = 64 << 10


@pytest.fixture
def family(store, tmp_path):
    return publish_family(store, tmp_path, ["one", "two", "own"])


def test_mixed_use(store, family, tmp_path):
    """One handle and one mapping from before, one of each from after; the inode stays the same for all."""
    expected = family["one"]
    with Mount(store, tmp_path / "mnt") as mount:
        path = container_of(mount, "one")
        with open(path, "rb", buffering=0) as early:
            with open(path, "rb") as file:
                left_behind = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            assembled(mount, "one", expected)

            def passed_through():
                with open(path, "rb", buffering=0) as late:
                    return late.read(PIECE) == expected[:PIECE] and assembly(mount)["opened"] > 0

            wait_until(passed_through, pause=0.01)
            with open(path, "rb", buffering=0) as late:
                assert os.fstat(late.fileno()).st_ino == os.fstat(early.fileno()).st_ino == path.stat().st_ino
                store.weft("cache", "--max", "0")
                assert late.read() == early.read() == left_behind[:] == expected
            left_behind.close()
            assert path.read_bytes() == expected


class Load:
    """Threads that use one file in every way until time is up and `switched` is set; the first failure ends them all."""

    def __init__(self, path, expected, switched):
        self.path, self.expected, self.switched = path, expected, switched
        self.end, self.failures, self.steps = time.monotonic() + SECONDS, [], 0

    def goes_on(self):
        now = time.monotonic()
        return not self.failures and (now < self.end or (not self.switched.is_set() and now < self.end + SECONDS_MORE))

    def start(self, step):
        def loop():
            chance = random.Random()
            while self.goes_on():
                try:
                    step(chance)
                    self.steps += 1
                except Exception as failure:  # pylint: disable=broad-except
                    self.failures.append((step.__name__, failure))

        thread = threading.Thread(target=loop)
        thread.start()
        return thread

    def check(self, at, got):
        assert got == self.expected[at:at + len(got)] and got, f"wrong bytes at {at}"

    def place(self, chance):
        return chance.randrange(len(self.expected) - PIECE)

    def read_and_close(self, chance):
        with open(self.path, "rb", buffering=0) as file:
            at = self.place(chance)
            self.check(at, os.pread(file.fileno(), PIECE, at))

    def hold(self, chance):
        with open(self.path, "rb", buffering=0) as file:
            for _ in range(chance.randrange(20)):
                at = self.place(chance)
                self.check(at, os.pread(file.fileno(), PIECE, at))
                time.sleep(chance.uniform(0, 0.01))

    def leave_a_mapping_behind(self, chance):
        with open(self.path, "rb", buffering=0) as file:
            mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        time.sleep(chance.uniform(0, 0.1))
        at = self.place(chance)
        self.check(at, mapping[at:at + PIECE])
        mapping.close()

    def read_all(self, _):
        """Also what the page cache had."""
        with open(self.path, "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self.check(0, file.read())

    def look(self, _):
        os.listdir(self.path.parent)
        assert self.path.stat().st_size == len(self.expected)


class OwnFile:
    """A model that nobody else opens: it is known when its assembled file comes and goes."""

    def __init__(self, store, mount, expected):
        self.store, self.mount, self.expected = store, mount, expected
        self.path = container_of(mount, "own")
        self.evicted = 0
        assembled(mount, "own", expected)
        self.key, = whole_files(store)

    def is_assembled(self):
        return self.key in whole_files(self.store)

    def assemble(self):
        if not self.is_assembled():
            assert self.path.read_bytes() == self.expected
            wait_until(self.is_assembled_when_opened, seconds_max=60, pause=0.1)

    def is_assembled_when_opened(self):
        """A mount forgets what is asked for soon after an attempt that found no space: evict() leaves none."""
        open_again(self.path)
        return self.is_assembled()

    def evict(self):
        """Its handle outlives the file below."""
        with open(self.path, "rb", buffering=0) as file:
            self.store.weft("cache", "--max", "0")
            assert not self.is_assembled()
            assert file.read() == self.expected
        self.evicted += 1

    def done(self):
        return self.evicted >= SWITCHES // 4


@pytest.mark.long
def test_switch_under_load(store, family, tmp_path):
    with Mount(store, tmp_path / "mnt") as mount:
        own = OwnFile(store, mount, family.pop("own"))
        switched = threading.Event()
        loads = [Load(container_of(mount, name), expected, switched) for name, expected in family.items()]
        threads = [load.start(step) for load in loads
                   for step in (load.read_and_close, load.hold, load.leave_a_mapping_behind, load.read_all, load.look)]
        try:
            while any(thread.is_alive() for thread in threads):
                own.assemble()
                own.evict()
                store.weft("cache", "--max", "1G")
                time.sleep(0.2)
                status = assembly(mount)
                if min(status["made"], status["opened"]) >= SWITCHES and own.done():
                    switched.set()
        finally:
            for load in loads:
                load.end = 0
            switched.set()
            for thread in threads:
                thread.join()
        assert [load.failures for load in loads] == [[], []]
        status = assembly(mount)
        print(status, own.evicted, [load.steps for load in loads])
        assert all(load.steps > 0 for load in loads)
        assert min(status["made"], status["opened"]) >= SWITCHES and own.done(), (status, own.evicted)
    store.assert_sound()
