"""Versions of another site come into a cluster by one node, and all nodes have them with their numbers."""
import json

import pytest

from clusterlib import can_make_networks
from nodes import SECONDS_MAX, Cluster
from weftlib import WEFT, Mount, Store, assert_refused, files_below, random_tensors, run, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")

SAME = ("version", "time", "message", "metrics", "parents", "tags", "manifest")
SPECS = [("bert", 1), ("bert", 2), ("org/tuned", 1)]


def named(store, model):
    return [{key: one[key] for key in SAME if key in one} for one in store.json("log", model)["versions"]]


def take_over(node, bundle, *words, check=True):
    return run([WEFT, "--store", node.store.path, "bundle", "import", bundle, *words], check=check)


def test_a_bundle_of_another_site(tmp_path):
    site = Store(tmp_path / "site")
    shared = random_tensors(2, 1 << 20, seed="shared")
    for number in (1, 2, 3):
        source = write_model(tmp_path / f"s{number}", shared | random_tensors(1, 1 << 18, seed=f"{number}", prefix="own"))
        site.publish(source, name="org/tuned" if number == 3 else "bert", message=f"run {number}")
    site.weft("tag", "bert@2", "prod")
    site.weft("bundle", "create", "--all", tmp_path / "b")
    with Mount(site, tmp_path / "site-mnt") as mount:
        files = {spec: files_below(mount.version(*spec)) for spec in SPECS}
    (tmp_path / "cluster").mkdir()
    with Cluster(tmp_path / "cluster", peers=True) as cluster:
        one, two = cluster.some(2)
        report = json.loads(take_over(one, tmp_path / "b", "--json").stdout)
        assert (report["imported"], report["tags"], report["left"]) == (3, 1, [])
        for model in ("bert", "org/tuned"):
            assert named(one.store, model) == named(site, model)
            wait_until(lambda: two.knows(f"{model}@1"), seconds_max=SECONDS_MAX)
            wait_until(lambda: named(two.store, model) == named(site, model), seconds_max=SECONDS_MAX)
        with two.mounted() as mount:
            for spec, expected in files.items():
                assert files_below(mount.version(*spec)) == expected
        assert json.loads(take_over(two, tmp_path / "b", "--json").stdout)["known"] == 3
        cluster.publish(two, tmp_path / "s3", "bert")
        assert one.store.json("info", "bert")["version"] == 3  # the number after those of the bundle
        site.weft("tag", "bert@1", "other")
        site.publish(tmp_path / "s1", name="bert")
        site.weft("bundle", "create", tmp_path / "c", "bert@3")
        assert_refused(take_over(one, tmp_path / "c", check=False), "bert@3")
