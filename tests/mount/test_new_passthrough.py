"""Drafts and the versions that they become are written and read by the kernel alone: the server is asked for no byte."""
import contextlib
import json
import mmap
import os

import pytest

from weftlib import HAS_LINUX_6_9, Mount, Store, overlay_over, random_bytes, random_tensors, run, write_model

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not HAS_LINUX_6_9, reason="needs root, and Linux 6.9")
MIB = 1 << 20


@pytest.fixture
def mounted(tmp_path):
    with Mount(Store(tmp_path / "store"), tmp_path / "mnt", "publish") as mount:
        yield mount
        mount.store.assert_sound()


def publish(mount, tensors):
    """The published file, what it holds, and the inode of the draft's."""
    content = (write_model(mount / "new/m", tensors) / "model.safetensors").read_bytes()
    draft = (mount.store.path / "drafts/tree/m/model.safetensors").stat().st_ino
    os.rename(mount / "new/m", mount / "new/m@")
    return mount / "models/m/latest/model.safetensors", content, draft


def assert_passed_through(mount, path, content):
    """From the first open on, for read(2) and for a mapping."""
    def read():
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            assert file.read() == content and mapped[:] == content

    assert mount.requests_for(read, "reads") == 0


def test_a_new_version_is_passed_through_at_once(mounted):
    """The file that was written is the pack."""
    path, content, draft = publish(mounted, random_tensors(8, MIB, seed="unknown"))
    assert draft in {pack.stat().st_ino for pack in (mounted.store.path / "packs").glob("*.pack")}
    assert_passed_through(mounted, path, content)


def test_a_derived_version_is_passed_through_at_once(mounted):
    """The file that was written is the assembled file."""
    tensors = random_tensors(8, MIB, seed="base")
    publish(mounted, tensors)
    path, content, draft = publish(mounted, tensors | random_tensors(1, MIB, seed="derived"))
    cached = {pack.stat().st_ino: pack for pack in (mounted.store.path / "cache").rglob("*.pack")}
    assert draft in cached and cached[draft].stat().st_nlink == 1
    opened = json.loads((mounted / ".weft/status").read_text())["assembly"]["opened"]
    assert_passed_through(mounted, path, content)
    assert json.loads((mounted / ".weft/status").read_text())["assembly"]["opened"] == opened + 1


def test_what_is_served_is_counted(tmp_path):
    """So that no request means what it says: the server makes up the README, and writes where a store lies on overlayfs."""
    with overlay_over(tmp_path / "lower", tmp_path) as merged, \
            Mount(Store(merged / "store"), tmp_path / "mnt", "publish") as mount:
        (mount / "new/m").mkdir()
        assert mount.requests_for((mount / "README").read_bytes, "reads") > 0
        for write in (write_by_calls, write_by_a_mapping):
            assert mount.requests_for(lambda act=write: act(mount / "new/m/x"), "writes") >= 8


def write_by_calls(path):
    with open(path, "wb", buffering=0) as file:
        for number in range(8):
            assert file.write(random_bytes(MIB, number)) == MIB
        os.fsync(file.fileno())


def write_by_a_mapping(path):
    with open(path, "w+b") as file:
        file.truncate(8 * MIB)
        with mmap.mmap(file.fileno(), 8 * MIB) as mapped:
            for number in range(8):
                mapped[number * MIB:(number + 1) * MIB] = random_bytes(MIB, number)
            mapped.flush()


@pytest.mark.parametrize("write", [write_by_calls, write_by_a_mapping])
@pytest.mark.parametrize("place", ["a disk", "memory"])
def test_the_server_is_asked_to_write_nothing(place, write, tmp_path):
    with contextlib.ExitStack() as undo:
        (tmp_path / "area").mkdir()
        if place == "memory":
            run(["mount", "-t", "tmpfs", "tmpfs", tmp_path / "area"])
            undo.callback(run, ["umount", tmp_path / "area"])
        elif run(["stat", "-f", "-c", "%T", tmp_path]).stdout.strip() != "ext2/ext3":
            pytest.skip("the tests lie on no ext4")
        mount = undo.enter_context(Mount(Store(tmp_path / "area/store"), tmp_path / "mnt", "publish"))
        (mount / "new/m").mkdir()
        assert mount.requests_for(lambda: write(mount / "new/m/x"), "writes") == 0
        assert (mount / "new/m/x").read_bytes() == b"".join(random_bytes(MIB, number) for number in range(8))
