"""Programs map files whose bytes are on another node, and that node is lost."""
import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from clusterlib import can_make_networks
from nodes import SECONDS_MAX, SILENCE_SECONDS, Cluster
from weftlib import PATIENCE, environment, random_tensors, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
FILE = "model.safetensors"
# The kernel asks twice for a page that it does not get.
FAILS_SECONDS_MAX = 2 * SILENCE_SECONDS + 8 * PATIENCE
# What the programs do with a mapping of the whole file: its last byte first, so that no read-ahead has it.
MAP = "import mmap, os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY)\nbytes_ = mmap.mmap(fd, 0, prot=mmap.PROT_READ)\n"
TOUCH = MAP + "print('maps', flush=True)\nprint(bytes_[-1] * 256 + bytes_[len(bytes_) // 2])\n"
WRITE = MAP + "out = os.open('/dev/shm', os.O_TMPFILE | os.O_RDWR)\nos.write(out, memoryview(bytes_)[-4096:])\n"


@pytest.fixture(name="pair")
def fixture_pair(tmp_path):
    """The source, its holder, and a node that knows the file and has no byte of it."""
    with Cluster(tmp_path, peers=True) as cluster:
        holder, reader = cluster.some(2)
        source = write_model(tmp_path / "source", random_tensors(8, 4 << 20, seed="mapped"))
        cluster.publish(holder, source, "model")
        yield source / FILE, holder, reader


@contextlib.contextmanager
def program(text, path):
    process = subprocess.Popen([sys.executable, "-c", text, path], env=environment(), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def mounted_without_source(holder, reader, cold):
    """The path of the file, whose holder is killed and back afterwards."""
    with reader.mounted(f"cold={cold}") as mount:
        path = mount.version("model", 1) / FILE
        path.stat()
        holder.daemon.kill()
        try:
            yield path
        finally:
            if holder.daemon.process.poll() is not None:
                holder.daemon.start()


@pytest.mark.parametrize("cold", ["stream", "fetch"])
def test_what_a_mapping_meets_when_its_source_is_lost(pair, cold):
    _, holder, reader = pair
    with mounted_without_source(holder, reader, cold) as path, program(TOUCH, path) as process:
        said, errors = process.communicate(timeout=FAILS_SECONDS_MAX)
        if cold == "fetch":
            assert process.returncode == 1 and said == "" and "Input/output error" in errors
        else:
            assert process.returncode == -signal.SIGBUS and said == "maps\n"


def test_a_mapping_waits_for_its_source(pair):
    """A read of the same file does not."""
    source, holder, reader = pair
    expected = source.read_bytes()
    with mounted_without_source(holder, reader, "auto") as path, program(TOUCH, path) as process:
        with open(path, "rb", buffering=0) as file, pytest.raises(OSError):
            file.read(1 << 20)
        time.sleep(SILENCE_SECONDS + 2)
        assert process.poll() is None
        holder.daemon.start()
        said, errors = process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 0, errors
        assert said == f"maps\n{expected[-1] * 256 + expected[len(expected) // 2]}\n"
        assert path.read_bytes() == expected


def test_a_program_that_waits_in_a_mapping_can_be_killed(pair):
    _, holder, reader = pair
    with mounted_without_source(holder, reader, "auto") as path, program(TOUCH, path) as process:
        time.sleep(SILENCE_SECONDS + 2)
        assert process.poll() is None
        process.kill()
        assert process.wait(5 * PATIENCE) == -signal.SIGKILL
        assert os.stat(path).st_size > 0


def test_a_system_call_does_not_wait_in_a_mapping(pair):
    _, holder, reader = pair
    with mounted_without_source(holder, reader, "auto") as path, program(WRITE, path) as process:
        _, errors = process.communicate(timeout=FAILS_SECONDS_MAX)
        assert process.returncode == 1 and "Bad address" in errors
