"""Where a version is when its publish is answered: in memory, on the node's disk or at the origin, as an option, the
draft's .weft.json or the mount says."""
import json
import os

import pytest

from memorylib import FILE, events_since_the_start, holding_up_the_flush, newest, write_weights
from nodes import SECONDS_MAX, Cluster
from weftlib import wait_until

WHERE = ["memory", "local", "origin"]


@pytest.fixture
def cluster(networks, tmp_path):
    """Its nodes have an origin."""
    with Cluster(tmp_path, origin=tmp_path / "origin", peers=True) as made:
        yield made


def write_draft(mount, source, **facts):
    (mount / "new/m").mkdir()
    (mount / "new/m" / FILE).write_bytes((source / FILE).read_bytes())
    if facts:
        (mount / "new/m/.weft.json").write_text(json.dumps(facts))


def publish(way, where, node, source):
    """By the option of `weft import`, or by a rename in new/."""
    if way == "option":
        node.store.publish(source, name="m", durability=where)
        return
    other = "local" if where == "memory" else "memory"  # what the draft says goes before what the mount says
    with node.mounted(f"publish,durability={where if way == 'mount' else other}") as mount:
        write_draft(mount, source, **({} if way == "mount" else {"durability": where}))
        os.rename(mount / "new/m", mount / "new/m@")


def shown(node):
    """What log, ls, status and events say of m@1: its durability twice, versions in memory, the events."""
    events = events_since_the_start(node.store, 1 + node.store.json("status")["in_memory"])
    return (newest(node.store, "m")["durability"], node.store.json("ls", "m")["versions"][0]["durability"],
            node.store.json("status")["in_memory"], [event["event"] for event in events if event["model"] == "m"])


def is_at_origin(cluster, source):
    size = (source / FILE).stat().st_size
    return any(path.stat().st_size >= size for path in cluster.origin.rglob("*") if path.is_file())


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("way", ["option", "weft.json", "mount"])
def test_durability(way, where, cluster, tmp_path):
    node, source = cluster.node(), write_weights(tmp_path / "source", 1, mib=2)
    if where == "memory":
        with holding_up_the_flush(node, tmp_path):
            publish(way, where, node, source)
            assert shown(node) == ("memory", "memory", 1, ["publish", "memory"])
            assert "memory    1 version" in node.store.weft("status", "--all").stdout
        node.store.weft("wait", "m", "--durable", "--timeout", str(SECONDS_MAX))
        assert [event["event"] for event in events_since_the_start(node.store, 3)] == ["publish", "memory", "durable"]
        wait_until(lambda: newest(node.store, "m")["durability"] != "memory", seconds_max=SECONDS_MAX)
        return
    publish(way, where, node, source)
    if where == "origin":
        assert is_at_origin(cluster, source)
        assert shown(node) == ("origin", "origin", 0, ["publish"])
    else:
        durability, listed, in_memory, events = shown(node)  # the origin gets it soon
        assert {durability, listed} <= {"local", "origin"} and (in_memory, events) == (0, ["publish"])
