"""Files whose layout matters to a node that fetches them: very many small ones, and sparse ones."""
import os
import random
import subprocess
import time

import pytest

from clusterlib import can_make_networks
from daemonlib import metrics
from nodes import Cluster

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
SMALL_FILES = 5_000  # two groups: one, which comes into one pack, has at most 4,096
DESCRIPTORS_MAX = 200
REQUESTS_MAX = 250
SPARSE_BYTES = 1 << 30
DATA_BYTES = 10 << 20


@pytest.fixture
def pair(tmp_path):
    with Cluster(tmp_path, peers=True) as cluster:
        yield cluster, *cluster.some(2)


def write_small_files(directory, count):
    """`count` files of 200 bytes to 3 KiB in directories of 500."""
    draw = random.Random(count)
    expected = {}
    for number in range(count):
        name = f"{number // 500:03}/{number:05}.txt"
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        expected[name] = draw.randbytes(draw.randrange(200, 3_000))
        (directory / name).write_bytes(expected[name])
    return expected


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def reads(node):
    """Requests for bytes that its daemon has sent to peers."""
    return metrics(node.daemon.ask("metrics")["text"])['weft_fetches_total{source="peer"}']


@pytest.mark.parametrize("order", ["in order", "shuffled"])
def test_many_small_files_take_few_descriptors_and_requests(pair, tmp_path, order):
    cluster, one, two = pair
    expected = write_small_files(tmp_path / "source", SMALL_FILES)
    cluster.publish(one, tmp_path / "source", "small")
    names = list(expected)
    if order == "shuffled":
        random.Random(7).shuffle(names)
    most = {}
    with two.mounted() as mount:
        programs = {"weftd": [two.daemon.pid], "the publisher's weftd": [one.daemon.pid], "mount.weft": mount.server_pids()}
        begun = time.monotonic()
        for number, name in enumerate(names):
            assert (mount.version("small", 1) / name).read_bytes() == expected[name]
            if number % 100 == 0:
                for program, pids in programs.items():
                    most[program] = max(most.get(program, 0), *map(open_files, pids))
        print(f"{order}: {time.monotonic() - begun:.1f} s, {reads(two):.0f} requests, descriptors: {most}")
        assert all(count < DESCRIPTORS_MAX for count in most.values()), most
        assert reads(two) < REQUESTS_MAX


def same_bytes(one, two):
    return subprocess.run(["cmp", one, two], check=False).returncode == 0


def test_a_sparse_file_keeps_its_holes(pair, tmp_path):
    cluster, one, two = pair
    source = tmp_path / "source" / "sparse.bin"
    source.parent.mkdir()
    draw = random.Random(1)
    with open(source, "wb") as file:
        file.truncate(SPARSE_BYTES)
        for at in range(0, SPARSE_BYTES, SPARSE_BYTES // 160):
            file.seek(at + draw.randrange(SPARSE_BYTES // 320))
            file.write(draw.randbytes(DATA_BYTES // 160))
    cluster.publish(one, source.parent, "sparse")
    assert one.store.pack_bytes() < 2 * DATA_BYTES
    with two.mounted() as mount:
        assert same_bytes(source, mount.version("sparse", 1) / source.name)
        two.store.weft("prefetch", "sparse@1")
        assert two.store.pack_bytes() < 2 * DATA_BYTES
