"""Whoever speaks to a daemon without being one, and what must be true after it."""
import base64
import contextlib
import json
import subprocess

from nodes import HALF_OPEN_SECONDS_MAX, MODEL_FILE, resident
from weftlib import BUILD, PATIENCE, environment, random_tensors, run, wait_until, write_model

HOSTILE_PEER = BUILD / "tests/cluster/weft_hostile_peer"
TENSOR_BYTES = 12 << 20  # of the model
MEMORY_MAX = (32 << 20) * PATIENCE  # more than before, whatever strangers send
CROWD_MEMORY_MAX = (12 << 20) * PATIENCE  # of those who are nowhere
DESCRIPTORS_SPARE = 24  # of connections with other nodes and their tools, that come and go


@contextlib.contextmanager
def staying(node, *command):
    """A program on this node's host that has said "ready" and stays until the end: the process."""
    program = subprocess.Popen([*node.host.inside, *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=environment())
    try:
        assert program.stdout.readline() == b"ready\n"
        yield program
    finally:
        program.kill()
        program.communicate()


@contextlib.contextmanager
def impostor(cluster, node, fault, directories=()):
    """In the place of this node's daemon, which is killed: a peer with its id, address, key and store, and this fault.
    It joins the swarm of the store's version at these directory nodes, or with "whole-lacking" announces the version
    there. At the end the daemon is there again. The process."""
    provider, address = (node.exchange()[name] for name in ("provider", "address"))
    host, port = address.rsplit(":", 1)
    directories = [word for one in directories for word in (node_id(one), one.exchange()["address"])]
    node.daemon.kill()
    stay_member(cluster, address)
    try:
        with staying(node, HOSTILE_PEER, "serve", fault, node.store.path, cluster.key, provider, host, port,
                     *directories) as program:
            yield program
    finally:
        node.daemon.start()


def heard(program):
    """What a hostile peer that stays says that it heard."""
    program.stdin.write(b"\n")
    program.stdin.flush()
    return json.loads(program.stdout.readline())


def node_id(node):
    address = node.exchange()["address"]
    return next(peer["node"] for peer in node.store.json("peers")["peers"] if peer["address"] == address)


def stay_member(cluster, address):
    """The record of the member at this address, once more, without the lease that its daemon has kept."""
    known = json.loads(cluster.etcd.control("get", "", "--prefix", "-w", "json").stdout)["kvs"]
    for record in known:
        key, value = (base64.b64decode(record[name]) for name in ("key", "value"))
        if b"/n/" in key and address.encode() in value:
            cluster.etcd.control("put", key.decode(), text=False, input=value, stdin=None)
            return
    raise AssertionError(f"no member at {address}")


def model_on(cluster, node, seed):
    source = write_model(cluster.directory / "source", random_tensors(4, TENSOR_BYTES // 4, seed=seed))
    cluster.publish(node, source, "model")
    return source


def still_serves(cluster, node, reader, source, memory):
    """After whatever strangers sent: nothing is left of them, and an honest node is given everything."""
    wait_until(lambda: node.exchange()["half_open"] == 0, seconds_max=HALF_OPEN_SECONDS_MAX, pause=0.02)
    assert node.exchange()["windows"] == 0
    assert resident(node) < memory + MEMORY_MAX
    with reader.mounted() as mount:
        assert (mount.version("model", 1) / MODEL_FILE).read_bytes() == (source / MODEL_FILE).read_bytes()
    assert node.exchange()["served_bytes"] > 0


def hostile(node, *words):
    """What a hostile peer on this node's host says that it did."""
    return json.loads(run([*node.host.inside, HOSTILE_PEER, *words]).stdout)
