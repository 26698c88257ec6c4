"""Nodes that have peers and an origin: peers are read first, and the origin is there when they are not."""
import os
import signal

import pytest

from clusterlib import can_make_networks
from nodes import MODEL_FILE, SECONDS_MAX, Cluster
from test_peers_faults import reading, slowly_from
from weftlib import random_tensors, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")


@pytest.fixture
def two(tmp_path):
    """Two nodes that read from each other, and an origin for both."""
    with Cluster(tmp_path, origin=tmp_path / "origin", peers=True) as cluster:
        yield cluster.some(2)


def test_what_is_not_here_comes_from_peers_and_not_from_the_origin(two, tmp_path):
    holder, reader = two
    # So few reads that no other source is looked at meanwhile.
    source = write_model(tmp_path / "source", random_tensors(3, 1 << 20, seed="both"))
    holder.cluster.publish(holder, source, "model")
    with reader.mounted() as mount:
        assert (mount.version("model", 1) / MODEL_FILE).read_bytes() == (source / MODEL_FILE).read_bytes()
    assert reader.fetched("peer") >= (source / MODEL_FILE).stat().st_size
    assert reader.fetched("origin") == 0


def stop(holder):
    os.kill(holder.daemon.pid, signal.SIGSTOP)


def go_on(holder):
    os.kill(holder.daemon.pid, signal.SIGCONT)


FAULTS = {
    "stopped": (stop, go_on),
    "killed": (lambda holder: holder.daemon.kill(), lambda holder: holder.daemon.start()),
    "cut": (lambda holder: holder.host.cut(), lambda holder: holder.host.mend()),
}


@pytest.mark.parametrize("how", FAULTS)
def test_where_the_only_holder_goes_mid_read_the_origin_gives_the_rest(two, how):
    holder, reader = two
    source = slowly_from(holder.cluster, holder, seed=how, rate="50mbit")
    begins, ends = FAULTS[how]
    with reading(reader, source) as comparing:
        begins(holder)
        try:
            _, said = comparing.communicate(timeout=SECONDS_MAX)
            assert comparing.returncode == 0, said
        finally:
            ends(holder)
    assert reader.fetched("peer") > 0
    assert reader.fetched("origin") > 0
    for node in two:
        node.store.assert_sound()
