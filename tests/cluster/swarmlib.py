"""What tests of swarms share: sources of versions, nodes that fetch one, and how much of it came from where."""
import concurrent.futures
import contextlib
import hashlib

from clusterlib import Wire
from nodes import MODEL_FILE, SECONDS_MAX, Cluster
from weftlib import PATIENCE, random_tensors, wait_until, write_model

MIB = 1 << 20
NODES = 5  # a holder, and others that fetch
TENSORS, TENSOR_BYTES = 24, 2 * MIB
MODEL_BYTES = TENSORS * TENSOR_BYTES
COPIES_MAX = 1.3  # of the version that the holder sends to all
LINK = f"{int(200 / PATIENCE)}mbit"  # slower for a slow machine, so that a test can act while nodes fetch
SLOW_LINK = f"{int(80 / PATIENCE)}mbit"
GIVERS = ("partners", "source", "origin")


def write_source(directory, tensors=TENSORS):
    """A model with one file of weights, in this directory. Its bytes depend on the directory's name."""
    return write_model(directory, random_tensors(tensors, TENSOR_BYTES, seed=directory.name))


def shape(nodes, link=LINK):
    for node in nodes:
        node.host.shape(link)


@contextlib.contextmanager
def swarm_of_nodes(tmp_path, provider="auto"):
    """(holder, other nodes, source of model@1), over slow links and this provider."""
    with Cluster(tmp_path, peers=True) as cluster:
        holder, *others = cluster.some(NODES, "--provider", provider, "--log-level", "info,peers=debug")
        assert provider in ("auto", holder.exchange()["provider"])
        source = write_source(tmp_path / "source")
        cluster.publish(holder, source, "model")
        shape(cluster.nodes)
        yield holder, others, source


def mixed(number):
    """As mix() of src/placement/rendezvous.h."""
    for shift, factor in ((30, 0xbf58476d1ce4e5b9), (27, 0x94d049bb133111eb)):
        number = (number ^ number >> shift) * factor % 2**64
    return number ^ number >> 31


def ranked(holder, others, model="model"):
    """The nodes as they are preferred to introduce others for the version. `others` are all but its publisher."""
    manifest = bytes.fromhex(holder.store.json("log", model)["versions"][0]["manifest"])
    ids = {member["name"]: member["node"] for member in holder.daemon.ask("peers")["peers"]}

    def first_number(digest):
        return int.from_bytes(digest[:8], "big")

    def weight(node):
        return mixed(first_number(manifest) ^ first_number(hashlib.sha256(ids[node.directory.name].encode()).digest()))
    return sorted(others, key=weight, reverse=True)


def directory_nodes(holder, others, model="model"):
    """The two nodes that introduce others for the version, the preferred one first."""
    return ranked(holder, others, model)[:2]


def introduces(node, model="model"):
    return any(one["version"] == f"{model}@1" for one in swarms(node)["introduced"])


def evict(node):
    """Afterwards the node has no fetched bytes. Those of a transfer are in use while its last file is put into the index."""
    wait_until(lambda: node.daemon.status()["fetched"]["transfers"] == 0, seconds_max=SECONDS_MAX, pause=0.01)
    assert node.store.json("evict", "--all")["kept_bytes"] == 0


def fetch(node, model="model"):
    """All of the version, in the background."""
    return node.store.weft("prefetch", f"{model}@1", timeout=SECONDS_MAX)


@contextlib.contextmanager
def fetching(nodes, model="model"):
    """Each node fetches the version beside. At the end of the context all have it."""
    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
        calls = [pool.submit(fetch, node, model) for node in nodes]
        yield
        for call in calls:
            call.result()


def all_fetch(nodes, model="model"):
    """The version, at the same time."""
    with fetching(nodes, model):
        pass


def end(process):
    """The exit code of a fetch, and what it said."""
    _, said = process.communicate(timeout=SECONDS_MAX)
    return process.returncode, said


def swarms(node):
    return node.daemon.status()["swarms"]


def received(node, model="model"):
    """Units of the version that came by the swarm."""
    return sum(of_version(one) for one in swarms(node)["fetched"] if one["version"] == f"{model}@1")


def of_version(fetched):
    return sum(fetched[f"from_{giver}"] for giver in GIVERS)


def has_share(node, share):
    """Of the units of the version that it fetches."""
    return any(one["here"] >= share * one["units"] for one in swarms(node)["fetched"])


def copies(holder, before, size=MODEL_BYTES):
    """Of so many bytes, that the holder has sent."""
    return (Wire(holder.host).sent - before) / size


def reads_right(node, source, model="model"):
    with node.mounted() as mount:
        assert (mount.version(model, 1) / MODEL_FILE).read_bytes() == (source / MODEL_FILE).read_bytes()
