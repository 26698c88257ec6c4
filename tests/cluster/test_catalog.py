"""One catalog for three nodes: real daemons, real etcd, real mounts."""
import json
import os
import pwd
import random
import statistics
import time

import pytest

from daemonlib import metrics
from threenodes import SECONDS_MAX
from weftlib import LENGTH, PATIENCE, Deadline, random_tensors, wait_until, write_model

FILE = "model.safetensors"
VISIBLE_SECONDS_MAX = 0.2 * PATIENCE  # from the end of a publish until every mount shows it
VISIBLE_TIMES = 9


def reads_equal(node, model, number, source):
    return (node.models() / model / str(number) / FILE).read_bytes() == (source / FILE).read_bytes()


def assert_all_sound(nodes):
    for node in nodes:
        node.daemon.stop()
        node.store.assert_sound()


def test_a_publish_appears_on_every_node(nodes, small_model):
    """And tags, their moves, and removals."""
    first, *others = nodes
    for number, node in enumerate(nodes, 1):
        (small_model / "config.json").write_text(json.dumps({"number": number}))
        node.store.publish(small_model, name="org/small", tag="best")
        for other in nodes:
            other.sees("org/small", number)
            wait_until(lambda: (other.models() / "org/small/best").readlink().name == str(number),
                       seconds_max=SECONDS_MAX)
    first.store.weft("rm", "--force", "org/small@2")
    for other in others:
        wait_until(lambda: not (other.models() / "org/small/2").exists(), seconds_max=SECONDS_MAX)
        assert other.versions("org/small") == [1, 3]
    first.store.weft("tag", "--delete", "org/small", "best")
    for other in others:
        wait_until(lambda: not (other.models() / "org/small/best").is_symlink(), seconds_max=SECONDS_MAX)


def test_a_note_reaches_every_node(nodes, small_model):
    first, *others = nodes
    first.store.publish(small_model, name="m")
    for other in others:
        other.sees("m", 1)
    others[0].store.weft("note", "m@1", "-m", "checked", "--metric", "loss=0.5")
    for node in nodes:
        wait_until(lambda: node.store.json("log", "m")["versions"][0]["message"] == "checked", seconds_max=SECONDS_MAX)
    assert_all_sound(nodes)


def test_an_undelete_reaches_every_node(nodes, small_model):
    """Also one that has freed the content."""
    first, second, *_ = nodes
    first.store.publish(small_model, name="m", tag="best")
    for node in nodes:
        node.sees("m", 1)
    assert reads_equal(second, "m", 1, small_model)
    second.store.weft("rm", "--force", "m@1")
    for node in nodes:
        wait_until(lambda: not (node.models() / "m").exists(), seconds_max=SECONDS_MAX)
    second.store.weft("gc")
    first.store.weft("undelete", "m@1")
    for node in nodes:
        node.sees("m", 1)
        wait_until(lambda: (node.models() / "m/best").is_symlink(), seconds_max=SECONDS_MAX)
        assert reads_equal(node, "m", 1, small_model)
    assert_all_sound(nodes)


def test_a_rename_is_refused_on_every_node(nodes, small_model):
    nodes[0].store.publish(small_model, name="m")
    for node in nodes:
        node.sees("m", 1)
        done = node.store.weft("mv", "m", "n", check=False)
        assert done.returncode == 1 and done.stderr.count("\n") == 1
        assert "m: renaming a model of a cluster is not supported" in done.stderr
        assert node.versions("m") == [1] and not (node.models() / "n").exists()


def test_every_node_knows_who_changed_a_tag(nodes, small_model):
    def changes(node):
        return [(change["tag"], change["before"], change["version"], change["user"], change["node"])
                for change in node.store.json("tag", "--log", "m")["changes"]]

    first, second, third = nodes
    first.store.publish(small_model, name="m", tag="best")
    for node in (second, third):
        node.sees("m", 1)
    second.store.weft("tag", "m@1", "other")
    wait_until(lambda: len(changes(third)) == 2, seconds_max=SECONDS_MAX)
    third.store.weft("tag", "--delete", "m", "best")
    user = pwd.getpwuid(os.geteuid()).pw_name
    expected = [("best", 1, None, user, "n2"), ("other", None, 1, user, "n1"), ("best", None, 1, user, "n0")]
    for node in nodes:
        wait_until(lambda: changes(node) == expected, seconds_max=SECONDS_MAX)
    (times,) = {tuple(change["time_ns"] for change in node.store.json("tag", "--log", "m")["changes"]) for node in nodes}
    assert list(times) == sorted(times, reverse=True)
    assert_all_sound(nodes)


def test_a_publish_is_in_every_mount_soon(nodes, small_model):
    took = []
    for number in range(1, VISIBLE_TIMES + 1):
        (small_model / "config.json").write_text(json.dumps({"number": number}))
        nodes[number % 3].store.publish(small_model, name="m")
        shown = [node.models() / "m" / str(number) for node in nodes]
        took.append(wait_until(lambda: all(path.exists() for path in shown), seconds_max=SECONDS_MAX))
    assert statistics.median(took) <= VISIBLE_SECONDS_MAX, took


def test_peers(nodes):
    for node in nodes:
        wait_until(lambda: len(node.store.json("peers")["peers"]) == 3, seconds_max=SECONDS_MAX)
        assert sorted(peer["name"] for peer in node.store.json("peers")["peers"]) == ["n0", "n1", "n2"]
        assert {peer["name"] for peer in json.loads((node.mount / ".weft/peers").read_text())["peers"]} == {"n0", "n1", "n2"}
        assert metrics((node.mount / ".weft/metrics").read_text())["weft_peers"] == 3
        assert json.loads((node.mount / ".weft/status").read_text())["daemon"]["registry"]["kind"] == "etcd"
    assert nodes[2].daemon.stop() == 0
    for node in nodes[:2]:
        wait_until(lambda: len(node.store.json("peers")["peers"]) == 2, seconds_max=SECONDS_MAX)


def test_nodes_that_publish_one_model_at_once(nodes, tmp_path):
    """Every publish gets a number of its own, and none is lost."""
    clients = []
    for i in range(12):
        model = write_model(tmp_path / f"model{i}", random_tensors(2, 4096, seed=f"at once {i}"))
        clients.append(nodes[i % 3].store.start("import", model, "--name", "m"))
    for client in clients:
        out, err = client.communicate(timeout=60)
        assert client.returncode == 0, err
    for node in nodes:
        wait_until(lambda: node.versions("m") == list(range(1, 13)), seconds_max=SECONDS_MAX)


def test_a_daemon_killed_while_it_publishes(nodes, tmp_path):
    """The version is everywhere or nowhere, and where it was published it is whole."""
    rng = random.Random(7)
    first, second, _ = nodes
    for i in range(8):
        model = write_model(tmp_path / f"model{i}", random_tensors(4, 256 << 10, seed=f"killed {i}"))
        client = first.store.start("import", model, "--name", "m")
        time.sleep(rng.uniform(0, 0.3))
        first.daemon.kill()
        _, err = client.communicate(timeout=60)
        assert client.returncode in (0, 1)
        first.daemon.start()
        wait_until(first.connected, seconds_max=SECONDS_MAX)
        wait_until(lambda: second.store.json("ls") == first.store.json("ls"), seconds_max=SECONDS_MAX)
        if client.returncode == 0:
            latest = (first.models() / "m/latest").readlink().name
            assert reads_equal(first, "m", latest, model)
    first.daemon.stop()
    first.store.assert_sound()


def test_without_etcd(nodes, etcd, small_model, tmp_path):
    """Reads go on, publishing fails cleanly and says why, and what is missed comes when it is back."""
    first, second, third = nodes
    first.store.publish(small_model, name="m", durability="origin")
    for node in (second, third):
        node.sees("m", 1)
    assert (second.models() / "m/1" / FILE).is_file()  # it has looked, the third has not
    before = first.store.state()
    etcd.kill()
    begin = time.monotonic()
    refused = first.store.weft("import", small_model, "--name", "n", check=False)
    assert time.monotonic() - begin < SECONDS_MAX
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1, refused.stderr
    assert etcd.endpoint.split("//")[1] in refused.stderr
    for words in (["rm", "m@1"], ["tag", "m@1", "x"]):
        assert first.store.weft(*words, check=False).returncode == 1
    assert first.store.state() == before
    for node in nodes:
        wait_until(lambda node=node: not node.connected() and node.registry()["trouble"], seconds_max=SECONDS_MAX)
        with Deadline(SECONDS_MAX):
            assert reads_equal(node, "m", 1, small_model)
    etcd.start()
    with Deadline(SECONDS_MAX) as deadline:
        deadline.wait_until(lambda: all(node.connected() for node in nodes))
        second.store.publish(small_model, name="n")
        deadline.wait_until((first.models() / "n/1").exists)
        assert reads_equal(first, "n", 1, small_model)
    assert_all_sound(nodes)


@pytest.mark.long
def test_etcd_stopped_while_nodes_publish(nodes, etcd, tmp_path):
    """Whatever a publish was answered: what is said to be published is, and what shows is whole where it came from."""
    rng = random.Random(13)
    said = {}
    for i in range(int(3 * LENGTH)):
        clients = {}
        for k, node in enumerate(nodes):
            name = f"m{i}-{k}"
            model = write_model(tmp_path / name, random_tensors(2, 4096, seed=name))
            clients[name] = (node, model, node.store.start("import", model, "--name", name))
        time.sleep(rng.uniform(0, 0.15))
        etcd.stop()
        etcd.start()
        for name, (node, model, client) in clients.items():
            _, why = client.communicate(timeout=60)
            assert client.returncode in (0, 1) and why.count("\n") == client.returncode, why
            said[name] = (node, model, client.returncode == 0)
        for node in nodes:
            wait_until(node.connected, seconds_max=SECONDS_MAX)
    for node in nodes[1:]:
        wait_until(lambda: node.store.json("ls") == nodes[0].store.json("ls"), seconds_max=SECONDS_MAX)
    shown = {one["model"] for one in nodes[0].store.json("ls")["models"]}
    assert {name for name, (_, _, done) in said.items() if done} <= shown
    for name in shown:
        node, model, _ = said[name]
        assert reads_equal(node, name, 1, model)
    assert_all_sound(nodes)


def test_a_partition_and_its_end(nodes, small_model):
    first, second, third = nodes
    first.store.publish(small_model, name="before")
    third.sees("before", 1)
    third.host.cut()
    (small_model / FILE).write_bytes((small_model / FILE).read_bytes()[:-1] + b"!")
    first.store.publish(small_model, name="meanwhile", durability="origin")
    second.sees("meanwhile", 1)
    assert (third.models() / "before").is_dir() and not (third.models() / "meanwhile").exists()
    with Deadline(SECONDS_MAX):
        refused = third.store.weft("import", small_model, "--name", "alone", check=False)
        assert refused.returncode == 1 and refused.stderr.count("\n") == 1, refused.stderr
    third.host.mend()
    comes_back(third, "meanwhile", 1, small_model, first)
    assert not (first.models() / "alone").exists()
    assert_all_sound(nodes)


def comes_back(node, model, number, source, other):
    """In time it shows what was published meanwhile, reads it, and publishes."""
    with Deadline(SECONDS_MAX) as deadline:
        deadline.wait_until((node.models() / model / str(number)).exists)
        assert reads_equal(node, model, number, source)
        deadline.wait_until(node.connected)
        node.store.publish(source, name="back")
        deadline.wait_until((other.models() / "back/1").exists)
        assert reads_equal(other, "back", 1, source)


def test_etcd_compacted_while_a_node_is_away(nodes, etcd, small_model):
    first, _, third = nodes
    first.store.publish(small_model, name="gone")
    third.sees("gone", 1)
    third.daemon.stop()
    first.store.weft("rm", "--force", "gone@1")
    for i in range(5):
        (small_model / "config.json").write_text(str(i))
        first.store.publish(small_model, name="m", durability="origin")
    etcd.compact()
    third.daemon.start()
    comes_back(third, "m", 5, small_model, first)
    wait_until(lambda: not (third.models() / "gone").exists(), seconds_max=SECONDS_MAX)
    wait_until(lambda: third.store.json("ls") == first.store.json("ls"), seconds_max=SECONDS_MAX)
    assert_all_sound(nodes)


def test_a_library_may_not_write_to_a_clusters_store(nodes, small_model):
    first = nodes[0]
    first.store.publish(small_model, name="m")
    assert first.daemon.stop() == 0
    refused = first.store.weft("import", small_model, "--name", "n", check=False)
    assert refused.returncode == 1 and "cluster" in refused.stderr
    assert first.store.json("ls")["models"][0]["model"] == "m"
