"""Fixtures of all tests in Python."""
import ctypes
import fcntl
import os
import pathlib
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from weftlib import FILE_SYSTEMS, NOBODY, Mount, Store, disk_of, page_cache, random_tensors, run, write_model

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
# Tests start many programs in Python. A program that imports torch starts in half the time if Python finds compiled modules,
# so Python keeps them, whatever the environment of the run says.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# The files that take longest, the longest first.
DEAR = ("frameworks/test_writers.py", "cluster/test_links.py", "cluster/test_swarm_hostile.py", "cluster/test_peers_faults.py",
        "cluster/test_partition.py", "frameworks/test_hub.py", "cluster/test_mapped.py", "cluster/test_cold.py",
        "mount/test_new_users.py", "mount/test_lifetime.py", "frameworks/test_endpoint_loaders.py", "mount/test_carry.py",
        "cluster/test_peers_hostile.py", "frameworks/test_dataset_loaders.py", "cluster/test_swarm.py",
        "mount/test_announce.py", "docs/test_readme.py", "cluster/test_streamed.py", "docs/test_cluster_page.py")
left_behind = []  # mounts that were there at the end of this process or of a worker


def pytest_configure(config):
    """Who is told to end cleans up first, as at Ctrl-C. A shell has what it starts in the background ignore Ctrl-C, and
    the programs under test would ignore it too."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    if os.geteuid() == 0:
        own_mounts()
    config.weft_mounts_before = weft_mounts()


def own_mounts():
    """Workers run side by side. A namespace that a test of one makes would keep the mounts of the others alive."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) == 0:
        libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)


def weft_mounts():
    lines = [line.split() for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    return {fields[1] for fields in lines if fields[2] == "fuse.weft"}


def pytest_sessionfinish(session):
    left = sorted(weft_mounts() - session.config.weft_mounts_before)
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_behind"] = left if os.geteuid() == 0 else []  # users' workers share mounts
        return
    left_behind.extend(left)
    if left_behind:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """The order of files: those that take longest begin first, so that no worker has one of them at the end. After them the
    folders take turns, so that tests that wait run beside tests that compute."""
    files = list(dict.fromkeys(item.path for item in items))

    def place(path):
        name, siblings = f"{path.parent.name}/{path.name}", [other for other in files if other.parent == path.parent]
        return (0, DEAR.index(name)) if name in DEAR else (1, siblings.index(path) / len(siblings))

    places = {path: place(path) for path in files}
    items.sort(key=lambda item: places[item.path])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    left_behind.extend(getattr(node, "workeroutput", {}).get("left_behind", []))


def pytest_terminal_summary(terminalreporter):
    for place in left_behind:
        terminalreporter.write_line(f"A mount is left at {place}", red=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """The JUnit file says of a test that was run again why its first run failed."""
    made = yield
    report = made.get_result()
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = (crash.message if crash else report.longreprtext).partition("\n")[0]
        item.user_properties.append(("failure", f"{report.when}: {reason}"))


@pytest.fixture(scope="session")
def area(tmp_path_factory):
    """A directory for what the whole session shares."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def small_model(tmp_path):
    """Four tensors of 256 KiB, a config, a file in a subdirectory."""
    return write_model(tmp_path / "small", random_tensors(4, 256 << 10, seed="small"),
                       files=[("1_Pooling/config.json", b'{"mean": true}\n')])


@pytest.fixture
def mounted(store, small_model, tmp_path):
    """A mount of a store that has org/small@1."""
    store.publish(small_model, name="org/small")
    with Mount(store, tmp_path / "mnt") as mount:
        yield mount


@pytest.fixture
def open_dir():
    """A directory that an ordinary user can reach and write: pytest's own are closed to others."""
    path = Path(tempfile.mkdtemp(prefix="weft-test-", dir="/tmp"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


@pytest.fixture(params=FILE_SYSTEMS)
def disk(request, tmp_path):
    """An empty file system of each type, mounted. Needs root."""
    with disk_of(request.param, tmp_path) as place:
        yield place


@pytest.fixture
def small_disk(tmp_path):
    """A tmpfs of 16 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    path = tmp_path / "small-disk"
    path.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", path])
    yield path
    run(["umount", path])


@pytest.fixture
def caches_stay():
    """No test of another worker drops the kernel's caches meanwhile."""
    with page_cache(fcntl.LOCK_SH):
        yield


@pytest.fixture(scope="session")
def as_nobody():
    """Options of run() for an ordinary user. /dev/fuse is for everybody from now on, as where udev runs."""
    os.chmod("/dev/fuse", 0o666)
    return {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
