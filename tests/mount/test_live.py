"""A mount while other processes publish, tag, remove and collect."""
import contextlib
import json
import mmap
import os
import pathlib
import statistics
import threading
import time

import pytest

from weftlib import (Mount, Store, context_switches, files_below, linux_version, random_tensors, wait_until,
                     write_model)

VISIBLE_SECONDS_MAX = 0.1
TRIES = 5


def delays(change, visible):
    """How long after each of several changes it shows; one slow moment of the machine is not ours."""
    measured = []
    for i in range(TRIES):
        change(i)
        measured.append(wait_until(lambda i=i: visible(i)))
    return statistics.median(measured)


def test_publish_is_visible(mounted, tmp_path):
    model = mounted / "models/org/small"
    os.listdir(model)

    def publish(i):
        directory = write_model(tmp_path / f"v{i}", random_tensors(1, 4096, seed=f"visible {i}"))
        mounted.store.publish(directory, name="org/small")

    assert delays(publish, lambda i: str(i + 2) in os.listdir(model)) <= VISIBLE_SECONDS_MAX
    assert os.readlink(model / "latest") == str(TRIES + 1)


@pytest.mark.skipif(linux_version() < (6, 6), reason="this kernel maps no file that is read past the page cache")
def test_changing_files_are_mapped(mounted, tmp_path):
    """A new shared mapping shows the text of now, also beside one from before the change."""
    files = [mounted / "lineage/org/small/versions.tsv", mounted / "hub/models--org--small/refs/main",
             mounted / ".weft/status"]

    def mapping(path):
        with open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)

    def mapped(path):
        with mapping(path) as view:
            return view[:]

    with contextlib.ExitStack() as kept:
        for path in files:
            kept.enter_context(mapping(path))[:]  # all its pages are there
        seen = {mapped(files[1])}
        for i in range(TRIES):
            directory = write_model(tmp_path / f"mapped{i}", random_tensors(1, 4096, seed=f"mapped {i}"))
            mounted.store.publish(directory, name="org/small", message=f"publish {i}" + " of many" * 400 * i)
            wait_until(lambda i=i: (mounted / f"models/org/small/{i + 2}").is_dir())
            table, ref, status = (mapped(path) for path in files)
            assert table == files[0].read_bytes() and f"publish {i}".encode() in table
            assert ref == files[1].read_bytes() and ref not in seen
            assert json.loads(status)["store"]["sequence"] == i + 2
            seen.add(ref)


def test_new_model_is_visible(mounted, small_model):
    """Also where its name was looked for before in vain."""
    def visible(i):
        return (mounted / f"models/new/m{i}/1/config.json").exists()

    assert not visible(0)
    assert delays(lambda i: mounted.store.publish(small_model, name=f"new/m{i}"), visible) <= VISIBLE_SECONDS_MAX


def test_tag_is_visible(mounted, small_model, tmp_path):
    write_model(small_model, random_tensors(1, 64, seed="other"))
    mounted.store.publish(small_model, name="org/small")
    tag = mounted / "models/org/small/best"

    def target():
        try:
            return os.readlink(tag)
        except FileNotFoundError:
            return None

    assert target() is None
    assert delays(lambda i: mounted.store.weft("tag", f"org/small@{i % 2 + 1}", "best"),
                  lambda i: target() == str(i % 2 + 1)) <= VISIBLE_SECONDS_MAX


def test_removal_is_visible(mounted, tmp_path):
    for i in range(TRIES):
        mounted.store.publish(write_model(tmp_path / f"v{i}", random_tensors(1, 64, seed=f"gone {i}")), name="gone")
    model = mounted / "models/gone"
    assert files_below(model / "1")

    def gone(i):
        return not (model / str(i + 1)).exists() and (i == TRIES - 1 or str(i + 1) not in os.listdir(model))

    assert delays(lambda i: mounted.store.weft("rm", "--force", f"gone@{i + 1}"), gone) <= VISIBLE_SECONDS_MAX
    wait_until(lambda: not model.exists())


def test_undelete_is_visible(mounted, tmp_path):
    """With its files as before, also of a model that had gone."""
    source = write_model(tmp_path / "back", random_tensors(1, 4096, seed="back"))
    mounted.store.publish(source, name="new/back", tag="best")
    model = mounted / "models/new/back"
    before = files_below(model / "1")

    def change(i):
        mounted.store.weft("rm", "--force", "new/back@1")
        wait_until(lambda: not model.exists())
        mounted.store.weft("undelete", "new/back@1")

    assert delays(change, lambda i: (model / "1").is_dir()) <= VISIBLE_SECONDS_MAX
    assert os.listdir(mounted / "models/new") == ["back"] and os.readlink(model / "best") == "1"
    assert files_below(model / "1") == before


def test_link_counts_follow(mounted, small_model):
    view = mounted.tensors("org/small", 1) / "layer.0.weight.npy"
    assert view.stat().st_nlink == 2
    mounted.store.publish(small_model, name="twin")
    wait_until(lambda: view.stat().st_nlink == 4)
    assert view.samefile(mounted.layers("twin", 1) / "layer/0/weight.npy")
    mounted.store.weft("rm", "--force", "twin@1")
    wait_until(lambda: view.stat().st_nlink == 2)


def test_a_version_appears_whole(mounted, tmp_path):
    """Whoever sees a version sees every file of it."""
    wanted = {"config.json", "model.safetensors", *(f"f{i}" for i in range(50))}
    broken, stop = [], threading.Event()

    def watch():
        while not stop.is_set():
            for number in os.listdir(mounted / "models/org/small"):
                if number.isdigit() and number != "1":
                    names = set(os.listdir(mounted.version("org/small", number)))
                    if not wanted <= names:
                        broken.append((number, wanted - names))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for i in range(5):
            files = [(f"f{j}", f"{i} {j}".encode()) for j in range(50)]
            directory = write_model(tmp_path / f"v{i}", random_tensors(3, 4096, seed=f"whole {i}"), files=files)
            mounted.store.publish(directory, name="org/small")
    finally:
        stop.set()
        watcher.join()
    assert broken == []


@pytest.fixture
def removed_while_open(store, tmp_path):
    """A model of 8 MiB, of which another shares half: (mount, version's directory, expected files)"""
    shared = random_tensors(8, 512 << 10, seed="stays", prefix="shared")
    own = random_tensors(8, 512 << 10, seed="goes", prefix="own")
    store.publish(write_model(tmp_path / "doomed", shared | own), name="doomed")
    store.publish(write_model(tmp_path / "heir", shared | random_tensors(1, 512 << 10, seed="heir")), name="heir")
    with Mount(store, tmp_path / "mnt") as mount:
        yield mount, mount.version("doomed", 1), files_below(tmp_path / "doomed")


def remove_and_collect(mount):
    mount.store.weft("rm", "--force", "doomed@1")
    mount.store.weft("gc")
    wait_until(lambda: not mount.version("doomed", 1).exists())
    mount.store.weft("gc")


def assert_space_comes_back(mount, before):
    def collected():
        mount.store.weft("gc")
        return mount.store.pack_bytes() <= before - (4 << 20) + (64 << 10)

    wait_until(collected, pause=0.1)
    mount.store.assert_sound()


def test_open_file_survives_removal_and_gc(removed_while_open):
    mount, version, expected = removed_while_open
    before = mount.store.pack_bytes()
    with open(version / "model.safetensors", "rb", buffering=0) as container, \
            open(mount.tensors("doomed", 1) / "own.3.weight.npy", "rb", buffering=0) as view, \
            open(version / "config.json", "rb", buffering=0) as config:
        first_bytes = container.read(4096)
        remove_and_collect(mount)
        assert first_bytes + container.read() == expected["model.safetensors"]
        assert view.read()[-(512 << 10):] == random_tensors(8, 512 << 10, "goes", prefix="own")["own.3.weight"][2]
        assert config.read() == expected["config.json"]
    assert_space_comes_back(mount, before)


def test_mapping_survives_removal_and_gc(removed_while_open):
    """The descriptor is closed: the mapping alone keeps the bytes."""
    mount, version, expected = removed_while_open
    before = mount.store.pack_bytes()
    with open(version / "model.safetensors", "rb") as container:
        mapping = mmap.mmap(container.fileno(), 0, prot=mmap.PROT_READ)
    with open(mount.tensors("doomed", 1) / "own.5.weight.npy", "rb") as view:
        view_mapping = mmap.mmap(view.fileno(), 0, prot=mmap.PROT_READ)
    with mapping, view_mapping:
        remove_and_collect(mount)
        pathlib.Path("/proc/self/clear_refs").write_text("1")
        assert mapping[:] == expected["model.safetensors"]
        assert view_mapping[-(512 << 10):] == random_tensors(8, 512 << 10, "goes", prefix="own")["own.5.weight"][2]
    assert_space_comes_back(mount, before)


def test_composed_file_survives_removal_and_gc(store, tmp_path):
    """A derived version's container lies in several packs."""
    base = random_tensors(8, 512 << 10, seed="base")
    changed = base | random_tensors(2, 512 << 10, seed="changed")
    store.publish(write_model(tmp_path / "base", base), name="m")
    store.publish(write_model(tmp_path / "changed", changed), name="m", parent="m@1")
    expected = files_below(tmp_path / "changed")["model.safetensors"]
    with Mount(store, tmp_path / "mnt") as mount:
        with open(mount.version("m", 2) / "model.safetensors", "rb", buffering=0) as container:
            first_bytes = container.read(100)
            store.weft("rm", "--force", "m@2")
            store.weft("rm", "--force", "m@1")
            store.weft("gc")
            assert first_bytes + container.read() == expected

        def empty():
            store.weft("gc")
            return store.pack_bytes() < 64 << 10

        wait_until(empty, pause=0.1)


@pytest.mark.usefixtures("caches_stay")
def test_idle_mount_sleeps(mounted):
    """At most one wake-up a second, once what came before is done. A busy machine interrupts it more often."""
    files_below(mounted.version("org/small", 1))
    pids = mounted.server_pids()
    assert pids
    seconds = 3

    def switches():
        before = context_switches(pids)
        time.sleep(seconds)
        return context_switches(pids) - before

    assert any(switches() <= seconds for _ in range(5))


def test_store_changes_with_no_mount_and_after(tmp_path, small_model):
    """Mounts of one store on two places see the same."""
    store = Store(tmp_path / "store")
    with Mount(store, tmp_path / "a") as a, Mount(store, tmp_path / "b") as b:
        store.publish(small_model, name="m")
        for mount in (a, b):
            wait_until(lambda mount=mount: (mount.version("m", 1) / "config.json").exists())
        assert (a.version("m", 1) / "config.json").stat().st_ino == (b.version("m", 1) / "config.json").stat().st_ino
