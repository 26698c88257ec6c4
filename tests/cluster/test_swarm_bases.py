"""Nodes that fetch a version at once, and have the version before it, give each other its differences."""
import numpy
import pytest

from clusterlib import Wire, can_make_networks
from nodes import MODEL_FILE, SECONDS_MAX
from readers import Reading
from swarmlib import COPIES_MAX, MIB, NODES, all_fetch, copies, end, of_version, shape, swarms
from test_sparse import LARGE_BYTES, publish_partly_changed, sparse, step, written

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
TENSORS, TENSOR_BYTES = 8, 8 * MIB
SHARE = 0.15  # of the elements that a step changes; the differences have about 4 MiB
CHANGED_BYTES = LARGE_BYTES // 4  # of the tensor that changes in part
# Of so few units, that the holder sends to all: some twice, as all begin at once. 4 if each node gets its own, and 4 for
# one copy of the whole version.
CHANGED_COPIES_MAX = 2.5
SLOW_LINK = "50mbit"  # so that the nodes begin before the first of them ends


@pytest.fixture(name="nodes")
def nodes_with_slow_links(cluster):
    """(holder, other nodes)."""
    holder, *others = cluster.some(NODES)
    shape(cluster.nodes)
    return holder, others


def weights():
    random = numpy.random.default_rng(1)
    return {f"layer.{number}.weight": random.integers(0, 1 << 16, TENSOR_BYTES // 2, numpy.uint16)
            for number in range(TENSORS)}


def slow_down(nodes):
    for node in nodes:
        node.host.shape(SLOW_LINK)


def second(node):
    """What a node has received of model@2 by its swarm."""
    return next(one for one in swarms(node)["fetched"] if one["version"] == "model@2")


def test_the_holder_sends_the_differences_of_a_version_about_once(cluster, nodes, tmp_path):
    holder, others = nodes
    tensors = weights()
    cluster.publish(holder, written(tmp_path / "1", tensors), "model")
    all_fetch(others)
    source = written(tmp_path / "2", step(tensors, 2, SHARE))
    cluster.publish(holder, source, "model")
    slow_down(cluster.nodes)
    with Reading(others) as reading:
        before = Wire(holder.host).sent
        reading.start(lambda mount: ["cmp", source / MODEL_FILE, mount.version("model", 2) / MODEL_FILE])
        assert reading.problems(SECONDS_MAX) == []
        sent = Wire(holder.host).sent - before
    given = [sparse(node)["version_given_bytes"] for node in others]
    assert 0 < max(given) < TENSORS * TENSOR_BYTES / 5
    assert sent <= COPIES_MAX * max(given)
    for node in others:
        now = sparse(node)
        assert (now["base"], now["version"]) == ("model@1", "model@2")
        assert now["plain"] == now["failed"] == 0
        assert of_version(second(node)) > second(node)["units"] / 2
        node.store.assert_sound()
    assert sum(second(node)["from_partners"] for node in others) > 0


def test_chunks_that_did_not_change_are_asked_of_no_node(cluster, nodes, tmp_path):
    """The others have nothing in common with the base, and come as plain bytes."""
    holder, others = nodes
    _, source = publish_partly_changed(lambda path: cluster.publish(holder, path, "model"), tmp_path)
    all_fetch(others)
    slow_down(cluster.nodes)
    before = Wire(holder.host).sent
    for process in [node.store.start("prefetch", "model@2") for node in others]:
        code, said = end(process)
        assert code == 0, said
    assert copies(holder, before, CHANGED_BYTES) <= CHANGED_COPIES_MAX
    for node in others:
        now = sparse(node)
        assert now["version_same_bytes"] > 0.6 * LARGE_BYTES and now["failed"] == 0
        assert of_version(second(node)) * MIB > CHANGED_BYTES / 2
        with node.mounted() as mount:
            assert (mount.version("model", 2) / MODEL_FILE).read_bytes() == (source / MODEL_FILE).read_bytes()
