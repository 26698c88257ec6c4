"""Nodes at two locations that fetch one version: weftd.8, "Locations"."""
import contextlib

import pytest

from clusterlib import Trunk, Wire, can_make_networks
from nodes import Cluster
from swarmlib import LINK, MODEL_BYTES, all_fetch, reads_right, shape, write_source

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
RECEIVERS = 3  # at each location
CROSSINGS_MAX = 2.5  # copies in one direction; fewer than nodes that get them


@contextlib.contextmanager
def at_two_switches(directory, words):
    """(holder, receivers, the cable between the switches, source of model@1), over slow links. `words` are the locations of
    the receivers. The first RECEIVERS are at the switch of the holder, the others at the second one."""
    with Cluster(directory, peers=True) as cluster:
        holder, *receivers = (cluster.node("--location", word) for word in ["near", *words])
        between = Trunk(cluster.network, [node.host for node in receivers[RECEIVERS:]])
        source = write_source(directory / "source")
        cluster.publish(holder, source, "model")
        shape(cluster.nodes)
        between.shape(LINK)
        yield holder, receivers, between, source


def test_a_version_crosses_between_two_locations_once_or_twice(tmp_path):
    words = ["near"] * RECEIVERS + ["far"] * RECEIVERS
    with at_two_switches(tmp_path, words) as (holder, receivers, between, source):
        before = Wire(between)
        all_fetch(receivers)
        after = Wire(between)
        there, back = (after.sent - before.sent) / MODEL_BYTES, (after.received - before.received) / MODEL_BYTES
        assert 1 <= there <= CROSSINGS_MAX and back <= CROSSINGS_MAX
        for node, word in zip([holder, *receivers], ["near", *words]):
            assert node.daemon.status()["location"] == word
        for node in receivers:
            reads_right(node, source)


@pytest.mark.parametrize("words", [["far", "near", "near", "far", "far", "far"],
                                   ["near", "near", "near", "near", "far", "far"]])
def test_nodes_read_right_beside_one_with_a_wrong_location(tmp_path, words):
    with at_two_switches(tmp_path, words) as (_, receivers, _, source):
        all_fetch(receivers)
        for node in receivers:
            reads_right(node, source)
