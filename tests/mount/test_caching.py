"""What the kernel keeps of a mount, and for how long."""
import contextlib
import ctypes
import mmap
import os
import pathlib
import random
import subprocess
import threading
import time

import pytest

from weftlib import Mount, context_switches, random_tensors, wait_until, write_model

pytestmark = pytest.mark.usefixtures("caches_stay")


@pytest.fixture
def keeping(store, small_model, tmp_path):
    """A mount of a store that has org/small@1, which keeps what it can."""
    store.publish(small_model, name="org/small")
    with Mount(store, tmp_path / "mnt", options="attr_timeout=3600") as mount:
        yield mount


def seen(root):
    """Path -> inode number and what may change of it, for all below a directory; links with their targets."""
    everything = {}
    for path in sorted(pathlib.Path(root).rglob("*")):
        status = path.lstat()
        target = os.readlink(path) if path.is_symlink() else None
        everything[path.relative_to(root).as_posix()] = (status.st_ino, status.st_nlink, status.st_blocks,
                                                         status.st_size, status.st_mtime_ns, target)
    return everything


def resident_pages(mapping):
    """How many pages of a mapping are in memory."""
    pages = (len(mapping) + mmap.PAGESIZE - 1) // mmap.PAGESIZE
    present = (ctypes.c_ubyte * pages)()
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(mapping)), present) == 0
    return sum(page & 1 for page in present)


def test_link_and_block_counts_are_right_after_the_timeout(mounted, small_model):
    """And the pages of the file stay."""
    mounted.store.publish(small_model, name="heir")
    view = mounted.tensors("org/small", 1) / "layer.0.weight.npy"
    heir = mounted.version("heir", 1) / "model.safetensors"
    owned = (mounted.version("org/small", 1) / "model.safetensors").stat().st_blocks
    with open(view, "rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    pages = (len(view.read_bytes()) + mmap.PAGESIZE - 1) // mmap.PAGESIZE
    assert resident_pages(mapping) == pages
    assert view.stat().st_nlink == 4 and heir.stat().st_blocks < owned
    mounted.store.publish(small_model, name="twin")
    wait_until(lambda: view.stat().st_nlink == 6)
    mounted.store.weft("rm", "--force", "org/small@1")
    wait_until(lambda: heir.stat().st_blocks == owned)
    wait_until(lambda: os.stat(mounted.tensors("heir", 1) / "layer.0.weight.npy").st_nlink == 4)
    assert resident_pages(mapping) == pages


@contextlib.contextmanager
def inode_of(path):
    """A descriptor of a file that is not opened: the kernel keeps what it knows of the inode."""
    descriptor = os.open(path, os.O_PATH)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def test_link_counts_are_not_pushed(keeping, small_model, tmp_path):
    """A commit shows at once by its names and the times of directories. Counts stay for as long as the mount may keep
    them: a commit does not even wake the server."""
    model = keeping / "models/org/small"
    with inode_of(keeping.tensors("org/small", 1) / "layer.0.weight.npy") as view:
        kept = os.fstat(view).st_nlink
        changed = model.stat().st_mtime_ns
        time.sleep(0.5)
        before = context_switches(keeping.server_pids())
        for number in range(10):
            keeping.store.weft("tag", "org/small@1", f"tag-{number}")
        keeping.store.publish(small_model, name="twin")
        time.sleep(0.5)
        assert context_switches(keeping.server_pids()) - before < 10, "more than the server's waking by itself"
        assert os.fstat(view).st_nlink == kept
        assert os.readlink(model / "tag-9") == "1" and "tag-9" in os.listdir(model)
        assert (keeping / "models/twin/1/config.json").exists() and model.stat().st_mtime_ns > changed
    with Mount(keeping.store, tmp_path / "fresh") as fresh:
        assert (fresh.tensors("org/small", 1) / "layer.0.weight.npy").stat().st_nlink == kept + 2


def assert_known(mounted, look, times=20):
    """look() finds the same again and again, and the server is not asked for it."""
    first = look()
    pids = mounted.server_pids()
    time.sleep(0.5)
    before = context_switches(pids)
    for _ in range(times):
        assert look() == first
    assert context_switches(pids) - before < times, "more than the server's waking by itself"


@contextlib.contextmanager
def version_top(mounted, tree):
    """Descriptor of a version's directory: what leads there may change, and is asked for each time."""
    top = os.open(mounted.version("org/small", 1, tree), os.O_PATH)
    try:
        yield top
    finally:
        os.close(top)


# Those of which nothing below a version changes.
LASTING_TREES = pytest.mark.parametrize("tree", ["models", "layers", "tensors", "safetensors"])


@LASTING_TREES
def test_what_is_known_is_not_asked_for_again(keeping, tree):
    """Of a version: not attributes, not names, not that a name is absent."""
    version = keeping.version("org/small", 1, tree)
    paths = [*(path.relative_to(version) for path in version.rglob("*")), "none", "none.npy"]
    with version_top(keeping, tree) as top:
        def look():
            found = []
            for path in paths:
                try:
                    found.append(os.stat(path, dir_fd=top))
                except FileNotFoundError:
                    found.append(None)
            return found

        assert_known(keeping, look)


def names_in(path, top):
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY, dir_fd=top)
    try:
        return os.listdir(directory)
    finally:
        os.close(directory)


@LASTING_TREES
def test_directories_of_a_version_are_opened_and_listed_without_asking(keeping, tree):
    version = keeping.version("org/small", 1, tree)
    directories = [".", *(path.relative_to(version) for path in version.rglob("*") if path.is_dir())]
    with version_top(keeping, tree) as top:
        assert_known(keeping, lambda: [names_in(path, top) for path in directories])


def test_a_commit_shows_in_the_next_listing(mounted, small_model):
    """Names that may come or go are never kept: whoever lists after a commit sees it, told or not."""
    models = mounted / "models"
    for number in range(4):
        assert f"tag-{number}" not in os.listdir(models / "org/small")
        mounted.store.weft("tag", "org/small@1", f"tag-{number}")
        assert f"tag-{number}" in os.listdir(models / "org/small")
        mounted.store.publish(small_model, name=f"model-{number}")
        assert f"model-{number}" in os.listdir(models)


def test_absent_names_come_true(mounted, small_model, tmp_path):
    """A version, a tag, a model and a directory of models that were looked for in vain."""
    models = mounted / "models"
    awaited = [models / "org/small/2", models / "org/small/best", models / "org/other", models / "deep/er/model/1"]

    def all_absent():
        return not any(os.path.lexists(path) for path in awaited)

    assert all_absent() and all_absent()
    write_model(tmp_path / "next", random_tensors(1, 4096, seed="next"))
    mounted.store.publish(tmp_path / "next", name="org/small", tag="best")
    wait_until(lambda: awaited[0].is_dir() and os.readlink(awaited[1]) == "2")
    mounted.store.publish(small_model, name="org/other")
    wait_until(awaited[2].is_dir)
    mounted.store.publish(small_model, name="deep/er/model")
    wait_until(awaited[3].is_dir)
    for name in ("org/small@2", "org/other@1", "deep/er/model@1"):
        mounted.store.weft("rm", "--force", name)
    wait_until(all_absent)
    assert not (models / "deep").exists()


def test_a_new_version_can_be_lived_in(mounted, tmp_path):
    """What is told of a new name does not cut off who is there already."""
    layers = mounted.layers("org/small", 2)
    assert not layers.exists()
    write_model(tmp_path / "next", random_tensors(1, 4096, seed="next"))
    mounted.store.publish(tmp_path / "next", name="org/small")
    wait_until(layers.is_dir)
    script = f"cd {layers}/layer && sleep 0.7 && pwd -P && ls 0 >/dev/null"
    done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{layers}/layer"


def change_at_random(store, directory, steps, seed):
    """Publishes, tags and removals of a few models that share tensors."""
    rng = random.Random(seed)
    made, live = {"org/small": 1, "org/b": 0, "c": 0}, {"org/small": [1], "org/b": [], "c": []}
    for step in range(steps):
        name = rng.choice(list(made))
        action = rng.randrange(4) if live[name] else 3
        if action == 0:
            gone = live[name].pop(rng.randrange(len(live[name])))
            store.weft("rm", "--force", f"{name}@{gone}")
        elif action == 1:
            store.weft("tag", f"{name}@{rng.choice(live[name])}", rng.choice(["red", "green"]))
        else:
            own = random_tensors(rng.randrange(3), 4096, seed=f"own {rng.randrange(4)}", prefix="own")
            source = write_model(directory / str(step), random_tensors(2, 4096, seed="shared") | own,
                                 files=[("step", str(step).encode())])
            store.publish(source, name=name)
            made[name] += 1
            live[name].append(made[name])


def test_many_changes_under_readers(mounted, tmp_path):
    """Whatever readers saw and the kernel kept meanwhile, in the end the mount shows what a fresh one does."""
    stop, failures = threading.Event(), []

    def walk():
        while not stop.is_set():
            done = subprocess.run(["ls", "-lR", mounted.path], capture_output=True, check=False)
            if done.returncode not in (0, 1):  # 1: what was listed was gone when it was looked at
                failures.append(done.stderr)

    readers = [threading.Thread(target=walk) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        change_at_random(mounted.store, tmp_path / "steps", steps=40, seed=7)
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert not failures
    with Mount(mounted.store, tmp_path / "fresh") as fresh:
        trees = ("models", "layers", "tensors", "safetensors", "lineage", "hub")
        expected = [seen(fresh / tree) for tree in trees]
        assert sum(map(len, expected)) > 100
        wait_until(lambda: [seen(mounted / tree) for tree in trees] == expected, seconds_max=5)
