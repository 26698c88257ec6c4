"""The origin gives back the space of removed versions, and damage there is repaired from nodes, whatever the nodes do."""
import json
import random
import subprocess
import time

import pytest

from clusterlib import can_make_networks
from nodes import SECONDS_MAX, Cluster
from weftlib import WEFT, Store, environment, files_below, random_tensors, run, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")


def source(path, seed, shared=()):
    return write_model(path, {**random_tensors(2, 1 << 18, seed=seed), **dict(shared)}, [("notes.txt", seed.encode())])


def collected(node, *options, check=True):
    return json.loads(node.store.weft("gc", "--origin", "--json", *options, check=check).stdout)


def packs(cluster):
    return {path.name for path in (cluster.origin / "packs").iterdir()}


def assert_origin_has(cluster, models, path):
    """What a restore from the origin alone gives back."""
    report = json.loads(run([WEFT, "--store", path, "restore", cluster.origin, "--json"]).stdout)
    assert report["problems"] == [] and report["versions"] == len(models)
    store = object.__new__(Store)
    store.path = path
    for number, (spec, files) in enumerate(sorted(models.items())):
        store.weft("export", spec, path.parent / f"{path.name}-{number}")
        assert files_below(path.parent / f"{path.name}-{number}") == files_below(files)


@pytest.fixture
def origin(tmp_path):
    """A cluster whose nodes read from its origin alone."""
    with Cluster(tmp_path) as made:
        yield made


def test_what_removed_versions_alone_needed_goes(origin, tmp_path):
    one, two = origin.some(2)
    shared = random_tensors(2, 1 << 18, seed="shared", prefix="both")
    kept, gone = source(tmp_path / "kept", "kept", shared), source(tmp_path / "gone", "gone")
    origin.publish(one, kept, "kept")
    before = packs(origin)
    origin.publish(one, gone, "gone")
    both = packs(origin)
    assert both > before
    two.store.weft("rm", "gone@1")
    assert collected(two)["versions_in_grace"] == 1 and packs(origin) == both
    would = collected(two, "--grace", "0s", "--dry-run")
    assert would["packs_freed"] == 1 and packs(origin) == both
    done = collected(two, "--grace", "0s")
    assert (done["packs_freed"], done["manifests_freed"], done["versions"]) == (1, 1, 1)
    assert packs(origin) == before
    assert two.store.weft("undelete", "gone@1", check=False).returncode == 1
    wait_until(lambda: not one.knows("gone@1"), seconds_max=SECONDS_MAX)
    one.store.weft("undelete", "gone@1")  # it has the bytes, and writes them again
    one.store.weft("stage-out")
    assert_origin_has(origin, {"kept@1": kept, "gone@1": gone}, tmp_path / "back")


def test_publishes_beside_collections_lose_nothing(origin, tmp_path):
    """Each version shares tensors with a removed one, or is a removed one once more. Packs of removed versions are
    rewritten meanwhile, because the shared tensors are needed."""
    one, two = origin.some(2)
    origin.publish(one, source(tmp_path / "first", "first"), "first")
    one.store.weft("stage-out")
    wait_until(lambda: two.knows("first@1"), seconds_max=SECONDS_MAX)
    collecting = subprocess.Popen(["sh", "-c", 'while :; do "$@" || exit 1; done', "sh", *map(str, (
        WEFT, "--store", two.store.path, "gc", "--origin", "--grace", "0s", "-q"))], env=environment())
    models = {}
    try:
        shared = random_tensors(2, 1 << 18, seed="shared", prefix="both")
        for turn in range(6):
            old = source(tmp_path / f"old{turn}", f"old{turn}", shared)
            new = source(tmp_path / f"new{turn}", f"new{turn}", shared)
            origin.publish(one, old, f"old{turn}")
            one.store.weft("rm", f"old{turn}@1")
            one.store.publish(new, name=f"new{turn}")
            one.store.publish(old, name=f"again{turn}")
            models |= {f"new{turn}@1": new, f"again{turn}@1": old}
            if turn % 2:
                one.store.weft("rm", f"again{turn}@1")
                del models[f"again{turn}@1"]
        one.store.weft("stage-out")
        assert collecting.poll() is None
        models["first@1"] = tmp_path / "first"
    finally:
        collecting.kill()
        collecting.wait()
    assert_origin_has(origin, models, tmp_path / "back")
    assert collected(two, "--grace", "0s")["versions"] == len(models)
    assert_origin_has(origin, models, tmp_path / "again")


def test_a_partly_dead_pack_is_rewritten(origin, tmp_path):
    one, two = origin.some(2)
    shared = random_tensors(2, 1 << 18, seed="shared", prefix="both")
    origin.publish(one, source(tmp_path / "old", "old", shared), "old")
    (old,) = {path for path in (origin.origin / "packs").glob("*.pack") if path.stat().st_size > 1 << 20}
    origin.publish(one, source(tmp_path / "new", "new", shared), "new")
    one.store.weft("rm", "old@1")
    one.store.weft("stage-out")
    before = sum(path.stat().st_blocks for path in (origin.origin / "packs").iterdir())
    assert collected(two, "--grace", "0s", "--dry-run")["packs_rewritten"] == 1 and old.exists()
    done = collected(two, "--grace", "0s")
    assert done["packs_rewritten"] == 1 and done["dead_bytes"] < 100 and not old.exists()  # a short text
    after = sum(path.stat().st_blocks for path in (origin.origin / "packs").iterdir())
    assert before - after > 2 * (240 << 10) / 512  # two tensors of 256 KiB
    two.store.weft("prefetch", "new@1")
    two.store.assert_sound()
    assert_origin_has(origin, {"new@1": tmp_path / "new"}, tmp_path / "back")
    assert collected(two, "--grace", "0s")["packs_rewritten"] == 0
    assert one.store.json("fsck", "--origin")["clean"]


def test_killed_collections_are_completed_later(origin, tmp_path):
    one, two = origin.some(2)
    kept = source(tmp_path / "kept", "kept")
    origin.publish(one, kept, "kept")
    before = packs(origin)
    for turn in range(4):
        origin.publish(one, source(tmp_path / f"gone{turn}", f"gone{turn}"), f"gone{turn}")
        one.store.weft("rm", f"gone{turn}@1")
        killed = subprocess.Popen([str(word) for word in (WEFT, "--store", two.store.path, "gc", "--origin", "--grace", "0s")],
                                  env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.Random(turn).uniform(0, 0.1))
        two.daemon.kill()
        killed.wait()
        two.daemon.start()
        wait_until(lambda: two.daemon.status()["registry"]["connected"], seconds_max=SECONDS_MAX)
    collected(two, "--grace", "0s")
    assert packs(origin) == before
    assert_origin_has(origin, {"kept@1": kept}, tmp_path / "back")


def test_a_registry_that_lost_history_frees_nothing(origin, tmp_path):
    one = origin.node()
    origin.publish(one, source(tmp_path / "a", "a"), "a")
    record = next((origin.origin / "journal").iterdir())
    one.store.weft("rm", "a@1")
    one.store.weft("stage-out")
    before = packs(origin)
    (tmp_path / "other").mkdir()
    with Cluster(tmp_path / "other", origin=tmp_path / "elsewhere") as other:
        stranger = other.node()
        other.publish(stranger, source(tmp_path / "b", "b"), "b")
        foreign = next((other.origin / "journal").iterdir())
        (origin.origin / "journal" / foreign.name).write_bytes(foreign.read_bytes())
    failed = one.store.weft("gc", "--origin", "--grace", "0s", check=False)
    assert failed.returncode == 1 and "b@1" in failed.stderr and "lost history" in failed.stderr
    assert packs(origin) == before and record.exists()


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)


@pytest.fixture
def both(tmp_path):
    """Two nodes that read from each other, and an origin for both."""
    with Cluster(tmp_path, origin=tmp_path / "origin", peers=True) as cluster:
        yield cluster.some(2)


def test_damage_at_the_origin_is_repaired_from_the_node_that_has_the_bytes(both, tmp_path):
    publisher, other = both
    cluster = publisher.cluster
    model = source(tmp_path / "model", "model")
    cluster.publish(publisher, model, "model")
    publisher.store.weft("stage-out")
    assert other.store.json("fsck", "--origin")["clean"]
    for folder, ending in (("packs", ".pack"), ("packs", ".toc"), ("manifests", ""), ("places", ""), ("journal", "")):
        flip(next(path for path in (cluster.origin / folder).iterdir() if path.name.endswith(ending)))
        found = other.store.weft("fsck", "--origin", check=False)
        assert found.returncode == 1 and str(cluster.origin / folder) in found.stdout
        assert "repaired: " in other.store.weft("fsck", "--origin", "--repair").stdout
        assert other.store.json("fsck", "--origin")["clean"]
    assert_origin_has(cluster, {"model@1": model}, tmp_path / "back")


def test_damage_that_no_node_can_repair_is_named(both, tmp_path):
    publisher, other = both
    cluster = publisher.cluster
    cluster.publish(publisher, source(tmp_path / "model", "model"), "model")
    publisher.daemon.kill()
    flip(next((cluster.origin / "packs").glob("*.pack")))
    done = other.store.weft("fsck", "--origin", "--repair", check=False)
    assert done.returncode == 1 and "; not repaired: " in done.stdout


def test_a_purged_version_goes_everywhere_and_from_an_absent_node_when_it_comes_back(origin, tmp_path):
    one, two, three = origin.some(3)
    shared = random_tensors(2, 1 << 18, seed="shared", prefix="both")
    kept = source(tmp_path / "kept", "kept", shared)
    origin.publish(one, kept, "kept")
    origin.publish(one, source(tmp_path / "gone", "gone", shared), "gone", parent="kept@1")
    origin.publish(one, source(tmp_path / "alone", "alone"), "alone")
    for node in (two, three):
        node.store.weft("prefetch", "alone@1")
    three.daemon.kill()
    wait_until(lambda: len(two.daemon.ask("peers")["peers"]) == 2, seconds_max=SECONDS_MAX)
    before = {node: sum(path.stat().st_blocks for path in (node.store.path / "packs").iterdir()) for node in (one, three)}
    report = two.store.json("rm", "--purge", "gone@1", "alone@1")
    assert report["purged"] == [{"model": name, "version": 1} for name in ("gone", "alone")] and report["problems"] == []
    assert report["shared_with"] == [{"model": "kept", "version": 1}]
    assert report["nodes"] == ["node1"] and report["absent"] == ["node3"]
    assert report["origin_bytes_freed"] > 0 and report["origin_dead_bytes"] == 0

    def freed(node):
        return sum(path.stat().st_blocks for path in (node.store.path / "packs").iterdir()) < before[node]

    wait_until(lambda: freed(one), seconds_max=SECONDS_MAX)
    assert not freed(three)
    three.daemon.start()
    wait_until(lambda: not three.knows("gone@1"), seconds_max=SECONDS_MAX)
    wait_until(lambda: freed(three), seconds_max=SECONDS_MAX)
    three.daemon.kill()
    three.daemon.start()
    wait_until(lambda: three.daemon.status()["registry"]["connected"], seconds_max=SECONDS_MAX)
    for node in (one, two, three):
        failed = node.store.weft("undelete", "gone@1", check=False)
        assert failed.returncode == 1 and failed.stderr.count("\n") == 1
        assert "gone@1: it was purged at 2" in failed.stderr and failed.stderr.endswith("by root on node node2\n")
        node.store.assert_sound()
    assert two.store.json("rm", "--purge", "gone@1", "alone@1")["purged"] == report["purged"]  # again, as after a failure
    assert_origin_has(origin, {"kept@1": kept}, tmp_path / "back")
