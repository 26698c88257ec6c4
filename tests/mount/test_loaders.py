"""What fast loaders do with a file does on every kind of file of a mount what it does on a native one, or fails as a
read-only file system would."""
import contextlib
import errno
import io
import json
import mmap
import os

import numpy
import pytest

import loaders
from assembled import assembly, open_again, whole_files
from loader_ways import MAY_FAIL, PRIVATE_WRITES, SAME, failed_with, is_turned_off, outcome
from malformed import gguf, gguf_tensor
from weftlib import (Mount, Store, linux_version, overlay_over, random_bytes, random_tensors, wait_until,
                     write_model)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="passthrough needs root")

# Kind -> where it is in the mount.
KINDS = {
    "published": "models/m/1/model.safetensors",
    "not_passed_through": "models/m/1/model.safetensors",
    "gguf": "models/m/1/table.gguf",
    "npy": "models/m/1/table.npy",
    "empty": "models/m/1/empty.txt",
    "composed": "models/m/2/model.safetensors",
    "assembled": "models/m/2/model.safetensors",
    "config": "models/m/1/config.json",
    "view": "tensors/m/1/layer.0.weight.npy",
    "view_bf16": "tensors/m/1/half.0.weight.npy",  # of a type that numpy lacks
    "view_gguf": "tensors/m/1/quantized.npy",
    "layer": "layers/m/1/layer.safetensors",
    "layer_json": "layers/m/1/layer/layer.json",
    "info_json": "lineage/m/1/info.json",
    "ancestors": "lineage/m/2/ancestors",
    "descendants": "lineage/m/1/descendants",
    "log": "lineage/m/2/log",
    "diff": "lineage/m/2/diff/m@1",
    "owners": "lineage/m/2/owners.tsv",
    "sums": "lineage/m/2/SHA256SUMS",
    "graph": "lineage/m/2/graph.svg",
    "versions": "lineage/m/versions.tsv",
    "ref": "hub/models--m/refs/main",
    "snapshot": "hub/models--m/snapshots/*/table.npy",
    "readme": "README",
    "metrics": ".weft/metrics",
    "peers": ".weft/peers",
}
CHANGING = ("metrics", "peers", "versions", "ref", "graph", "info_json", "diff", "owners")  # their content may: there are no pages to share
MAPS_DIRECT_FILES = linux_version() >= (6, 6)  # see kDirectMapsFlag2 in fuse/kernel/protocol.h
FIBMAP, FIEMAP = 1, 0xC020660B


def small_files():
    """Published beside the large one: (name, bytes)."""
    table = io.BytesIO()
    numpy.save(table, numpy.arange(5000, dtype=numpy.float32))
    quantized = gguf(tensors=[gguf_tensor("quantized", [64, 32], kind=8)], data=random_bytes(64 * 34, "gguf"))
    return [("empty.txt", b""), ("table.npy", table.getvalue()), ("table.gguf", quantized)]


def store_of(area, where):
    """m@2 shares four of the six tensors of m@1: its file lies in two packs."""
    base = random_tensors(6, 1 << 20, seed="base")
    more = random_tensors(1, 2048, seed="half", dtype="BF16", prefix="half")
    store = Store(where / "store")
    store.publish(write_model(area / "first", base | more, small_files()), name="m")
    second = write_model(area / "second", base | random_tensors(2, 1 << 20, seed="changed"))
    store.weft("import", second, "--name", "m", "--parent", "m@1")
    return store


def mount_of(area, options):
    return Mount(store_of(area, area), area / "mnt", options)


@pytest.fixture(scope="module")
def never_assembled(tmp_path_factory):
    with mount_of(tmp_path_factory.mktemp("loaders"), "assembly_cache_max=0") as mount:
        yield mount
        assert not whole_files(mount.store) and not assembly(mount).get("opened")


@pytest.fixture(scope="module")
def all_assembled(tmp_path_factory):
    with mount_of(tmp_path_factory.mktemp("loaders"), None) as mount:
        path = mount / KINDS["assembled"]
        assert path.read_bytes()
        open_again(path)
        wait_until(lambda: whole_files(mount.store) and not assembly(mount)["waiting"], pause=0.01)
        with open(path, "rb"):
            assert assembly(mount)["opened"] == 1
        yield mount


@pytest.fixture(scope="module")
def not_passed_through(tmp_path_factory):
    """Its store lies on two overlays, upon which the kernel stacks nothing more."""
    area = tmp_path_factory.mktemp("loaders")
    with contextlib.ExitStack() as layers:
        below = layers.enter_context(overlay_over(area / "lower", area / "below"))
        store = store_of(area, below)
        store.path = layers.enter_context(overlay_over(below, area / "above")) / "store"
        with Mount(store, area / "mnt") as mount:
            assert json.loads((mount / ".weft/status").read_text())["mount"]["mode"] == "cached"
            yield mount


MOUNTS = {"assembled": "all_assembled", "not_passed_through": "not_passed_through"}  # the others: never_assembled


@pytest.fixture(scope="module", params=KINDS)
def pair(request, tmp_path_factory):
    """A file of the mount, and a native one with its content and mode. Nothing that a test does changes either."""
    mount = request.getfixturevalue(MOUNTS.get(request.param, "never_assembled"))
    [ours] = mount.path.glob(KINDS[request.param])
    native = tmp_path_factory.mktemp("native") / "native"
    native.write_bytes(ours.read_bytes())
    native.chmod(0o644)
    return request.param, ours, native


@pytest.mark.parametrize("name", SAME)
def test_same_as_native(pair, name):
    kind, ours, native = pair
    expected = outcome(SAME[name], native)
    if is_turned_off(name, expected):
        pytest.skip("this kernel has io_uring turned off")
    may_fail = MAY_FAIL.get(name, set())
    if kind in CHANGING and name.startswith("MAP_SHARED") and not MAPS_DIRECT_FILES:
        may_fail = {errno.ENODEV}
    got = outcome(SAME[name], ours)
    if kind == "metrics" and not isinstance(got, str):  # which count what was just done
        assert not isinstance(expected, str)
    else:
        assert got in (expected, *(failed_with(number) for number in may_fail))


# Ways to change a file. (Natively root may do all of them.)
CHANGES = {
    "open for writing": lambda path: os.close(os.open(path, os.O_WRONLY)),
    "open to truncate": lambda path: os.close(os.open(path, os.O_RDWR | os.O_TRUNC)),
    "truncate": lambda path: os.truncate(path, 1),
    "chmod": lambda path: os.chmod(path, 0o600),
    "utime": lambda path: os.utime(path, (0, 0)),
    "setxattr": lambda path: os.setxattr(path, "user.x", b"x"),
    "unlink": os.unlink,
    "rename": lambda path: os.rename(path, f"{path}.x"),
    "link": lambda path: os.link(path, f"{path}.x"),
    "shared map for writing": loaders.mapped(loaders.all_bytes, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_refused(pair, name):
    kind, ours, _ = pair
    if kind == "empty" and name == "shared map for writing":
        pytest.skip("no empty file can be mapped")
    before = ours.read_bytes()
    refused = {errno.EROFS}
    if name == "shared map for writing":
        refused |= {errno.EACCES}  # of a descriptor that is open for reading, as natively
    if name == "link":
        refused |= {errno.EPERM}
    assert outcome(CHANGES[name], ours) in {failed_with(number) for number in refused}
    assert kind == "metrics" or ours.read_bytes() == before


def test_a_write_to_a_private_map_stays_there(pair):
    kind, ours, _ = pair
    if kind == "empty":
        pytest.skip("no empty file can be mapped")
    before, first, _ = loaders.mapped(loaders.write_privately, **PRIVATE_WRITES)(ours)
    assert first != before[0]
    assert kind == "metrics" or ours.read_bytes() == before


def test_no_block_map(pair):
    """Bytes that may lie anywhere have no place on a disk to tell."""
    _, ours, _ = pair
    refused = {failed_with(number) for number in (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL)}
    assert outcome(loaders.block_map(FIEMAP, bytes(56)), ours) in refused
    nowhere = bytes(4)
    assert outcome(loaders.block_map(FIBMAP, nowhere), ours) in (nowhere, *refused)


def test_handles_are_native_or_refused(pair):
    _, ours, _ = pair
    assert outcome(loaders.file_handle, ours) in ("a handle", failed_with(errno.EOPNOTSUPP))
