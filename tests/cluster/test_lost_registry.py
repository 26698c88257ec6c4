"""When etcd is gone and its nodes are not."""
import json
import shutil

import pytest

from clusterlib import can_make_networks
from nodes import SECONDS_MAX, Cluster
from weftlib import files_below, random_tensors, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")


def registry_of(node):
    return node.daemon.status()["registry"]


def replace(etcd, backup=None):
    """Its disk is lost; one that is empty, or has the backup, is in its place."""
    etcd.kill()
    shutil.rmtree(etcd.directory)
    if backup:
        shutil.copytree(backup, etcd.directory)
    etcd.start()


def backup_of(etcd, path):
    etcd.kill()
    shutil.copytree(etcd.directory, path)
    etcd.start()
    return path


def stops(node, what):
    """Names cannot be changed, and the status and the error say what to do."""
    wait_until(lambda: what in registry_of(node)["lost"], seconds_max=SECONDS_MAX)
    failed = node.store.weft("tag", "a@1", "other", check=False)
    assert failed.returncode != 0 and "weft cluster reconcile" in failed.stderr
    assert any("weft cluster reconcile" in line for line in node.store.weft("status").stdout.splitlines())
    findings = json.loads(node.store.weft("health", "--json", check=False).stdout)["findings"]
    assert ("trouble", "history-lost") in {(one["level"], one["what"]) for one in findings}


def test_a_lost_registry_is_not_made_anew_by_its_nodes_and_its_backup_is_reconciled(tmp_path):
    models = [write_model(tmp_path / f"model{i}", random_tensors(2, 64 << 10, seed=f"lost {i}")) for i in range(4)]
    with Cluster(tmp_path, peers=True) as cluster:
        one, two = cluster.some(2)
        cluster.publish(one, models[0], "a", tag="best")
        backup = backup_of(cluster.etcd, tmp_path / "backup")
        for node in (one, two):  # a node that was refused tries again after a pause
            wait_until(lambda node=node: registry_of(node)["connected"], seconds_max=SECONDS_MAX)
        cluster.publish(two, models[1], "a")

        replace(cluster.etcd)
        for node in (one, two):
            wait_until(lambda node=node: "was lost, or is elsewhere" in registry_of(node).get("trouble", ""),
                       seconds_max=SECONDS_MAX)
        assert "/meta" not in cluster.etcd.control("get", "--prefix", "--keys-only", "/").stdout
        failed = one.store.weft("tag", "a@1", "other", check=False)
        assert failed.returncode != 0 and "was lost, or is elsewhere" in failed.stderr
        with one.mounted() as mount:
            for number in (1, 2):
                assert files_below(mount.version("a", number)) == files_below(models[number - 1])

        replace(cluster.etcd, backup)
        for node in (one, two):
            stops(node, "a@2")
            assert node.knows("a@1") and node.knows("a@2")
        assert one.store.json("cluster", "reconcile", "--dry-run")["returned"] == ["a@2"]
        report = two.store.json("cluster", "reconcile")
        assert report["returned"] == ["a@2"] and report["renumbered"] == [] and report["problems"] == []
        cluster.publish(one, models[2], "b")
        assert two.knows("b@1")
        assert cluster.publish(one, models[2], "a") == "a@3"

        replace(cluster.etcd)  # the same command makes the registry again
        for node in (one, two):
            wait_until(lambda node=node: "was lost, or is elsewhere" in registry_of(node).get("trouble", ""),
                       seconds_max=SECONDS_MAX)
        assert sorted(one.store.json("cluster", "reconcile")["returned"]) == ["a@1", "a@2", "a@3", "b@1"]
        assert cluster.publish(two, models[3], "a") == "a@4"
        for node in (one, two):
            with node.mounted() as mount:
                for number in (1, 2, 3, 4):
                    assert files_below(mount.version("a", number)) == files_below(models[number - 1])
            node.store.assert_sound()
