"""The cache of assembled files, as mounts of one store share it."""
import contextlib
import mmap
import os
import random
import threading
import time

import pytest

from assembled import (assembled, assembly, assert_right, cached_parts, container_of, open_again, pack_of, publish_family,
                       unfinished, whole_files)
from weftlib import WEFT, Mount, Store, run, wait_until

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="passthrough needs root")


@pytest.fixture
def family(store, tmp_path):
    return publish_family(store, tmp_path, ["one", "two", "three"])


@needs_root
def test_second_open_is_passed_through(store, family, tmp_path):
    with Mount(store, tmp_path / "mnt") as mount:
        assembled(mount, "one", family["one"])
        assert assembly(mount)["opened"] == 0
        with open(container_of(mount, "one"), "rb") as file:
            assert assembly(mount)["opened"] == 1
            assert file.read() == family["one"]
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapping:
                assert mapping[:] == family["one"]
        assert store.json("cache")["files"] == 1
        assert container_of(mount, "base").read_bytes()
        assert assembly(mount)["opened"] == 1
    store.assert_sound()


@needs_root
def test_a_look_at_the_header_assembles_nothing(store, family, tmp_path):
    with Mount(store, tmp_path / "mnt") as mount:
        with open(container_of(mount, "one"), "rb", buffering=0) as file:
            assert file.read(4096) == family["one"][:4096]
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            assert os.pread(file.fileno(), 100, 5 << 20) == family["one"][5 << 20:(5 << 20) + 100]
        status = assembly(mount)
        if not status["shares_blocks"]:
            assert (status["made"], status["waiting"]) == (0, 0)


@needs_root
def test_a_file_that_is_read_once_takes_no_space_again(store, family, tmp_path):
    """The second open asks for the assembled file, whatever it reads."""
    with Mount(store, tmp_path / "mnt") as mount:
        if assembly(mount)["shares_blocks"]:
            pytest.skip("an assembled file takes no space here")
        for name, expected in family.items():
            assert container_of(mount, name).read_bytes() == expected
        assert (assembly(mount)["made"], assembly(mount)["waiting"]) == (0, 0)
        assert not cached_parts(store)
        open_again(container_of(mount, "one"))
        wait_until(lambda: assembly(mount)["made"] == 1, pause=0.01)


@needs_root
def test_default_bound_is_half_of_the_packs_and_one_file(store, family, tmp_path):
    """What is assembled never takes more, be it many files; pins do not count."""
    with Mount(store, tmp_path / "mnt") as mount:
        if assembly(mount)["shares_blocks"]:
            pytest.skip("an assembled file takes no space here")
    packs = sum(path.stat().st_blocks * 512 for path in (store.path / "packs").iterdir())
    size = len(family["one"])
    with Mount(store, tmp_path / "mnt") as mount:
        for name, expected in family.items():
            assembled(mount, name, expected)
            usage = store.json("du")
            assert usage["assembled_bytes"] <= usage["assembled_bytes_max"] == max(packs // 2, size)
    assert "of assembled files in the cache, of at most " in store.weft("du").stdout
    for name in family:
        store.weft("pin", name)
    assert store.json("cache")["pinned_bytes"] == 3 * size
    assert store.json("du")["assembled_bytes_max"] == 3 * size + packs // 2


def facts_of(path):
    facts = path.stat()
    return facts.st_ino, facts.st_size, facts.st_blocks, facts.st_nlink, facts.st_mtime_ns, facts.st_mode


@needs_root
def test_du_and_attributes_do_not_change(store, family, tmp_path):
    def seen():
        blocks = run(["du", "-s", "--block-size=1", mount / "models"]).stdout.split()[0]
        return blocks, [facts_of(container_of(mount, name)) for name in family]

    store.weft("cache", "--max", "1G")
    with Mount(store, tmp_path / "mnt") as mount:
        before = seen()
        for name, expected in family.items():
            assembled(mount, name, expected)
        assert seen() == before
        with open(container_of(mount, "one"), "rb"):
            assert seen() == before
    assert store.json("du")["assembled_bytes"] == sum(len(content) for content in family.values())


@needs_root
def test_bound_over_two_mounts(store, family, tmp_path):
    """Room for two: what was used longest ago goes, whoever made it. A file that is open keeps its bytes."""
    bound = 2 * len(family["one"]) + 4096
    options = f"assembly_cache_max={bound}"
    with Mount(store, tmp_path / "a", options) as first, Mount(store, tmp_path / "b", options) as second:
        assembled(first, "one", family["one"])
        assembled(second, "two", family["two"])
        assert len(whole_files(store)) == 2
        old = whole_files(store)
        with open(container_of(first, "one"), "rb"):  # the latest now
            pass
        with open(container_of(first, "two"), "rb") as held:
            for name in old:
                age = 200 if pack_of(store, name).read_bytes() == family["two"] else 100
                os.utime(pack_of(store, name), (time.time() - age,) * 2)
            assembled(second, "three", family["three"])
            assert store.json("cache")["bytes"] <= bound
            assert len(whole_files(store) & old) == 1
            assert held.read() == family["two"]
        assert container_of(second, "one").read_bytes() == family["one"]
        assert assembly(second)["opened"] == 1
        assert container_of(first, "two").read_bytes() == family["two"]
        assert_right(store, family)


@needs_root
def test_what_is_mapped_keeps_its_bytes(store, family, tmp_path):
    """Only a mapping is left of a file that was open, and is evicted. Pages that it did not have before come as well."""
    with Mount(store, tmp_path / "mnt") as mount:
        assembled(mount, "one", family["one"])
        with open(container_of(mount, "one"), "rb") as file:
            mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        store.weft("cache", "--max", "0")
        assert not cached_parts(store)
        mapping.madvise(mmap.MADV_DONTNEED)
        assert mapping[:] == family["one"]
        mapping.close()
        assert container_of(mount, "one").read_bytes() == family["one"]


@needs_root
def test_pins(store, family, tmp_path):
    store.weft("cache", "--max", str(2 * len(family["one"]) + 4096))
    assert store.json("pin", "one@1") == {"files": 1, "bytes": len(family["one"]), "assembled_now": 1}
    pinned = whole_files(store)
    with Mount(store, tmp_path / "mnt") as mount:
        for name in ("two", "three"):
            assembled(mount, name, family[name])
            assert pinned <= whole_files(store)
    assert store.weft("pin", "two", "--quiet").returncode == 0
    assert store.weft("pin", "three", check=False).returncode != 0
    store.weft("cache", "--max", "0")
    assert len(whole_files(store)) == 2
    for name in ("one", "two"):
        store.weft("pin", "--delete", name)
    store.weft("cache", "--max", "0")
    assert not cached_parts(store)


def test_a_pin_is_in_the_journal(store, family):
    """It is one fact of the store: it comes back with a rebuild, and the cache has no files of its own for it."""
    store.weft("pin", "one")
    store.weft("cache", "--max", "0")
    assert store.json("cache")["pinned_files"] == 1 and len(cached_parts(store)) == 2
    store.weft("fsck", "--rebuild")
    assert store.json("cache")["pinned_files"] == 1
    store.weft("unpin", "one")
    store.weft("cache", "--max", "0")
    assert not cached_parts(store)
    assert family["one"]


@needs_root
def test_two_pins_of_one_content(store, family, tmp_path):
    """Each version lets go of its own; one that is removed lets go too."""
    store.publish(tmp_path / "one", name="same")
    store.weft("pin", "one")
    store.weft("pin", "same")
    store.weft("pin", "--delete", "one")
    store.weft("cache", "--max", "0")
    assert len(whole_files(store)) == 1
    assert store.json("cache")["pinned_files"] == 1
    store.weft("rm", "same@1")
    store.weft("gc")
    assert store.json("cache")["pinned_files"] == 0
    store.weft("cache", "--max", "0")
    assert not cached_parts(store)
    with Mount(store, tmp_path / "mnt") as mount:
        assert container_of(mount, "one").read_bytes() == family["one"]


def under_another_boot(*command):
    """Runs a program that reads another boot id than this machine's."""
    script = "mount --bind /proc/sys/kernel/random/uuid /proc/sys/kernel/random/boot_id && exec \"$@\""
    return run(["unshare", "--mount", "sh", "-c", script, "sh", *command])


def flip_a_byte(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


@contextlib.contextmanager
def read_only(directory):
    run(["mount", "--bind", directory, directory])
    try:
        run(["mount", "-o", "remount,bind,ro", directory])
        yield
    finally:
        run(["umount", directory])


@pytest.fixture
def left_by_another_boot(store, family):
    """The only assembled file, which this boot has not verified."""
    under_another_boot(WEFT, "--store", store.path, "pin", "one")
    name, = whole_files(store)
    assert pack_of(store, name).read_bytes() == family["one"]
    return pack_of(store, name)


@needs_root
def test_a_damaged_file_of_another_boot_is_not_served(store, family, left_by_another_boot, tmp_path):
    """It is read from its packs until the mount has verified, deleted and made it again."""
    flip_a_byte(left_by_another_boot, 5 << 20)
    with Mount(store, tmp_path / "mnt") as mount:
        path = container_of(mount, "one")
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapping:
            assert assembly(mount)["opened"] == 0
            assert mapping[:] == file.read() == family["one"]

        def made_again():
            assert path.read_bytes() == family["one"]
            return assembly(mount)["opened"] > 0

        wait_until(made_again, pause=0.05)
        wait_until(lambda: not assembly(mount)["waiting"], pause=0.05)
        assert (assembly(mount)["damaged"], assembly(mount)["made"]) == (1, 1)
        assert left_by_another_boot.read_bytes() == family["one"]
    store.assert_sound()


@needs_root
def test_a_whole_file_of_another_boot_is_used_once_it_is_verified(store, family, left_by_another_boot, tmp_path):
    inode = left_by_another_boot.stat().st_ino
    with Mount(store, tmp_path / "mnt") as mount:
        assert container_of(mount, "one").read_bytes() == family["one"]
        assert assembly(mount)["opened"] == 0
        wait_until(lambda: container_of(mount, "one").read_bytes() == family["one"] and assembly(mount)["opened"] > 0,
                   pause=0.05)
        assert (assembly(mount)["damaged"], assembly(mount)["made"]) == (0, 0)
        assert left_by_another_boot.stat().st_ino == inode
    with Mount(store, tmp_path / "mnt") as mount:  # it is known of this boot
        assert container_of(mount, "one").read_bytes() == family["one"]
        assert assembly(mount)["opened"] == 1


@needs_root
@pytest.mark.parametrize("command", ["fsck", "scrub"])
def test_a_check_names_and_deletes_a_damaged_file(store, family, command, tmp_path):
    store.weft("pin", "one")
    name, = whole_files(store)
    flip_a_byte(pack_of(store, name), 5 << 20)
    with read_only(store.path / "cache"):
        found = store.weft(command, check=False)
        assert found.returncode == 1 and f"{name}.pack" in found.stdout
        assert whole_files(store) == {name}
    found = store.weft(command, check=False)
    assert found.returncode == 1 and f"{name}.pack" in found.stdout
    assert not cached_parts(store)
    store.assert_sound()
    with Mount(store, tmp_path / "mnt") as mount:
        assembled(mount, "one", family["one"])


@needs_root
def test_scrub_goes_on_in_assembled_files(store, family):
    """Runs that end early read each byte once, of packs and of assembled files."""
    store.weft("pin", "one")
    whole = store.json("fsck")["bytes_read"]
    in_packs = sum(entry.stat().st_size for entry in (store.path / "packs").glob("*.pack"))
    assert whole > in_packs
    runs = []
    while not runs or not runs[-1]["complete"]:
        runs.append(store.json("scrub", "--for", "1s", "--rate", "8M"))
    assert len(runs) > 2
    assert sum(run["bytes"] for run in runs) == whole


@needs_root
def test_a_mount_that_may_not_write_only_reads(store, family, left_by_another_boot, tmp_path):
    """The cache is read-only: what lies there is used once it is verified, and nothing is made or deleted."""
    with read_only(left_by_another_boot.parent):
        before = cached_parts(store)
        with Mount(store, tmp_path / "mnt") as mount:
            assert assembly(mount)["writable"] is False
            wait_until(lambda: container_of(mount, "one").read_bytes() == family["one"] and assembly(mount)["opened"],
                       pause=0.05)
            assert container_of(mount, "two").read_bytes() == family["two"]
            assert assembly(mount)["made"] == 0 and not assembly(mount)["waiting"]
        assert cached_parts(store) == before


@needs_root
def test_gc_removes_what_no_version_needs(store, family, tmp_path):
    store.weft("cache", "--max", "1G")
    with Mount(store, tmp_path / "mnt") as mount:
        for name, expected in family.items():
            assembled(mount, name, expected)
    store.weft("rm", "two@1")
    assert store.json("gc", "--dry-run")["assembled_files_removed"] == 1
    assert store.json("gc")["assembled_bytes_removed"] == len(family["two"])
    assert len(whole_files(store)) == 2
    store.weft("fsck", "--rebuild")
    assert_right(store, family)


@needs_root
def test_killed_at_any_moment(store, tmp_path):
    """No wrong file is left, and no part once another one is assembled."""
    family = publish_family(store, tmp_path, ["big"], tensors=48, changed=4)
    family |= publish_family(store, tmp_path / "again", ["small"])
    chance = random.Random(7)

    def emptied():
        store.weft("cache", "--max", "0")
        return not cached_parts(store) and not unfinished(store)

    rounds = parts = 0
    while rounds < 12 or (parts == 0 and rounds < 60):
        rounds += 1
        with Mount(store, tmp_path / "mnt") as mount:
            assert container_of(mount, "big").read_bytes() == family["big"]
            open_again(container_of(mount, "big"))
            time.sleep(chance.uniform(0, 0.15))
            mount.kill()
            run(["umount", "-l", mount.path])
        parts += bool(unfinished(store))
        assert_right(store, family)
        wait_until(emptied, pause=0.05)  # the dying server lets go of its locks last
        store.weft("cache", "--max", "1G")
    assert parts > 0, "no server was killed while it assembled"
    with Mount(store, tmp_path / "mnt") as mount:
        for name, expected in family.items():
            assembled(mount, name, expected)
    assert_right(store, family)
    assert len(whole_files(store)) == len(family)


@needs_root
def test_full_disk(small_disk, tmp_path):
    store = Store(small_disk / "store")
    family = publish_family(store, tmp_path, ["one"], tensors=4, changed=1)
    with open(small_disk / "filler", "wb") as filler:
        space = os.statvfs(small_disk)
        filler.write(b"x" * (space.f_bavail * space.f_frsize - (2 << 20)))
    with Mount(store, tmp_path / "mnt") as mount:
        assert container_of(mount, "one").read_bytes() == family["one"]
        open_again(container_of(mount, "one"))
        wait_until(lambda: assembly(mount)["given_up"] == 1, pause=0.01)
        assert "no space" in assembly(mount)["last_problem"]
        assert container_of(mount, "one").read_bytes() == family["one"]
        assert not cached_parts(store) and not unfinished(store)


@needs_root
def test_two_mounts_open_the_same_file_at_once(store, family, tmp_path):
    with Mount(store, tmp_path / "a") as first, Mount(store, tmp_path / "b") as second:
        contents = []
        readers = [threading.Thread(target=lambda m=mount: contents.append(container_of(m, "one").read_bytes()))
                   for mount in (first, second)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        assert contents == [family["one"]] * 2
        for mount in (first, second):
            open_again(container_of(mount, "one"))
        wait_until(lambda: whole_files(store) and not assembly(first)["waiting"] and not assembly(second)["waiting"],
                   pause=0.01)
        assert assembly(first)["made"] + assembly(second)["made"] == 1
        for mount in (first, second):
            assert container_of(mount, "one").read_bytes() == family["one"]
            assert assembly(mount)["opened"] >= 1  # 2 where the first reader came so late that it was there


MAKE = {"xfs": ["mkfs.xfs", "-q"], "btrfs": ["mkfs.btrfs", "-q"]}


@pytest.fixture(params=MAKE)
def sharing_disk(request, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("making file systems needs root")
    image, place = tmp_path / "image", tmp_path / "disk"
    place.mkdir()
    with open(image, "wb") as file:
        file.truncate(512 << 20)
    run([*MAKE[request.param], image])
    run(["mount", "-o", "loop", image, place])
    yield place
    run(["umount", place])


def fill_to(place, left):
    """Or until the disk says that it is full: Btrfs does so earlier than its figures."""
    with contextlib.suppress(OSError), open(place / "filler", "wb", buffering=0) as filler:
        while (space := os.statvfs(place)).f_bavail * space.f_frsize > left:
            filler.write(os.urandom(4 << 20))
            os.fsync(filler.fileno())


def used_bytes(place):
    os.sync()
    space = os.statvfs(place)
    return (space.f_blocks - space.f_bfree) * space.f_frsize


@pytest.mark.parametrize("sources", ["beside the store", "elsewhere"])
def test_blocks_are_shared(sharing_disk, tmp_path, sources):
    """The first open after the publish is passed through, and the assembled file takes no space of its own."""
    store = Store(sharing_disk / "store")
    family = publish_family(store, sharing_disk / "src" if sources == "beside the store" else tmp_path, ["one"],
                            tensors=32, changed=8)
    assert store.json("cache")["files"] == 1
    with Mount(store, tmp_path / "mnt") as mount:
        assert container_of(mount, "one").read_bytes() == family["one"]
        assert assembly(mount)["opened"] == 1
        before = used_bytes(sharing_disk)
        store.weft("cache", "--max", "0")
        store.weft("cache", "--max", "1G")
        assert before - used_bytes(sharing_disk) < 4 << 20
        assembled(mount, "one", family["one"])
        assert assembly(mount)["copied_bytes"] < 1 << 20
        assert container_of(mount, "one").read_bytes() == family["one"]
    store.assert_sound()


def test_shared_blocks_are_not_evicted_for_room_on_the_disk(sharing_disk, tmp_path):
    """They would give nothing back."""
    store = Store(sharing_disk / "store")
    family = publish_family(store, sharing_disk / "src", ["one", "two", "three"], tensors=8, changed=2)
    assert store.json("cache")["files"] == 3
    with Mount(store, tmp_path / "mnt") as mount:
        next(pack_of(store, name) for name in whole_files(store)
             if pack_of(store, name).read_bytes() == family["three"]).unlink()
        fill_to(sharing_disk, 20 << 20)  # less than a twentieth
        assert container_of(mount, "three").read_bytes() == family["three"]
        assert assembly(mount)["evicted"] == 0
        assert store.json("cache")["files"] >= 2
