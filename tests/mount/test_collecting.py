"""What gc, rm and locks of others may do to a store and to those who read it."""
import contextlib
import fcntl
import os
import struct

import pytest

from daemonlib import Daemon
from uses import Mapped, drop_caches
from weftlib import (NOBODY, WEFT, Mount, Store, process_of, programs_for_everybody, random_tensors, run, wait_until,
                     write_model)

MIB = 1 << 20
F_OFD_SETLK = 37

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="passthrough, other users and file systems need root")


def two_versions(store, tmp_path, tensors=8, bytes_each=256 << 10):
    """m@1, in one pack, and m@2, which shares all but one of its tensors."""
    base = random_tensors(tensors, bytes_each, seed="base")
    first = write_model(tmp_path / "first", base)
    second = write_model(tmp_path / "second", base | random_tensors(1, bytes_each, seed="changed"))
    store.publish(first, name="m")
    store.publish(second, name="m", parent="m@1")
    return first / "model.safetensors", second / "model.safetensors"


@needs_root
def test_a_mapping_without_its_descriptor_keeps_its_bytes(store, tmp_path):
    """Loaders map a file and close it; by passthrough the mapping is then the pack's own."""
    source, _ = two_versions(store, tmp_path)
    with Mount(store, tmp_path / "mnt") as mount:
        with contextlib.closing(Mapped(mount.version("m", 1) / "model.safetensors")) as mapping:
            store.weft("rm", "--force", "m@1")
            report = {}

            def collects():
                report.update(store.json("gc", "--all"))
                return report["versions_open"] == 0

            wait_until(collects)  # the kernel tells the mount of the close in its own time
            assert report["packs_compacted"] == 1 and report["dead_bytes"] == 0
            mapping.drop()
            drop_caches()
            assert mapping.reads(source.read_bytes())
    store.assert_sound()


@needs_root
def test_pages_in_a_pipe_keep_their_bytes(store, tmp_path):
    """What splice took from a passthrough file lies in the pipe by reference."""
    source, _ = two_versions(store, tmp_path)
    with Mount(store, tmp_path / "mnt") as mount:
        reading, writing = os.pipe()
        fcntl.fcntl(writing, 1031, MIB)  # F_SETPIPE_SZ
        with open(mount.version("m", 1) / "model.safetensors", "rb") as file:
            took = os.splice(file.fileno(), writing, MIB) if hasattr(os, "splice") else 0
        os.close(writing)
        if took == 0:
            pytest.skip("this Python has no os.splice")
        store.weft("rm", "--force", "m@1")
        store.weft("gc", "--all")
        with open(reading, "rb") as pipe:
            assert pipe.read() == source.read_bytes()[:took]


def test_few_dead_bytes_wait_and_are_told_of(store, tmp_path):
    """A pack with less than a fifth dead stays until somebody asks for all; status and du say how much waits."""
    _, source = two_versions(store, tmp_path)
    store.weft("rm", "--force", "m@1")
    report = store.json("gc")
    waits = report["dead_bytes"]
    assert waits == 0 and report["packs_compacted"] == 1 or waits == 256 << 10 and report["packs_compacted"] == 0
    assert store.json("status")["dead_bytes"] >= waits
    if waits:
        assert "dead" in store.weft("gc").stdout
    foreseen = store.json("gc", "--all", "--dry-run")
    report = store.json("gc", "--all")
    assert report["dead_bytes"] == 0 and report["packs_compacted"] == foreseen["packs_compacted"] == (1 if waits else 0)
    assert store.json("gc", "--all")["packs_compacted"] == 0
    store.weft("export", "m@2", tmp_path / "out")
    assert (tmp_path / "out/model.safetensors").read_bytes() == source.read_bytes()
    store.assert_sound()


def lock_every_byte(directory):
    """Shared locks of both kinds on each file below that opens; how many."""
    count = 0
    for where, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                fd = os.open(os.path.join(where, name), os.O_RDONLY)  # stays open
                fcntl.flock(fd, fcntl.LOCK_SH)
                fcntl.fcntl(fd, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))
                count += 1
    return count


def another_user_locks(directory):
    """A user outside the store's group, with shared locks on all that this user can open."""
    def lock(companion):
        assert lock_every_byte(directory) >= 5  # packs, manifests and the journal are for everybody
        companion.is_ready()
        companion.is_over(wait=True)
    return process_of(NOBODY, lock)


@needs_root
def test_locks_of_a_reader_stop_nobody(open_dir, tmp_path):
    """Publish, tag, rm, gc and the start of the daemon work, whatever another user has locked."""
    store = Store(open_dir / "store")
    two_versions(store, tmp_path)
    with another_user_locks(store.path):
        store.publish(write_model(tmp_path / "third", random_tensors(2, MIB, seed="third")), name="m")
        store.weft("tag", "m@2", "stable")
        store.weft("rm", "--force", "m@1")
        report = store.json("gc", "--all")
        assert report["versions_reaped"] == 1 and report["dead_bytes"] == 0 and report["busy_packs"] == 0
        store.assert_sound()
        with Daemon(store) as daemon, another_user_locks(store.path):
            assert daemon.status()["pid"] == daemon.pid
            store.weft("rm", "--force", "m@2")
            assert store.json("gc", "--all")["versions_reaped"] == 1
    store.assert_sound()


@needs_root
def test_a_group_may_read_a_store(open_dir, tmp_path):
    """Others are refused, and nobody gets more than reading."""
    store_path = open_dir / "store"
    run([WEFT, "--store", store_path, "init", "--group", "nogroup"])
    run([WEFT, "--store", store_path, "import", write_model(tmp_path / "m", random_tensors(2, 4096, seed="group")),
         "--name", "m"])
    (open_dir / "bin").mkdir()
    weft = programs_for_everybody(open_dir / "bin") / "weft"
    member = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
    assert "m" in run([weft, "--store", store_path, "ls"], **member).stdout
    assert run([weft, "--store", store_path, "rm", "m@1"], check=False, **member).returncode != 0
    stranger = member | {"group": 12345}
    refused = run([weft, "--store", store_path, "ls"], check=False, **stranger)
    assert refused.returncode != 0 and "may not read this store: expected user 0, its owner, or one of the group" in refused.stderr
    assert run([WEFT, "--store", open_dir / "other", "init", "--group", "no such group"], check=False).returncode != 0


def test_a_holder_is_named(store):
    """Messages name the process that has the store, which wrote its id and program into the lock."""
    with Daemon(store) as daemon:
        assert (store.path / "daemon.lock").read_text().split() == [str(daemon.pid), "weftd"]
        refused = store.weft("fsck", "--rebuild", check=False)
        assert refused.returncode != 0 and f"process {daemon.pid} (weftd)" in refused.stderr
    assert oct((store.path / "daemon.lock").stat().st_mode & 0o777) == "0o600"


MAKE = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q"], "btrfs": ["mkfs.btrfs", "-q"]}


@pytest.fixture(params=sorted(MAKE))
def small_disk(request, tmp_path):
    place, image = tmp_path / "disk", tmp_path / "image"
    place.mkdir()
    with open(image, "wb") as file:
        file.truncate(320 * MIB)
    run([*MAKE[request.param], image])
    run(["mount", "-o", "loop", image, place])
    yield place
    run(["umount", place])


def fill(disk):
    """Leaves no block to anybody."""
    with open(disk / "filler", "ab", buffering=0) as file:
        for step in (MIB, 64 << 10, 4096):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(step))
                    os.fsync(file.fileno())


@needs_root
def test_a_full_disk_does_not_stay_full(small_disk, tmp_path):
    """gc deletes what is dead, says what it would need for the rest, and leaves a reserve for the next rm and gc."""
    store = Store(small_disk / "store")
    base = random_tensors(6, 4 * MIB, seed="base")
    kept = write_model(tmp_path / "kept", dict(list(base.items())[:2]))
    for name, tensors in (("whole", random_tensors(4, 4 * MIB, seed="whole")), ("part", base)):
        store.publish(write_model(tmp_path / name, tensors), name=name)
    store.publish(kept, name="kept")
    for round_ in range(3):
        store.publish(write_model(tmp_path / f"r{round_}", random_tensors(1, MIB, seed=f"r{round_}")), name="round")
    shares = clones(small_disk)
    fill(small_disk)
    store.weft("rm", "--force", "part@1")
    report = store.json("gc")
    assert report["versions_reaped"] == 1
    if not shares:
        assert report["packs_waiting"] == 1 and report["bytes_wanted"] >= 8 * MIB and report["dead_bytes"] >= 16 * MIB
    assert (store.path / "index/spare").exists()
    for number in (1, 2, 3):
        fill(small_disk)
        store.weft("rm", "--force", f"round@{number}")
        store.json("gc")
        assert (store.path / "index/spare").stat().st_blocks > 0
    fill(small_disk)
    store.weft("rm", "--force", "whole@1")
    report = store.json("gc")
    assert report["packs_deleted"] >= 1
    assert report["packs_waiting"] == 0 and report["dead_bytes"] == 0  # the dead pack made space for the other
    store.assert_sound()
    store.weft("export", "kept", tmp_path / "out")
    assert (tmp_path / "out/model.safetensors").read_bytes() == (kept / "model.safetensors").read_bytes()


def clones(directory):
    """Does the file system share blocks?"""
    with open(directory / "store/index/gc", "rb") as source, open(directory / "store/tmp/clone", "wb") as target:
        try:
            fcntl.ioctl(target.fileno(), 0x40049409, source.fileno())  # FICLONE
        except OSError:
            return False
        finally:
            os.unlink(directory / "store/tmp/clone")
    return True
