"""Large files of tensors that come while they are read: straight to who reads them, by pages to who maps them, and as
native files once all is here and nobody has them open. Whatever is mixed, the bytes are right."""
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

import loaders
from clusterlib import can_make_networks
from loader_ways import MAY_FAIL, SAME, failed_with, is_turned_off, outcome
from nodes import MODEL_FILE, SECONDS_MAX, Cluster
from weftlib import is_alive, random_tensors, wait_until, write_model

pytestmark = [pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd"),
              pytest.mark.usefixtures("caches_stay")]
PIECE = 256 << 10
BESIDE = ("read", "O_DIRECT", "preadv2", "libaio", "io_uring", "sendfile", "MAP_SHARED", "MAP_PRIVATE",
          "MAP_PRIVATE MAP_POPULATE", "readahead", "fadvise WILLNEED", "seeks")


class Streamed:
    def __init__(self, node, source):
        self.node, self.native = node, source / MODEL_FILE
        self.bytes = self.native.read_bytes()
        self.native.chmod(0o644)  # as all is in a mount

    def mounted(self):
        self.node.store.weft("evict", "--all")
        return self.node.mounted("cold=stream")


@pytest.fixture(scope="module")
def streamed(tmp_path_factory):
    """A node that has nothing of a model of 48 MiB."""
    area = tmp_path_factory.mktemp("streamed")
    with Cluster(area) as cluster:
        one, two = cluster.some(2)
        source = write_model(area / "source", random_tensors(6, 8 << 20, seed="streamed"))
        cluster.publish(one, source, "model")
        wait_until(lambda: two.knows("model@1"), seconds_max=SECONDS_MAX)
        yield Streamed(two, source)


def file_of(mount):
    return mount.version("model", 1) / MODEL_FILE


def mapped(path):
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)


def is_native(path):
    """Is it read by the kernel from our file? Then what is mapped of it makes no pages of the mount's own."""
    with mapped(path) as mapping:
        assert mapping[:]
        return loaders.cached_pages(path) == 0


def test_every_way_to_read_gives_the_native_bytes(streamed):
    """The first to open it, and some of them beside one who has it open."""
    for name, way in SAME.items():
        expected = outcome(way, streamed.native)
        if is_turned_off(name, expected):
            continue
        may_fail = {failed_with(number) for number in MAY_FAIL.get(name, ())}
        with streamed.mounted() as mount:
            got = outcome(way, file_of(mount))
            assert got == expected or got in may_fail, name
        if name not in BESIDE:
            continue
        with streamed.mounted() as mount, open(file_of(mount), "rb", buffering=0) as beside:
            assert beside.read(PIECE) == streamed.bytes[:PIECE]
            assert outcome(way, file_of(mount)) == expected, name
            assert os.pread(beside.fileno(), PIECE, 0) == streamed.bytes[:PIECE], name


def test_who_reads_is_given_bytes_without_pages_between(streamed):
    with streamed.mounted() as mount:
        path = file_of(mount)
        with open(path, "rb", buffering=0) as reader:
            assert reader.readall() == streamed.bytes
            if loaders.cached_pages(path) is None:
                pytest.skip("cachestat(2) needs Linux 6.5")
            assert loaders.cached_pages(path) == 0
            with open(mount.version("model", 1) / "config.json", "rb") as small:
                assert small.read()


def test_one_mapping_does_not_take_the_pages_of_another(streamed):
    """Processes that load one file one after the other share what the first has brought."""
    with streamed.mounted() as mount:
        path = file_of(mount)
        with mapped(path) as first:
            assert first[:] == streamed.bytes
            before = loaders.cached_pages(path)
            assert before
            with mapped(path) as second:
                assert loaders.cached_pages(path) == before
                assert second[:] == streamed.bytes


def test_once_all_is_here_the_next_to_open_it_reads_a_native_file(streamed):
    with streamed.mounted() as mount:
        path = file_of(mount)
        with open(path, "rb", buffering=0) as reader, mapped(path) as mapping:
            assert reader.readall() == mapping[:] == streamed.bytes
            assert not is_native(path)
            inode = os.fstat(reader.fileno()).st_ino
        wait_until(lambda: is_native(path), seconds_max=SECONDS_MAX)  # closing is told later
        assert path.stat().st_ino == inode
        assert path.read_bytes() == streamed.bytes


class Mixed:
    """Threads that read and map one file, each through handles of its own and one that all share."""

    def __init__(self, path, expected, seconds):
        self.path, self.expected, self.end = path, expected, time.monotonic() + seconds
        self.shared = open(path, "rb", buffering=0)
        self.failures, self.steps = [], 0
        steps = (self.read_shared, self.open_and_read, self.open_and_map, self.map_shared)
        self.threads = [threading.Thread(target=self.loop, args=(step,)) for step in steps]
        for thread in self.threads:
            thread.start()

    def loop(self, step):
        chance = random.Random(step.__name__)
        while time.monotonic() < self.end and not self.failures:
            at = chance.randrange(len(self.expected) - PIECE)
            try:
                assert step(at) == self.expected[at:at + PIECE], f"wrong bytes at {at}"
                self.steps += 1
            except Exception as failure:  # pylint: disable=broad-except
                self.failures.append((step.__name__, failure))

    def read_shared(self, at):
        return os.pread(self.shared.fileno(), PIECE, at)

    def open_and_read(self, at):
        with open(self.path, "rb", buffering=0) as file:
            return os.pread(file.fileno(), PIECE, at)

    def open_and_map(self, at):
        with mapped(self.path) as mapping:
            return mapping[at:at + PIECE]

    def map_shared(self, at):
        with mmap.mmap(self.shared.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ) as mapping:
            return mapping[at:at + PIECE]

    def join(self):
        for thread in self.threads:
            thread.join()
        self.shared.close()
        assert self.failures == []
        assert self.steps > 0


def test_reads_and_mappings_mix(streamed):
    with streamed.mounted() as mount:
        Mixed(file_of(mount), streamed.bytes, 2).join()
        assert file_of(mount).read_bytes() == streamed.bytes


def server_of(mount):
    return json.loads((mount.path / ".weft/status").read_text())["mount"]["pid"]


def test_servers_that_are_killed_meanwhile(streamed):
    """What is open stays open, and is read as before."""
    with streamed.mounted() as mount:
        path = file_of(mount)
        with open(path, "rb", buffering=0) as early:
            assert early.read(PIECE) == streamed.bytes[:PIECE]
            mixed = Mixed(path, streamed.bytes, 3)
            for _ in range(5):
                old = server_of(mount)
                os.kill(old, signal.SIGKILL)
                wait_until(lambda old=old: not is_alive(old), seconds_max=30)
                wait_until(lambda old=old: server_of(mount) != old, seconds_max=30)
                assert os.pread(early.fileno(), PIECE, 20 << 20) == streamed.bytes[20 << 20:(20 << 20) + PIECE]
            mixed.join()
            assert os.pread(early.fileno(), len(streamed.bytes), 0) == streamed.bytes
        assert path.read_bytes() == streamed.bytes


def test_safetensors_loads_it(streamed):
    safetensors = pytest.importorskip("safetensors.numpy")
    expected = safetensors.load_file(streamed.native)
    with streamed.mounted() as mount:
        loaded = safetensors.load_file(file_of(mount))
        assert loaded.keys() == expected.keys()
        assert all(loaded[name].tobytes() == expected[name].tobytes() for name in expected)


def test_two_who_read_at_once_move_it_once(streamed):
    with streamed.mounted() as mount:
        before = streamed.node.fetched()
        readers = [subprocess.Popen(["cmp", streamed.native, file_of(mount)]) for _ in range(2)]
        reads = "import sys, mmap, os; m = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 0, prot=1); sys.exit(len(m[:]) == 0)"
        readers.append(subprocess.Popen([sys.executable, "-c", reads, file_of(mount)]))
        assert [reader.wait(SECONDS_MAX) for reader in readers] == [0, 0, 0]
        assert streamed.node.fetched() - before <= len(streamed.bytes) + (1 << 20)
