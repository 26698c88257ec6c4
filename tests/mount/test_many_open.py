"""Programs have more files open than the server has descriptors: the kernel has the backing files itself."""
import contextlib
import errno
import os
import pathlib
import re
import resource
import signal

import pytest

from daemonlib import Daemon
from weftlib import HAS_LINUX_6_9, Mount, Store, refused_by

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


@contextlib.contextmanager
def no_more_descriptors(pid):
    """The process can open nothing."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def test_a_server_without_descriptors_says_so(mount):
    """EIO would be damage."""
    first, second = (mount.version("many", 1) / f"shard-{i:04d}.arrow" for i in range(2))
    with open(first, "rb") as held:
        with no_more_descriptors(mount.figure("pid")):
            refused_by(errno.EMFILE, os.open, second, os.O_RDONLY)
            assert held.read(8) == b"00000000"
        assert second.read_bytes()[:8] == b"00000001"


def limits(pid):
    """(soft, hard) of the files that the process may have open."""
    found = re.search(r"^Max open files +(\d+) +(\d+)", pathlib.Path(f"/proc/{pid}/limits").read_text(), flags=re.M)
    return int(found[1]), int(found[2])


FILES_MAX = 1 << 20  # kFilesMax
FEW = 4096


def lower_limits():
    """As a login does."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, FEW))


def may_raise_limits():
    """Root may, unless it lacks CAP_SYS_RESOURCE, as in a container."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"^CapEff:\t(.*)", status, flags=re.M)[1], 16) >> 24 & 1


def test_the_programs_raise_their_limits(tmp_path):
    """Both of them if they may, and else that which they may raise."""
    store, most = Store(tmp_path / "store"), FILES_MAX if may_raise_limits() else FEW
    wrapper = ("prlimit", f"--nofile=1024:{FEW}")
    with Mount(store, tmp_path / "mnt", preexec_fn=lower_limits) as mount, Daemon(store, wrapper=wrapper) as daemon:
        for pid in (mount.figure("pid"), daemon.pid):
            assert limits(pid) == (most, most)
