"""What the tests of what was lost share."""
import json

from nodes import SECONDS_MAX
from weftlib import random_tensors, wait_until, write_model


def source(path, seed, shared=()):
    return write_model(path, {**random_tensors(3, 1 << 20, seed=seed), **dict(shared)}, [("notes.txt", seed.encode())])


def named(store, model):
    """What is said of a model's versions and tags, but for what only a cluster's node has."""
    wanted = ("version", "removed", "removed_at", "time", "message", "metrics", "parents", "tags", "manifest")
    return [{key: one[key] for key in wanted if key in one} for one in store.json("log", model)["versions"]]


def connected(node):
    wait_until(lambda: node.daemon.status()["registry"]["connected"], seconds_max=SECONDS_MAX)
    return node


def brought_back(node, *options, check=True):
    return json.loads(node.store.weft("restore", "--registry", "--json", *options, check=check).stdout)
