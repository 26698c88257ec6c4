"""Three nodes, each with a daemon and a mount, around one etcd."""
import contextlib

import pytest

from clusterlib import Etcd, Network, can_make_networks
from nodes import Cluster
from power import Machine
from swarmlib import swarm_of_nodes
from threenodes import SECONDS_MAX, Node
from weftlib import wait_until

@pytest.fixture(scope="session")
def networks():
    if not can_make_networks():
        pytest.skip("no network name spaces or no etcd here")


@pytest.fixture
def network(networks):
    with Network() as made:
        yield made


@pytest.fixture
def etcd(network, tmp_path):
    with Etcd(network.host(), tmp_path / "etcd") as running:
        yield running


@pytest.fixture
def nodes(network, etcd, tmp_path):
    with contextlib.ExitStack() as stack:
        origin = tmp_path / "origin"
        origin.mkdir()
        made = [Node(network.host(), etcd, tmp_path, f"n{i}", "--origin", origin) for i in range(3)]
        for node in made:
            stack.enter_context(node.daemon)
            stack.enter_context(node.mount)
        for node in made:
            wait_until(node.connected, seconds_max=SECONDS_MAX)
        yield made


@pytest.fixture
def cluster(tmp_path):
    """Nodes that read from each other, without an origin."""
    with Cluster(tmp_path, peers=True) as made:
        yield made


@pytest.fixture
def three(cluster):
    return cluster.some(3)


@pytest.fixture
def swarm(tmp_path, request):
    """(holder, other nodes, source of model@1), over slow links. The parameter, if any, is the provider of all nodes."""
    with swarm_of_nodes(tmp_path, getattr(request, "param", "auto")) as made:
        yield made


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "machine").mkdir()
    with Machine(tmp_path / "machine") as made:
        yield made
