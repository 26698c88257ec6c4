"""Whoever speaks to a daemon without being one, and what must be true after it."""
import json

from nodes import CLOSED_SECONDS_MAX, MODEL_FILE, resident
from weftlib import BUILD, PATIENCE, random_tensors, run, wait_until, write_model

HOSTILE_PEER = BUILD / "tests/cluster/weft_hostile_peer"
TENSOR_BYTES = 12 << 20  # of the model
MEMORY_MAX = (32 << 20) * PATIENCE  # more than before, whatever strangers send
CROWD_MEMORY_MAX = (12 << 20) * PATIENCE  # of those who are nowhere
DESCRIPTORS_SPARE = 24  # of connections with other nodes and their tools, that come and go


def model_on(cluster, node, seed):
    source = write_model(cluster.directory / "source", random_tensors(4, TENSOR_BYTES // 4, seed=seed))
    cluster.publish(node, source, "model")
    return source


def still_serves(cluster, node, reader, source, memory):
    """After whatever strangers sent: nothing is left of them, and an honest node is given everything."""
    wait_until(lambda: node.exchange()["half_open"] == 0, seconds_max=CLOSED_SECONDS_MAX, pause=0.02)
    assert node.exchange()["windows"] == 0
    assert resident(node) < memory + MEMORY_MAX
    with reader.mounted() as mount:
        assert (mount.version("model", 1) / MODEL_FILE).read_bytes() == (source / MODEL_FILE).read_bytes()
    assert node.exchange()["served_bytes"] > 0


def hostile(node, *words):
    """What a hostile peer on this node's host says that it did."""
    return json.loads(run([*node.host.inside, HOSTILE_PEER, *words]).stdout)
