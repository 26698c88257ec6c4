"""When etcd and all nodes are gone, the origin alone gives back what the cluster said and stored."""
import json
import shutil
import signal
import subprocess
import time

import pytest

from clusterlib import can_make_networks
from nodes import SECONDS_MAX, Cluster
from weftlib import PATIENCE, WEFT, Mount, Store, environment, files_below, random_tensors, run, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")


def source(path, seed, shared=()):
    return write_model(path, {**random_tensors(3, 1 << 20, seed=seed), **dict(shared)}, [("notes.txt", seed.encode())])


def restored(origin, path):
    """The store that was made, and what it said."""
    report = json.loads(run([WEFT, "--store", path, "restore", origin, "--json"]).stdout)
    return store_at(path), report


def store_at(path):
    """One that is there."""
    store = object.__new__(Store)
    store.path = path
    return store


def named(store, model):
    """What is said of a model's versions and tags, but for what only a cluster's node has."""
    wanted = ("version", "removed", "removed_at", "time", "message", "metrics", "parents", "tags", "manifest")
    return [{key: one[key] for key in wanted if key in one} for one in store.json("log", model)["versions"]]


def tree(mount, specs):
    return {spec: files_below(mount.version(*spec)) for spec in specs}


def records(origin):
    return {path.name for path in (origin / "journal").iterdir()}


def test_everything_but_the_origin_is_lost(tmp_path):
    with Cluster(tmp_path) as cluster:
        one, two = cluster.some(2)
        shared = random_tensors(2, 1 << 20, seed="shared", prefix="both")
        cluster.publish(one, source(tmp_path / "a1", "a1", shared), "org/a", message="the first", tag="best")
        cluster.publish(two, source(tmp_path / "a2", "a2", shared), "org/a", parent="org/a@1", metric="loss=0.5")
        cluster.publish(one, source(tmp_path / "a3", "a3", shared), "org/a", parent="org/a@2")
        cluster.publish(two, source(tmp_path / "b1", "b1"), "b", parent="org/a@3")
        one.store.weft("tag", "org/a@3", "best")
        two.store.weft("tag", "org/a@1", "first")
        two.store.weft("tag", "org/a@2", "moved")
        one.store.weft("tag", "--delete", "org/a", "first")
        two.store.weft("tag", "org/a@3", "moved")
        two.store.weft("rm", "--force", "org/a@2")
        for node in (one, two):
            node.store.weft("stage-out")  # also what was said
        wait_until(lambda: named(one.store, "org/a") == named(two.store, "org/a"), seconds_max=SECONDS_MAX)
        with one.mounted() as mount:
            specs = [("org/a", 1), ("org/a", 3), ("b", 1)]
            before = tree(mount, specs)
        said = {model: named(one.store, model) for model in ("org/a", "b")}
        lineage = one.store.json("lineage", "b")
        told = records(cluster.origin)
        assert sum(name.endswith(".rm") for name in told) == 1
    for gone in (one.directory, two.directory, tmp_path / "etcd"):
        shutil.rmtree(gone)

    back, report = restored(cluster.origin, tmp_path / "back")
    assert report["restored"] and report["problems"] == []
    assert (report["models"], report["versions"], report["removed"], report["tags"]) == (2, 3, 1, 2)
    assert {model: named(back, model) for model in said} == said
    assert back.json("lineage", "b") == lineage
    with Mount(back, tmp_path / "mnt") as mount:
        assert tree(mount, specs) == before
    back.assert_sound()
    assert records(cluster.origin) == told
    back.publish(source(tmp_path / "a4", "a4"), name="org/a")
    assert back.json("log", "org/a")["versions"][0]["version"] == 4


def connected(node):
    wait_until(lambda: node.daemon.status()["registry"]["connected"], seconds_max=SECONDS_MAX)
    return node


def brought_back(node, *options, check=True):
    return json.loads(node.store.weft("restore", "--registry", "--json", *options, check=check).stdout)


def test_a_registry_that_is_lost_is_filled_from_the_origin(tmp_path):
    """A new etcd, and new nodes with empty stores, beside the origin of the old ones."""
    models = {("org/a", 1): source(tmp_path / "a1", "a1"), ("org/a", 2): source(tmp_path / "a2", "a2"),
              ("org/a", 3): source(tmp_path / "a3", "a3"), ("b", 1): source(tmp_path / "b1", "b1")}
    with Cluster(tmp_path) as cluster:
        one = connected(cluster.node())
        for (model, _), path in models.items():
            cluster.publish(one, path, model, message=f"{path.name} it is")
        one.store.weft("tag", "org/a@1", "best")
        one.store.weft("tag", "org/a@3", "gone")
        one.store.weft("tag", "--delete", "org/a", "gone")
        one.store.weft("rm", "--force", "org/a@2")
        one.store.weft("rm", "--force", "b@1")
        one.store.weft("stage-out")
        said = {model: named(one.store, model) for model in ("org/a", "b")}
    for gone in (one.directory, tmp_path / "etcd"):
        shutil.rmtree(gone)

    with Cluster(tmp_path, origin=cluster.origin) as cluster:
        first, second = connected(cluster.node()), connected(cluster.node())
        report = brought_back(first)
        assert (report["versions"], report["removed"], report["tags"], report["models"]) == (2, 2, 1, 2)
        assert report["problems"] == []
        wait_until(lambda: second.knows("org/a@3"), seconds_max=SECONDS_MAX)
        late = cluster.node()  # reads the whole list, the others were told one by one
        wait_until(lambda: late.knows("org/a@3"), seconds_max=SECONDS_MAX)
        for node in (first, second, late):
            wait_until(lambda node=node: {model: named(node.store, model) for model in said} == said,
                       seconds_max=SECONDS_MAX)
        with second.mounted() as mount:
            for number in (1, 3):
                assert files_below(mount.version("org/a", number)) == files_below(models["org/a", number])
        cluster.publish(second, source(tmp_path / "a4", "a4"), "org/a")
        cluster.publish(second, source(tmp_path / "b2", "b2"), "b")
        assert [one["version"] for one in second.store.json("log", "org/a")["versions"]][0] == 4
        assert [one["version"] for one in second.store.json("log", "b")["versions"]][0] == 2

        second.store.weft("rm", "--force", "org/a@3")  # and it stays so
        second.store.weft("tag", "--delete", "org/a", "best")
        second.store.weft("stage-out")
        again = brought_back(first)
        assert (again["versions"], again["removed"], again["tags"], again["problems"]) == (0, 0, 0, [])
        assert not second.knows("org/a@3")
        for node in (first, second, late):
            node.store.assert_sound()


def test_what_a_new_registry_has_already_is_left_alone(tmp_path):
    with Cluster(tmp_path) as cluster:
        one = connected(cluster.node())
        cluster.publish(one, source(tmp_path / "a1", "a1"), "a")
        cluster.publish(one, source(tmp_path / "a2", "a2"), "a")
        cluster.publish(one, source(tmp_path / "b1", "b1"), "b")
        one.store.weft("stage-out")
    for gone in (one.directory, tmp_path / "etcd"):
        shutil.rmtree(gone)
    journal = cluster.origin / "journal"
    with Cluster(tmp_path, origin=cluster.origin) as cluster:
        node = connected(cluster.node())
        run(["mount", "-t", "tmpfs", "-o", "ro", "none", journal])  # as if it were not at the origin yet
        try:
            node.store.publish(source(tmp_path / "other", "other"), name="a")
        finally:
            run(["umount", journal])
        report = brought_back(node, check=False)
        assert len(report["problems"]) >= 1
        assert any("a@1" in line for line in report["problems"])
        if report["refused"]:  # the origin has heard of the other one by now
            report = brought_back(node, "--accept-loss", check=False)
        assert report["versions"] == 1
        assert [one["version"] for one in node.store.json("log", "a")["versions"]] == [1]
        assert node.knows("b@1")
        with node.mounted() as mount:
            assert files_below(mount.version("a", 1)) == files_below(tmp_path / "other")


def test_what_a_node_said_is_not_lost_with_it(tmp_path):
    """The one that made a change dies before it is at the origin: another has heard of it."""
    with Cluster(tmp_path) as cluster:
        one, two = cluster.some(2)
        cluster.publish(two, source(tmp_path / "a1", "a1"), "a")
        cluster.publish(two, source(tmp_path / "a2", "a2"), "a")
        journal = cluster.origin / "journal"
        run(["mount", "-t", "tmpfs", "-o", "ro", "none", journal])  # nothing gets there
        try:
            one.store.weft("tag", "a@1", "best")
            one.store.weft("rm", "--force", "a@2")
            wait_until(lambda: not two.knows("a@2"), seconds_max=SECONDS_MAX)
            one.daemon.kill()
            shutil.rmtree(one.directory / "store")
        finally:
            run(["umount", journal])
        two.store.weft("stage-out")
    back, report = restored(cluster.origin, tmp_path / "back")
    assert report["tags"] == 1
    assert [(one["version"], one["removed"], one.get("tags")) for one in named(back, "a")] == [
        (2, True, []), (1, False, ["best"])]
    back.assert_sound()


def test_a_damaged_origin_is_named_and_refused(tmp_path):
    with Cluster(tmp_path) as cluster:
        one = cluster.node()
        cluster.publish(one, source(tmp_path / "a1", "a1"), "a")
        cluster.publish(one, source(tmp_path / "b1", "b1"), "b")
        one.store.weft("stage-out")
    pack = max((cluster.origin / "packs").glob("*.pack"), key=lambda path: path.stat().st_mtime)
    with pack.open("r+b") as file:
        file.seek(pack.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    target = tmp_path / "back"
    refused = run([WEFT, "--store", target, "restore", cluster.origin], check=False)
    assert refused.returncode == 1
    assert "b@1: 1 of its extents are damaged or missing" in refused.stdout
    assert "a@1" not in refused.stdout
    assert run([WEFT, "--store", target, "ls"], check=False).returncode != 0
    assert run([WEFT, "--store", target, "restore", "--accept-loss", cluster.origin], check=False).returncode == 1
    back = store_at(target)
    assert [one["removed"] for one in named(back, "b")] == [True]
    assert [one["removed"] for one in named(back, "a")] == [False]
    back.assert_sound()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_a_restore_that_ends_early_is_no_store_and_goes_on(tmp_path, number):
    with Cluster(tmp_path) as cluster:
        one = cluster.node()
        models = {name: source(tmp_path / name, name, random_tensors(12, 1 << 20, seed=f"large {name}", prefix="large"))
                  for name in "abcd"}
        for name, path in models.items():
            cluster.publish(one, path, name)
        one.store.weft("stage-out")
    target = tmp_path / "back"
    (target / "tmp").mkdir(parents=True)
    (target / "tmp/restoring").touch()  # as one that was killed at its very beginning leaves it
    command = [WEFT, "--store", target, "restore", cluster.origin]
    cut, mark, marked = 0, target / "tmp/restoring", None
    for delay in range(1, 200):
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.005 * PATIENCE * delay)
        process.send_signal(number)
        if process.wait() == 0:
            break  # it was done before
        cut += 1
        if (target / "weft-store").exists():
            break  # all but the last word was said
        assert run([WEFT, "--store", target, "ls"], check=False).returncode != 0
        if mark.stat().st_size > 0:  # never written again: cut short it would be another's
            assert marked in (None, mark.stat().st_mtime_ns)
            marked = mark.stat().st_mtime_ns
    assert marked and cut > 1
    back = store_at(target)
    back.assert_sound()
    with Mount(back, tmp_path / "mnt") as mount:
        for name, path in models.items():
            assert files_below(mount.version(name, 1)) == files_below(path)


def test_two_clusters_share_no_origin(tmp_path):
    """The second is refused by name, and nothing of it gets there."""
    with Cluster(tmp_path) as cluster:
        one = cluster.node()
        cluster.publish(one, source(tmp_path / "a1", "a1"), "a")
        one.store.weft("stage-out")
        told = records(cluster.origin)
        (tmp_path / "second").mkdir()
        with Cluster(tmp_path / "second", origin=cluster.origin) as second:
            other = connected(second.node())
            refused = other.store.weft("import", source(tmp_path / "b1", "b1"), "--name", "b", "--durability", "origin",
                                       check=False)
            assert refused.returncode == 1 and "b@1 is published, and not at the origin" in refused.stderr
            for words in (["stage-out"], ["stage-out", "--new-origin"]):
                refused = other.store.weft(*words, check=False)
                assert refused.returncode == 1
                assert "expected an origin of cluster " in refused.stderr and "got that of cluster " in refused.stderr
            assert "expected an origin of cluster " in json.dumps(other.daemon.status())
        assert records(cluster.origin) == told
        cluster.publish(one, source(tmp_path / "a2", "a2"), "a")
