"""What fast loaders do with a file does on every kind of file of a mount what it does on a native one, or fails as a
read-only file system would."""
import errno
import mmap
import os
import re

import pytest

import loaders
from assembled import assembly, whole_files
from weftlib import Mount, Store, random_tensors, wait_until, write_model

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="passthrough needs root")

# Kind -> where it is below models/m, or in the mount.
KINDS = {
    "published": "models/m/1/model.safetensors",
    "composed": "models/m/2/model.safetensors",
    "assembled": "models/m/2/model.safetensors",
    "config": "models/m/1/config.json",
    "view": "models/m/1/tensors/layer.0.weight.npy",
    "layer": "models/m/1/layers/layer.safetensors",
    "layer_json": "models/m/1/layers/layer/layer.json",
    "info_json": "models/m/1/info.json",
    "ancestors": "models/m/2/lineage/ancestors",
    "owners": "models/m/2/lineage/owners.tsv",
    "graph": "models/m/2/lineage/graph.svg",
    "readme": "README",
    "status": ".weft/status",
    "metrics": ".weft/metrics",
}
MADVICE = {name: getattr(mmap, f"MADV_{name}") for name in
           ("NORMAL", "RANDOM", "SEQUENTIAL", "WILLNEED", "DONTNEED", "HUGEPAGE", "NOHUGEPAGE", "DONTDUMP", "DODUMP")}
MADVICE |= {"COLD": 20, "PAGEOUT": 21, "POPULATE_READ": 22}
FADVICE = ("NORMAL", "RANDOM", "SEQUENTIAL", "NOREUSE", "WILLNEED", "DONTNEED")
PRIVATE_WRITES = {"flags": mmap.MAP_PRIVATE, "protection": mmap.PROT_READ | mmap.PROT_WRITE}
SAME = {
    "read": loaders.read,
    "O_DIRECT": loaders.read_direct,
    "preadv2": loaders.read_with_flags(0),
    "RWF_HIPRI": loaders.read_with_flags(os.RWF_HIPRI),
    "RWF_NOWAIT": loaders.read_with_flags(os.RWF_NOWAIT),
    "libaio": loaders.read_libaio,
    "libaio O_DIRECT": loaders.read_libaio_direct,
    "io_uring": loaders.read_io_uring,
    "io_uring O_DIRECT": loaders.read_io_uring_direct,
    "sendfile": loaders.read_sendfile,
    "copy_file_range": loaders.read_copy_file_range,
    "splice": loaders.read_splice,
    "MAP_SHARED": loaders.mapped(loaders.all_bytes),
    "MAP_PRIVATE": loaders.mapped(loaders.all_bytes, mmap.MAP_PRIVATE),
    "MAP_POPULATE": loaders.mapped(loaders.all_bytes, mmap.MAP_PRIVATE | mmap.MAP_POPULATE),
    "private writes": loaders.mapped(loaders.write_privately, **PRIVATE_WRITES),
    "mlock": loaders.mapped(loaders.locked, mmap.MAP_PRIVATE),
    "readahead": loaders.read_ahead,
    "seeks": loaders.seeks,
    "seek behind the end": loaders.seek_behind,
    "statx": loaders.statx,
    "locks": loaders.locks,
    **{f"madvise {name}": loaders.mapped(loaders.advised(number), mmap.MAP_PRIVATE)
       for name, number in MADVICE.items()},
    **{f"fadvise {name}": loaders.file_advised(getattr(os, f"POSIX_FADV_{name}")) for name in FADVICE},
}
# (way, kind; "" for every kind) -> the errors that may stand for the native outcome: the caller has to do without.
MAY_FAIL = {
    ("RWF_NOWAIT", ""): {errno.EOPNOTSUPP},
    ("copy_file_range", ""): {errno.EXDEV},  # as between any two file systems; cp(1) reads instead
    ("MAP_SHARED", "status"): {errno.ENODEV},  # its content changes: there are no pages to share
    ("MAP_SHARED", "metrics"): {errno.ENODEV},
}
FIBMAP, FIEMAP = 1, 0xC020660B


def mount_of(area, options):
    """m@2 shares four of the six tensors of m@1: its file lies in two packs."""
    base = random_tensors(6, 1 << 20, seed="base")
    store = Store(area / "store")
    store.publish(write_model(area / "first", base), name="m")
    store.publish(write_model(area / "second", base | random_tensors(2, 1 << 20, seed="changed")), name="m")
    return Mount(store, area / "mnt", options)


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
        wait_until(lambda: whole_files(mount.store) and not assembly(mount)["waiting"], pause=0.01)
        with open(path, "rb"):
            assert assembly(mount)["opened"] == 1
        yield mount


@pytest.fixture(params=KINDS)
def pair(request, tmp_path):
    """A file of the mount, and a native one with its content and mode."""
    mount = request.getfixturevalue("all_assembled" if request.param == "assembled" else "never_assembled")
    ours = mount / KINDS[request.param]
    native = tmp_path / "native"
    native.write_bytes(ours.read_bytes())
    native.chmod(0o444)
    return request.param, ours, native


def outcome(way, path):
    try:
        return way(path)
    except OSError as failure:
        return f"errno {failure.errno}"


@pytest.mark.parametrize("name", SAME)
def test_same_as_native(pair, name):
    kind, ours, native = pair
    expected = outcome(SAME[name], native)
    if name.startswith("io_uring") and expected in (f"errno {errno.EPERM}", f"errno {errno.ENOSYS}"):
        pytest.skip("this kernel has io_uring turned off")
    may_fail = MAY_FAIL.get((name, ""), set()) | MAY_FAIL.get((name, kind), set())
    got = outcome(SAME[name], ours)
    if kind == "metrics" and not isinstance(got, str):  # which count what was just done
        assert not isinstance(expected, str)
    else:
        assert got in (expected, *(f"errno {number}" for number in may_fail))


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
    before = ours.read_bytes()
    refused = {errno.EROFS}
    if name == "shared map for writing":
        refused |= {errno.EACCES}  # of a descriptor that is open for reading, as natively
    if name == "link":
        refused |= {errno.EPERM}
    assert outcome(CHANGES[name], ours) in {f"errno {number}" for number in refused}
    assert kind == "metrics" or ours.read_bytes() == before


def test_a_write_to_a_private_map_stays_there(pair):
    kind, ours, _ = pair
    before, first, _ = loaders.mapped(loaders.write_privately, **PRIVATE_WRITES)(ours)
    assert first != before[0]
    assert kind == "metrics" or ours.read_bytes() == before


def test_no_block_map(pair):
    """Bytes that may lie anywhere have no place on a disk to tell."""
    _, ours, _ = pair
    refused = {f"errno {number}" for number in (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL)}
    assert outcome(loaders.block_map(FIEMAP, bytes(56)), ours) in refused
    nowhere = bytes(4)
    assert outcome(loaders.block_map(FIBMAP, nowhere), ours) in (nowhere, *refused)


def test_handles_are_native_or_refused(pair):
    _, ours, _ = pair
    assert outcome(loaders.file_handle, ours) in ("a handle", f"errno {errno.EOPNOTSUPP}")
