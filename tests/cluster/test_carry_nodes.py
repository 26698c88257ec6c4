"""A cache of compiled code that one node published, on a node that has none of its bytes."""
import sys

import pytest

from clusterlib import can_make_networks
from weftlib import PATIENCE, wait_until

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
COMPILER = """
import os, pathlib, sys
result = pathlib.Path(sys.argv[1]) / "result"
print("found" if result.exists() else "compiled", flush=True)
if not result.exists():
    result.write_bytes(os.urandom(3 << 20))
"""


def test_the_second_node_compiles_nothing(cluster, tmp_path):
    nodes = cluster.some(2)
    caches = [tmp_path / f"cache{number}" for number in range(2)]
    said = []
    for node, cache in zip(nodes, caches, strict=True):
        said.append(node.store.weft("carry", "c", cache, "--key", "k", "--", sys.executable, "-c", COMPILER, cache))
        if node is nodes[0]:
            model = node.store.json("ls")["models"][0]["model"]
            wait_until(lambda: nodes[1].knows(f"{model}@1"), seconds_max=30 * PATIENCE)
    assert [one.stdout for one in said] == ["compiled\n", "found\n"]
    assert (caches[0] / "result").read_bytes() == (caches[1] / "result").read_bytes()
    assert nodes[1].fetched() >= 3 << 20
    assert "nothing has changed" in said[1].stderr
