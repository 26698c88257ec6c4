"""A swarm of nodes that fetch one version, and what its tests look at."""
import concurrent.futures
import contextlib
import hashlib

from clusterlib import Wire
from nodes import MODEL_FILE, SECONDS_MAX, Cluster
from weftlib import random_tensors, wait_until, write_model

MIB = 1 << 20
NODES = 5  # a holder, and others that fetch
TENSORS, TENSOR_BYTES = 24, 2 * MIB
COPIES_MAX = 1.3  # of the version that the holder sends to all
GIVERS = ("partners", "source", "origin")


@contextlib.contextmanager
def swarm_of_nodes(tmp_path):
    """(holder, other nodes, source of model@1), over slow links."""
    with Cluster(tmp_path, peers=True) as cluster:
        holder, *others = (cluster.node("--log-level", "info,peers=debug") for _ in range(NODES))
        source = write_model(tmp_path / "source", random_tensors(TENSORS, TENSOR_BYTES, seed="swarm"))
        cluster.publish(holder, source, "model")
        for node in cluster.nodes:
            node.host.shape("200mbit")
        yield holder, others, source


def fetch(node, model="model"):
    """All of the version, in the background."""
    return node.store.weft("prefetch", f"{model}@1", timeout=SECONDS_MAX)


def swarms(node):
    return node.daemon.status()["swarms"]


def received(node, model="model"):
    """Units of the version that came by the swarm."""
    return sum(of_version(one) for one in swarms(node)["fetched"] if one["version"] == f"{model}@1")


def of_version(fetched):
    return sum(fetched[f"from_{giver}"] for giver in GIVERS)


def evict(node):
    """Afterwards the node has no fetched bytes. Those of a transfer are in use while its last file is put into the index."""
    wait_until(lambda: node.daemon.status()["fetched"]["transfers"] == 0, seconds_max=SECONDS_MAX, pause=0.01)
    assert node.store.json("evict", "--all")["kept_bytes"] == 0


def ranked(holder, others, model="model"):
    """The nodes as they are preferred to introduce others for the version. `others` are all but its publisher."""
    manifest = bytes.fromhex(holder.store.json("log", model)["versions"][0]["manifest"])
    ids = {member["name"]: member["node"] for member in holder.daemon.ask("peers")["peers"]}

    def weight(node):
        return hashlib.sha256(manifest + ids[node.directory.name].encode()).digest()
    return sorted(others, key=weight, reverse=True)


def directory_nodes(holder, others, model="model"):
    """The two nodes that introduce others for the version, the preferred one first."""
    return ranked(holder, others, model)[:2]


def introduces(node, model="model"):
    return any(one["version"] == f"{model}@1" for one in swarms(node)["introduced"])


def copies(holder, before):
    return (Wire(holder.host).sent - before) / (TENSORS * TENSOR_BYTES)


def reads_right(node, source, model="model"):
    with node.mounted() as mount:
        assert (mount.version(model, 1) / MODEL_FILE).read_bytes() == (source / MODEL_FILE).read_bytes()


@contextlib.contextmanager
def all_fetch(nodes):
    """Each node fetches the version; the calls that wait for it."""
    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
        yield [pool.submit(fetch, node) for node in nodes]
