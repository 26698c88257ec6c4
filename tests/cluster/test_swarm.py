"""Nodes that fetch one version at once give it to each other: src/swarm/README.md."""
import concurrent.futures
import contextlib
import re
import signal

import pytest

from clusterlib import Wire, can_make_networks
from daemonlib import metrics
from nodes import MODEL_FILE, SECONDS_MAX, Cluster
from weftlib import random_tensors, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
MIB = 1 << 20
NODES = 5  # a holder, and others that fetch
TENSORS, TENSOR_BYTES = 24, 2 * MIB
COPIES_MAX = 1.3  # of the version that the holder sends to all


@pytest.fixture(name="swarm")
def swarm_of_nodes(tmp_path, monkeypatch):
    """(holder, other nodes, source of model@1), over slow links. The nodes join swarms."""
    monkeypatch.setenv("WEFT_SWARM", "1")
    with Cluster(tmp_path, peers=True) as cluster:
        holder, *others = (cluster.node() for _ in range(NODES))
        source = write_model(tmp_path / "source", random_tensors(TENSORS, TENSOR_BYTES, seed="swarm"))
        cluster.publish(holder, source, "model")
        for node in cluster.nodes:
            node.host.shape("200mbit")
        yield holder, others, source


@pytest.fixture
def without_holder(tmp_path, monkeypatch):
    """(nodes, source of model@1), over slow links. The version is at the origin alone, and its publisher is away."""
    monkeypatch.setenv("WEFT_SWARM", "1")
    with Cluster(tmp_path, origin=tmp_path / "origin", peers=True) as cluster:
        publisher, *others = (cluster.node() for _ in range(NODES))
        source = write_model(tmp_path / "source", random_tensors(TENSORS, TENSOR_BYTES, seed="swarm"))
        cluster.publish(publisher, source, "model")
        publisher.daemon.stop()
        wait_until(lambda: all(len(node.daemon.ask("peers")["peers"]) == len(others) for node in others),
                   seconds_max=SECONDS_MAX, pause=0.1)
        for node in others:
            node.host.shape("200mbit")
        yield others, source


def fetch(node):
    """All of the version, in the background."""
    return node.store.weft("prefetch", "model@1", timeout=SECONDS_MAX)


def swarms(node):
    return node.daemon.status()["swarms"]


def received(node):
    """Units that came from partners and the source."""
    return sum(one["received"] for one in swarms(node)["fetched"])


def copies(holder, before):
    return (Wire(holder.host).sent - before) / (TENSORS * TENSOR_BYTES)


def named(node):
    """Units that the node has named as the clerk of the origin."""
    return sum(one["sent"] for one in swarms(node)["named"])


def reads_right(node, source):
    with node.mounted() as mount:
        assert (mount.version("model", 1) / MODEL_FILE).read_bytes() == (source / MODEL_FILE).read_bytes()


@contextlib.contextmanager
def all_fetch(nodes):
    """Each node fetches the version; the calls that wait for it."""
    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
        yield [pool.submit(fetch, node) for node in nodes]


def test_the_holder_sends_a_version_about_once(swarm):
    holder, others, source = swarm
    before = Wire(holder.host).sent
    with all_fetch(others) as calls:
        for call in calls:
            call.result()
    assert copies(holder, before) <= COPIES_MAX
    for node in others:
        assert received(node) > 0 and node.daemon.status()["fetched"]["transfers"] == 0
    sent = [sum(one["sent"] for one in swarms(node)["sent"]) for node in others]
    assert sum(sent) > TENSORS * TENSOR_BYTES // MIB  # they gave each other more than one version
    for node in others:
        reads_right(node, source)


def test_status_and_metrics_tell_of_a_swarm(swarm):
    holder, others, _ = swarm
    with all_fetch(others) as calls:
        for call in calls:
            call.result()
    for node in others:
        (version,) = swarms(node)["fetched"]
        assert version["version"] == "model@1" and 0 < version["here"] <= version["units"]
        samples = metrics(node.daemon.ask("metrics")["text"])
        assert samples["weft_swarm_units_received_total"] >= version["received"] > 0
        assert samples["weft_swarms"] == 1 and samples["weft_swarm_hungry"] == 0
        line = rf"swarm     model@1: \d+ of {version['units']} units, \d+ partners?, \d+ received"
        assert re.search(line, node.store.weft("status", "--all").stdout)
    assert metrics(holder.daemon.ask("metrics")["text"])["weft_swarm_units_sent_total"] > 0
    assert sum(len(swarms(node)["introduced"]) for node in [holder, *others]) >= 1


def test_readers_in_order_share_a_version_too(swarm):
    holder, others, source = swarm
    before = Wire(holder.host).sent
    with concurrent.futures.ThreadPoolExecutor(len(others)) as pool:
        for done in [pool.submit(reads_right, node, source) for node in others]:
            done.result()
    assert copies(holder, before) <= COPIES_MAX


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_receiver_that_ends_delays_nobody_for_ever(swarm, how):
    holder, (victim, *others), source = swarm
    with all_fetch(others) as calls:
        doomed = victim.store.start("prefetch", "model@1")
        wait_until(lambda: received(victim) > 4, seconds_max=SECONDS_MAX, pause=0.02)
        if how == "killed":
            victim.daemon.kill()
        else:
            victim.daemon.signal(signal.SIGSTOP)
        for call in calls:
            call.result()
    if how == "stopped":
        victim.daemon.signal(signal.SIGCONT)
    doomed.kill()
    doomed.communicate()
    for node in others:
        reads_right(node, source)


def test_a_late_node_joins(swarm):
    holder, (late, *others), source = swarm
    with all_fetch(others) as calls:
        wait_until(lambda: received(others[0]) > 8, seconds_max=SECONDS_MAX, pause=0.02)
        before = Wire(holder.host).sent
        fetch(late)
        for call in calls:
            call.result()
    assert copies(holder, before) <= 1
    reads_right(late, source)


def test_a_version_without_a_holder_is_read_from_the_origin_about_once(without_holder):
    others, source = without_holder
    with all_fetch(others) as calls:
        for call in calls:
            call.result()
    read = [node.fetched("origin") for node in others]
    assert TENSORS * TENSOR_BYTES <= sum(read) <= COPIES_MAX * TENSORS * TENSOR_BYTES
    assert all(node.fetched("peer") > 0 for node in others)
    assert sum(map(named, others)) > TENSORS
    for node in others:
        reads_right(node, source)
        node.store.assert_sound()


def test_a_clerk_of_the_origin_dies(without_holder):
    others, source = without_holder
    calls = [(node, node.store.start("prefetch", "model@1")) for node in others]
    wait_until(lambda: any(named(node) > 2 for node in others), seconds_max=SECONDS_MAX, pause=0.02)
    clerk = next(node for node in others if named(node) > 2)
    clerk.daemon.kill()
    for node, call in calls:
        _, said = call.communicate(timeout=SECONDS_MAX)
        assert node is clerk or call.returncode == 0, said
    for node in others:
        if node is not clerk:
            reads_right(node, source)
