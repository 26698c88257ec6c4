"""`weft node`: nodes are listed by name when they are absent, too; a drained node may go; a removed one is forgotten."""
import pytest

from clusterlib import can_make_networks
from nodes import SECONDS_MAX, Cluster
from weftlib import files_below, random_tensors, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")


def nodes_of(node):
    """By name."""
    return {one["name"]: one for one in node.store.json("node", "list")["nodes"]}


def is_absent(node, name):
    return nodes_of(node)[name]["state"] == "absent"


def model(tmp_path, seed):
    return write_model(tmp_path / seed, random_tensors(1, 50_000, seed=seed))


def test_drain_to_peers_and_remove(three, cluster, tmp_path):
    first, second, third = three
    name = third.directory.name
    cluster.publish(third, model(tmp_path, "a"), "a")
    assert nodes_of(first)[name]["owned_versions"] == 1 and nodes_of(first)[name]["owned_bytes"] > 0
    refused = first.store.weft("node", "remove", name, check=False)
    assert refused.returncode == 1 and "is a member" in refused.stderr
    report = first.store.json("node", "drain", name)
    assert report["name"] == name and report["versions"] == 1 and report["to"]
    assert first.store.json("node", "drain", name)["versions"] == 0  # repeated, it finds nothing
    assert nodes_of(first)[name]["owned_versions"] == 0
    third.daemon.stop()
    wait_until(lambda: is_absent(first, name), seconds_max=SECONDS_MAX)
    assert first.store.json("node", "remove", name)["lost"] == []
    wait_until(lambda: name not in nodes_of(second), seconds_max=SECONDS_MAX)
    assert second.knows("a@1")
    second.holds("a@1")


def test_copies_on_drained_nodes_do_not_count(three, cluster, tmp_path):
    last = three[2]
    by_name = {node.directory.name: node for node in three}
    source = model(tmp_path, "d")
    cluster.publish(last, source, "d")
    (second,) = three[0].store.json("node", "drain", last.directory.name)["to"]
    report = three[0].store.json("node", "drain", second)
    (third,) = set(by_name) - {second, last.directory.name}
    assert report["versions"] == 1 and report["to"] == [third]
    last.daemon.stop()
    by_name[second].daemon.stop()
    by_name[third].store.weft("export", "d@1", tmp_path / "back")
    assert files_below(tmp_path / "back") == files_below(source)
    last.daemon.start()  # in service again
    by_name[second].daemon.start()
    wait_until(lambda: last.store.weft("node", "drain", third, check=False).returncode == 0, seconds_max=SECONDS_MAX)


def test_remove_gives_up_versions_with_force_only(three, cluster, tmp_path):
    first, second, third = three
    name = third.directory.name
    cluster.publish(third, model(tmp_path, "b"), "b")
    third.daemon.stop()
    wait_until(lambda: is_absent(first, name), seconds_max=SECONDS_MAX)
    for command in ("remove", "drain"):
        refused = first.store.weft("node", command, name, check=False)
        assert refused.returncode == 1 and name in refused.stderr
    assert "b@1" in first.store.weft("node", "remove", name, check=False).stderr
    assert first.store.json("node", "remove", name, "--force")["lost"] == ["b@1"]
    wait_until(lambda: not second.knows("b@1"), seconds_max=SECONDS_MAX)
    assert "node" in first.store.weft("node", "remove", name, check=False).stderr  # it is not known any more
    assert second.store.json("status")["lost"] == 1


def test_drain_to_the_origin(networks, tmp_path):
    with Cluster(tmp_path) as cluster:
        first = cluster.node()
        cluster.publish(first, model(tmp_path, "c"), "c")
        drained = first.store.weft("node", "drain")
        assert f"{first.directory.name} may go" in drained.stdout
        assert first.store.json("node", "list")["nodes"][0]["owned_versions"] == 0
