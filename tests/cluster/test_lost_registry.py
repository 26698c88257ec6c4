"""When etcd is gone and its nodes are not, they know what it said."""
import json
import os
import shutil
import signal

import pytest

from clusterlib import can_make_networks
from nodes import SECONDS_MAX, Cluster
from restoring import brought_back, connected, named, source
from weftlib import files_below, wait_until

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")


def lose(etcd):
    """Its disk with it; another begins in its place."""
    etcd.kill()
    shutil.rmtree(etcd.directory)
    etcd.start()


def trouble(node):
    return node.daemon.status()["registry"].get("trouble", "")


def has_registry(etcd):
    return "/meta" in etcd.control("get", "--prefix", "--keys-only", "/").stdout


def all_say(nodes, said):
    for node in nodes:
        wait_until(lambda node=node: {model: named(node.store, model) for model in said} == said, seconds_max=SECONDS_MAX)


def test_nodes_outlive_their_registry(tmp_path):
    """Without an origin: what the nodes mirrored is all there is."""
    models = {("a", 1): source(tmp_path / "a1", "a1"), ("a", 2): source(tmp_path / "a2", "a2"),
              ("b", 1): source(tmp_path / "b1", "b1")}
    with Cluster(tmp_path, peers=True) as cluster:
        one, two = connected(cluster.node()), connected(cluster.node())
        for node, ((model, _), path) in zip((one, two, one), models.items()):
            cluster.publish(node, path, model, message=f"{path.name} it is", tag="newest")
        two.store.weft("tag", "a@1", "best")
        two.store.weft("rm", "b@1")
        wait_until(lambda: named(one.store, "b") == named(two.store, "b"), seconds_max=SECONDS_MAX)
        said = {model: named(one.store, model) for model in ("a", "b")}
        all_say([two], said)

        lose(cluster.etcd)
        for node in (one, two):
            wait_until(lambda node=node: "weft restore --registry" in trouble(node), seconds_max=SECONDS_MAX)
        assert not has_registry(cluster.etcd)
        all_say([one, two], said)
        failed = one.store.weft("tag", "a@1", "other", check=False)
        assert failed.returncode != 0 and "restore --registry" in failed.stderr
        with two.mounted("views=hidden") as mount:
            assert files_below(mount.version("a", 1)) == files_below(models["a", 1])

        report = brought_back(one)
        assert (report["versions"], report["removed"], report["tags"], report["problems"]) == (2, 1, 2, [])
        connected(two)
        late = connected(cluster.node())
        all_say([one, two, late], said)
        with late.mounted("views=hidden") as mount:
            for number in (1, 2):
                assert files_below(mount.version("a", number)) == files_below(models["a", number])
        assert cluster.publish(two, source(tmp_path / "a3", "a3"), "a") == "a@3"
        assert cluster.publish(one, source(tmp_path / "b2", "b2"), "b") == "b@2"
        again = brought_back(two)
        assert (again["versions"], again["removed"], again["tags"], again["problems"]) == (0, 0, 0, [])
        for node in (one, two, late):
            node.store.assert_sound()


def test_each_node_adds_what_it_alone_knows(tmp_path):
    """The origin has heard of some, one node of more, the other of most."""
    with Cluster(tmp_path) as cluster:
        one, two = connected(cluster.node()), connected(cluster.node())
        for number in (1, 2):
            cluster.publish(one, source(tmp_path / f"a{number}", f"a{number}"), "a")
        os.kill(one.daemon.pid, signal.SIGSTOP)
        two.store.publish(source(tmp_path / "b1", "b1"), name="b", tag="good")
        two.store.weft("rm", "a@1")
        said = {model: named(two.store, model) for model in ("a", "b")}
        lose(cluster.etcd)
        shutil.rmtree(cluster.origin / "journal")  # what was said since did not get there
        shutil.rmtree(cluster.origin / "versions", ignore_errors=True)
        (cluster.origin / "journal").mkdir()
        os.kill(one.daemon.pid, signal.SIGCONT)
        first = brought_back(two)
        assert (first["versions"], first["removed"], first["tags"], first["problems"]) == (2, 1, 1, [])
        connected(one)
        all_say([one, two], said)
        assert brought_back(one)["versions"] == 0
        all_say([one, two], said)


def test_a_tag_that_one_node_alone_knows_is_not_lost_by_another_registry(tmp_path):
    with Cluster(tmp_path) as cluster:
        one, two = connected(cluster.node()), connected(cluster.node())
        cluster.publish(one, source(tmp_path / "a1", "a1"), "a")
        os.kill(one.daemon.pid, signal.SIGSTOP)
        two.store.weft("tag", "a@1", "best")
        lose(cluster.etcd)
        os.kill(one.daemon.pid, signal.SIGCONT)
        assert brought_back(one)["versions"] == 1
        connected(two)
        said = {"a": named(two.store, "a")}
        assert said["a"][0]["tags"] == ["best"]
        brought_back(two)
        all_say([one, two], said)


def test_a_registry_that_another_cluster_made_is_not_followed(tmp_path):
    with Cluster(tmp_path) as cluster:
        one = connected(cluster.node())
        cluster.publish(one, source(tmp_path / "a1", "a1"), "a")
        os.kill(one.daemon.pid, signal.SIGSTOP)
        lose(cluster.etcd)
        connected(cluster.node())  # a new node, of no cluster: it makes one
        os.kill(one.daemon.pid, signal.SIGCONT)
        wait_until(lambda: "belongs to the cluster" in trouble(one), seconds_max=SECONDS_MAX)
        refused = one.store.weft("restore", "--registry", check=False)
        assert refused.returncode != 0 and "belongs to the cluster" in refused.stderr
        assert one.knows("a@1")
