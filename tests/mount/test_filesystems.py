"""A store on each local file system; stores that processes of two containers share."""
import os

import pytest

from weftlib import (WEFT, Mount, Store, files_below, in_mount_namespace, random_tensors, run, store_with,
                     wait_until, write_model)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making file systems needs root")


def test_life_of_a_store(disk, tmp_path):
    """Publish, share, read, remove, collect, check: the same everywhere."""
    base = random_tensors(8, 1 << 20, seed="base")
    first = write_model(tmp_path / "first", base)
    second = write_model(tmp_path / "second", base | random_tensors(1, 1 << 20, seed="changed"))
    store = Store(disk / "store")
    store.publish(first, name="m")
    store.publish(second, name="m", parent="m@1")
    assert store.pack_bytes() < 10 << 20
    with Mount(store, tmp_path / "mnt") as mount:
        for number, source in ((1, first), (2, second)):
            assert files_below(mount.version("m", number)) == files_below(source)
        held = store.pack_bytes()
        store.weft("rm", "m@1")
        store.weft("gc")
        assert files_below(mount.version("m", 2)) == files_below(second)
    store.weft("gc", "--all")
    assert store.pack_bytes() <= held - (1 << 20) + (64 << 10)
    store.assert_sound()
    store.weft("fsck", "--rebuild")
    store.weft("export", "m", tmp_path / "out")
    assert files_below(tmp_path / "out") == files_below(second)


def test_a_store_fills_a_fresh_file_system(disk):
    """The root of a fresh ext4 has lost+found, and that of a tmpfs is open to all, which a store's is not."""
    disk.chmod(0o755)
    store = Store(disk)
    store.assert_sound()
    assert (disk / "weft-store").exists()
    if (disk / "lost+found").exists():  # no other file is overlooked
        assert os.listdir(disk / "lost+found") == []


def in_a_container(script):
    """Runs a script as pid 1 of its own pid name space, with its own /proc."""
    return in_mount_namespace(script, "--pid", "--fork", "--mount-proc")


def test_two_containers_share_a_store(tmp_path, small_model):
    """Their processes have equal ids, and both read and publish."""
    store = store_with(tmp_path, small_model)
    with Mount(store, tmp_path / "mnt") as mount:
        script = f"for i in 1 2 3; do '{WEFT}' --store '{store.path}' ls --json; done; echo $$"
        assert in_a_container(script).stdout.splitlines()[-1] == "1"
        for name in ("a", "b"):
            in_a_container(f"exec '{WEFT}' --store '{store.path}' import '{small_model}' --name {name}")
        wait_until(lambda: sorted(os.listdir(mount / "models")) == ["a", "b", "m"])
    store.assert_sound()
