"""When etcd is gone and its nodes are not."""
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


def test_a_lost_registry_is_not_made_anew_by_its_nodes_and_its_backup_is_followed(tmp_path):
    models = [write_model(tmp_path / f"model{i}", random_tensors(2, 64 << 10, seed=f"lost {i}")) for i in range(3)]
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
            wait_until(lambda node=node: registry_of(node)["connected"], seconds_max=SECONDS_MAX)
            assert node.knows("a@1") and node.knows("a@2")
            wait_until(lambda node=node: any("a@2" in line for line in registry_of(node)["refusals"]),
                       seconds_max=SECONDS_MAX)
        cluster.publish(one, models[2], "b")
        assert two.knows("b@1")
        assert cluster.publish(one, models[2], "a") == "a@3"
        for node in (one, two):
            with node.mounted() as mount:
                for number in (1, 2, 3):
                    assert files_below(mount.version("a", number)) == files_below(models[number - 1])
            node.store.assert_sound()
