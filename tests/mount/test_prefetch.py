"""What is read from the store's packs, seen in the page cache of the pack files."""
import contextlib
import ctypes
import json
import mmap
import os
import pathlib
import shutil
import tempfile
import time

import pytest

from loaders import LIBC, cached_pages, forget
from weftlib import LENGTH, Mount, Store, random_tensors, run, wait_until, write_model

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="passthrough needs root"),
              pytest.mark.usefixtures("caches_stay")]

MIB = 1 << 20
WINDOW_FIRST, WINDOW_MAX = 16 * MIB, 64 * MIB
TENSOR = 4 * MIB
TENSORS = 32
STEP = 8 * MIB
MORE = 2 * MIB  # a page that holds the last byte read, and is as large


@pytest.fixture(scope="module")
def area():
    """A directory on a disk: what lies on tmpfs is never dropped from the page cache."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="weft-test-", dir="/var/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def store(area):
    """m@1 with 32 tensors of 4 MiB in one pack; n@1 shares the first 31 with it."""
    if run(["stat", "-f", "-c", "%T", area]).stdout.strip() == "tmpfs":
        pytest.skip("/var/tmp is a tmpfs, which drops no pages")
    first = random_tensors(TENSORS, TENSOR, seed="base")
    last = f"layer.{TENSORS - 1}.weight"
    second = first | {last: ("F32", [TENSOR // 4], os.urandom(TENSOR))}
    made = Store(area / "store")
    for name, tensors in (("m", first), ("n", second)):
        made.publish(write_model(area / name, tensors), name=name)
    if cached_pages(next((made.path / "packs").iterdir())) is None:
        pytest.skip("cachestat(2) needs Linux 6.5")
    return made


@pytest.fixture
def mount(store, tmp_path):
    """Nothing of the store is in memory, and nobody has read anything lately."""
    wait_until(lambda: all(forget(pack) for pack in (store.path / "packs").glob("*.pack")))
    with Mount(store, tmp_path / "mnt") as mounted:
        yield mounted


def packs(mount):
    return sorted((mount.store.path / "packs").glob("*.pack"))


def go_cold(mount):
    wait_until(lambda: all(forget(pack) for pack in packs(mount)))


def cached_bytes(mount):
    return sum(cached_pages(pack) for pack in packs(mount)) * mmap.PAGESIZE


def test_opening_a_container_brings_its_beginning_in(mount):
    with open(mount.version("m", 1) / "model.safetensors", "rb"):
        wait_until(lambda: cached_bytes(mount) >= WINDOW_FIRST - MIB)
        time.sleep(2)  # nobody reads: nothing more is brought in
        assert cached_bytes(mount) <= WINDOW_FIRST + MIB


def test_opening_other_files_reads_nothing_ahead(mount):
    for name in ("models/config.json", "tensors/layer.0.weight.npy"):
        with open(mount.at("m", 1, name), "rb"):
            pass
    assert cached_bytes(mount) == 0


def test_a_reader_of_a_mapping_is_preceded(mount):
    """Who touches one page after the other finds the next ones there, to the end of the file, and no more than a window
    of them."""
    with open(mount.version("m", 1) / "model.safetensors", "rb") as file, \
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
        memory.madvise(mmap.MADV_RANDOM)  # the kernel itself reads no page but those that are touched
        for begin in range(0, len(memory), STEP):
            wanted = min(begin + WINDOW_FIRST, len(memory))

            def touch_and_look():
                sum(memory[begin:begin + STEP:mmap.PAGESIZE])
                cached = cached_bytes(mount)
                assert cached <= begin + STEP + WINDOW_MAX + MORE
                return cached >= wanted - MIB

            wait_until(touch_and_look)
        assert cached_bytes(mount) >= len(memory) - MIB


def touch_all(memory):
    return sum(memory[::mmap.PAGESIZE])


@contextlib.contextmanager
def mapped_and_closed(path):
    """The bytes of a file whose last descriptor is closed, as PyTorch's loaders leave it. The kernel itself reads no page
    of it but those that are touched."""
    size = path.stat().st_size
    LIBC.mmap.restype = ctypes.c_void_p
    with open(path, "rb") as file:
        address = LIBC.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE,
                            file.fileno(), ctypes.c_long(0))
    assert address != ctypes.c_void_p(-1).value
    where = ctypes.c_void_p(address)
    LIBC.madvise(where, ctypes.c_size_t(size), mmap.MADV_RANDOM)
    try:
        yield memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")
    finally:
        LIBC.munmap(where, ctypes.c_size_t(size))


@pytest.mark.parametrize("page_of_each_tensor", [False, True], ids=["every page", "one page of each tensor"])
def test_a_mapping_of_a_closed_file_is_preceded(mount, page_of_each_tensor):
    """Loaders map a container and close it, and some look at each tensor's first byte before they read any."""
    with mapped_and_closed(mount.version("m", 1) / "model.safetensors") as memory:
        end = len(memory)
        first = end - TENSORS * TENSOR  # where the first tensor begins
        places = range(first, end, TENSOR) if page_of_each_tensor else range(0, end, mmap.PAGESIZE)
        wait_until(lambda: cached_bytes(mount) >= WINDOW_FIRST - MIB)
        for begin in range(0, end, STEP):
            until = min(begin + STEP, end)
            wanted = min(begin + WINDOW_FIRST, end)

            def touch_and_look():
                assert sum(memory[at] for at in places if begin <= at < until) >= 0
                cached = cached_bytes(mount)
                assert cached <= begin + STEP + WINDOW_MAX + MORE
                return cached >= wanted - MIB

            wait_until(touch_and_look)
        assert cached_bytes(mount) >= end - MIB


def descriptors_of_packs(mount):
    """How many descriptors of packs the server has."""
    server = json.loads((mount.path / ".weft/status").read_text())["mount"]["pid"]
    names = []
    for link in pathlib.Path(f"/proc/{server}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(link))
    return sum(name.endswith(".pack") for name in names)


@pytest.mark.long
def test_closed_files_are_not_watched_for_long(mount):
    """However often one was opened, it is held once after its last close, and soon no more."""
    for _ in range(5):
        go_cold(mount)
        with open(mount.version("m", 1) / "model.safetensors", "rb") as file:
            wait_until(lambda: cached_bytes(mount) >= WINDOW_FIRST - MIB)
            assert file.read(MIB)
    wait_until(lambda: descriptors_of_packs(mount) == 1, seconds_max=5)
    if LENGTH > 1:  # else a unit test with a clock of its own sees that
        wait_until(lambda: descriptors_of_packs(mount) == 0, seconds_max=40)


def test_who_joins_an_open_file_that_has_left_memory_is_preceded(mount):
    """A server that keeps a file open for days must not cost the next loader its readahead."""
    path = mount.version("m", 1) / "model.safetensors"
    with open(path, "rb") as holder:
        holder.read()
        time.sleep(0.5)
        go_cold(mount)
        with open(path, "rb"):
            wait_until(lambda: cached_bytes(mount) >= WINDOW_FIRST - MIB)
            time.sleep(1)  # nobody reads
            assert cached_bytes(mount) <= WINDOW_FIRST + MIB


def test_a_second_reading_of_what_has_left_memory_is_preceded(mount):
    """Nobody opens it anew: that a tensor was touched shows that it is read again."""
    with open(mount.version("m", 1) / "model.safetensors", "rb") as file:
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
            touch_all(memory)
        time.sleep(1)
        go_cold(mount)
        time.sleep(6)  # until that was noticed
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
            memory.madvise(mmap.MADV_RANDOM)
            begin = 4 * TENSOR + MIB
            sum(memory[begin:begin + TENSOR:mmap.PAGESIZE])
            wait_until(lambda: cached_bytes(mount) >= 3 * TENSOR)


def test_a_reader_that_stops_is_not_left_behind(mount):
    """What runs ahead stays within its window when the reader stands still."""
    with open(mount.version("m", 1) / "model.safetensors", "rb") as file, \
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
        memory.madvise(mmap.MADV_RANDOM)
        for begin in range(0, 3 * STEP, STEP):
            wait_until(lambda: (sum(memory[begin:begin + STEP:mmap.PAGESIZE]),  # pylint: disable=cell-var-from-loop
                                cached_bytes(mount) >= begin + WINDOW_FIRST - MIB)[1])
        time.sleep(2)
        assert cached_bytes(mount) <= 3 * STEP + WINDOW_MAX + MORE


def test_a_view_reads_its_tensor_and_little_more(mount):
    assert len((mount.tensors("m", 1) / "layer.9.weight.npy").read_bytes()) > TENSOR
    assert cached_bytes(mount) <= TENSOR + MIB // 4


def test_one_page_of_a_view_reads_little(mount):
    with open(mount.tensors("m", 1) / "layer.11.weight.npy", "rb") as file, \
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
        assert memory[TENSOR // 2] is not None
    assert cached_bytes(mount) <= TENSOR + MIB // 4


def test_models_that_share_a_tensor_share_its_pages(mount):
    """Once one model's view was read, the other's costs no I/O: nothing comes from the packs."""
    name = "layer.3.weight.npy"
    content = (mount.tensors("m", 1) / name).read_bytes()
    go_cold(mount)
    assert (mount.tensors("n", 1) / name).read_bytes() == content
    assert cached_bytes(mount) == 0
