"""Programs have more files open than the server has descriptors: the kernel has the backing files itself."""
import os
import pathlib
import resource
import signal

import pytest

from weftlib import HAS_LINUX_6_9, Mount, Store

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not HAS_LINUX_6_9, reason="needs root, and Linux 6.9")
KEPT = 256  # kOpenFilesKept
FILES = KEPT + 80
SIZE = (1 << 20) + 4096  # a pack of its own


@pytest.fixture(name="mount")
def fixture_mount(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for i in range(FILES):
        with open(source / f"shard-{i:04d}.arrow", "wb") as file:
            file.write(b"%08d" % i)
            file.truncate(SIZE)
    store = Store(tmp_path / "store")
    store.publish(source, name="many")
    with Mount(store, tmp_path / "mnt") as mount:
        yield mount


def descriptors(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


def test_files_read_by_the_kernel_hold_no_descriptors(mount):
    server = mount.figure("pid")
    (mount.version("many", 1) / "shard-0000.arrow").read_bytes()
    most = descriptors(server) + KEPT + 40
    resource.prlimit(server, resource.RLIMIT_NOFILE, (most, most))
    held = [open(mount.version("many", 1) / f"shard-{i:04d}.arrow", "rb") for i in range(FILES)]
    try:
        assert descriptors(server) < most
        for i, file in enumerate(held):
            assert file.read(9) == b"%08d\0" % i
        for file in held[:20]:  # the server is asked
            os.posix_fadvise(file.fileno(), 0, SIZE, os.POSIX_FADV_WILLNEED)
            assert os.lseek(file.fileno(), 0, os.SEEK_HOLE) == SIZE
        held.append(open(mount.version("many", 1) / "shard-0000.arrow", "rb"))
        assert held[-1].read(8) == b"00000000"
        assert descriptors(server) < most
        os.kill(server, signal.SIGKILL)
        assert mount.figure("pid") != server
        for i, file in enumerate(held[:FILES]):
            assert os.pread(file.fileno(), 8, 0) == b"%08d" % i
        assert descriptors(mount.figure("pid")) < most + 40
    finally:
        for file in held:
            file.close()
