"""Fixtures of all tests in Python."""
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from weftlib import NOBODY, Mount, Store, random_tensors, run, write_model


def pytest_configure():
    """Who is told to end cleans up first, as at Ctrl-C. A shell has what it starts in the background ignore Ctrl-C, and
    the programs under test would ignore it too."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


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
def as_nobody():
    """Options of run() for an ordinary user. /dev/fuse is for everybody where udev runs; elsewhere for this test."""
    before = os.stat("/dev/fuse").st_mode & 0o777
    os.chmod("/dev/fuse", 0o666)
    yield {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
    os.chmod("/dev/fuse", before)
