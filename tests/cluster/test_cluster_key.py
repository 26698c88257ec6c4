"""A running cluster changes its key: readers go on, and a node that was away is let in until the old key is forgotten."""
import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import threading
import time

import pytest

from clusterlib import can_make_networks
from nodes import SECONDS_MAX, errno_of
from weftlib import WEFT, environment, random_tensors, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
FILE = "model.safetensors"
MODELS = 4
KILLS = 8
KILL_SECONDS_MAX = 0.3  # a change takes about as long, so a kill may come at any step of it
ROUNDS = 2  # of reads of all models, in each step of a change


class Keys:
    """The files of a node's key, beside each other, each node in its own directory."""

    def __init__(self, node):
        self.node, self.file = node, node.directory / "key"

    def beside(self, suffix):
        return self.file.with_name(self.file.name + suffix)

    def accept(self, key):
        shutil.copy2(key, self.beside(".next"))

    def use(self):
        os.link(self.file, self.beside(".previous"))
        self.beside(".next").rename(self.file)

    def forget(self):
        self.beside(".previous").unlink()

    def reload(self):
        before = self.node.daemon.said().count("configuration reloaded")
        self.node.daemon.signal(signal.SIGHUP)
        wait_until(lambda: self.node.daemon.said().count("configuration reloaded") > before, seconds_max=SECONDS_MAX)

    def names(self):
        return self.node.exchange()["keys"]


class Reader:
    """Reads all models through a mount of the node, again and again, with nothing in its cache at the begin of a round."""

    def __init__(self, node, sources):
        self.node, self.sources = node, sources
        self.rounds, self.failure, self.ends = 0, None, False

    def __enter__(self):
        self.mount = self.node.mounted()
        self.mount.__enter__()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.ends = True
        self.thread.join()
        self.mount.__exit__(*exception)
        assert exception[0] or self.failure is None, self.failure

    def run(self):
        try:
            while not self.ends:
                self.node.store.weft("evict", "--all")
                for name, source in self.sources.items():
                    assert (self.mount.version(name, 1) / FILE).read_bytes() == (source / FILE).read_bytes()
                self.rounds += 1
        except Exception as failure:  # whatever it is, the test reports it
            self.failure = failure

    def reads(self):
        """Returns once it has read everything ROUNDS times more."""
        until = self.rounds + ROUNDS
        wait_until(lambda: self.rounds >= until or self.failure, seconds_max=SECONDS_MAX)
        assert self.failure is None, self.failure


@pytest.fixture
def own_keys(cluster, tmp_path):
    """Three nodes that know each other, each with a copy of the key."""
    nodes = []
    for number in range(1, 4):
        directory = tmp_path / f"node{number}"
        directory.mkdir()
        shutil.copy2(cluster.key, directory / "key")
        nodes.append(cluster.node("--key-file", directory / "key", path=directory))
    for node in nodes:
        wait_until(lambda node=node: len(node.daemon.ask("peers")["peers"]) == 3, seconds_max=SECONDS_MAX)
    return [Keys(node) for node in nodes]


def published(cluster, node):
    sources = {f"m{i}": write_model(cluster.directory / f"m{i}", random_tensors(2, 300_000, seed=f"m{i}"))
               for i in range(MODELS)}
    for name, source in sources.items():
        cluster.publish(node, source, name)
    return sources


def new_key(node, path):
    node.store.weft("keygen", path)
    assert path.stat().st_mode & 0o777 == 0o600
    again = node.store.weft("keygen", path, check=False)
    assert again.returncode == 1 and "exists" in again.stderr
    return path


def all_list_all(keys):
    wait_until(lambda: all(len(one.node.daemon.ask("peers")["peers"]) == len(keys) for one in keys), seconds_max=SECONDS_MAX)


def test_readers_go_on_while_a_cluster_changes_its_key(cluster, own_keys, tmp_path):
    first = own_keys[0].node
    sources = published(cluster, first)
    key = new_key(first, tmp_path / "new-key")
    old_name = own_keys[0].names()
    assert len(old_name) == 1 and all(one.names() == old_name for one in own_keys)
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(Reader(one.node, sources)) for one in own_keys[1:]]
        for reader in readers:
            reader.reads()
        shaken = [one.node.exchange()["handshakes"] for one in own_keys]
        for change in (lambda one: one.accept(key), Keys.use, Keys.forget):
            for one in own_keys:
                change(one)
                one.reload()
                for reader in readers:
                    reader.reads()
            if change is Keys.use:
                assert all(one.names()[1:] == old_name for one in own_keys)
                assert [one.node.exchange()["handshakes"] for one in own_keys] == shaken
            all_list_all(own_keys)
        names = own_keys[0].names()
        assert len(names) == 1 and names != old_name and all(one.names() == names for one in own_keys)
        assert all(one.node.exchange()["handshakes"] > count for one, count in zip(own_keys, shaken))
    for one in own_keys[1:]:
        assert one.node.fetched() > 3 * ROUNDS * MODELS * 600_000
    for one in own_keys:
        said = one.node.daemon.said()
        assert f"this node proves the cluster's key {names[0]}, and accepts no other" in said
        assert "does not hold this node's key" not in said and "it is refused" not in said


def test_a_node_that_was_away_is_let_in_until_the_old_key_is_forgotten(cluster, own_keys, tmp_path):
    one, two, away = own_keys
    sources = published(cluster, one.node)
    away.node.daemon.stop()
    key = new_key(one.node, tmp_path / "new-key")
    for change in (lambda each: each.accept(key), Keys.use):
        for each in (one, two):
            change(each)
            each.reload()
    away.node.daemon.start()
    all_list_all(own_keys)
    with away.node.mounted() as mount:
        assert (mount.version("m0", 1) / FILE).read_bytes() == (sources["m0"] / FILE).read_bytes()
        later = write_model(tmp_path / "later", random_tensors(2, 300_000, seed="later"))
        cluster.publish(away.node, later, "later")
        with two.node.mounted() as other:
            assert (other.version("later", 1) / FILE).read_bytes() == (later / FILE).read_bytes()
        for each in (one, two):
            each.forget()
            each.reload()
        wait_until(lambda: len(one.node.daemon.ask("peers")["peers"]) == 2, seconds_max=SECONDS_MAX)
        assert errno_of(mount.version("m1", 1) / FILE) == errno.EIO
        away.accept(key)  # too late for the steps, but the key is the key
        away.use()
        away.reload()
        all_list_all(own_keys)
        wait_until(lambda: errno_of(mount.version("m1", 1) / FILE) == 0, seconds_max=SECONDS_MAX)
        assert (mount.version("m1", 1) / FILE).read_bytes() == (sources["m1"] / FILE).read_bytes()


def test_keys_that_cannot_be_read_change_nothing(cluster, own_keys):
    one, two, _ = own_keys
    sources = published(cluster, one.node)
    names = two.names()
    two.beside(".next").write_bytes(b"short")
    two.beside(".next").chmod(0o600)
    two.node.daemon.signal(signal.SIGHUP)
    wait_until(lambda: "configuration not reloaded: key file" in two.node.daemon.said(), seconds_max=SECONDS_MAX)
    assert two.names() == names
    with two.node.mounted() as mount:
        assert (mount.version("m0", 1) / FILE).read_bytes() == (sources["m0"] / FILE).read_bytes()


def rotated(node, *options):
    """What `weft cluster rotate-key` on this node reports."""
    return node.store.json("cluster", "rotate-key", *options)


def test_one_command_changes_the_key_of_all_nodes_and_no_reader_notices(cluster, own_keys):
    one, two, three = own_keys
    sources = published(cluster, one.node)
    old = one.names()[0]
    with Reader(two.node, sources) as reader, Reader(three.node, sources) as other:
        for _ in range(3):
            reader.reads()
            other.reads()
            report = rotated(one.node)
            assert report["before"] == old and report["forgotten"] and report["away"] == []
            assert sorted(report["nodes"]) == ["node2", "node3"]
            assert all(each.names() == [report["key"]] for each in own_keys) and report["key"] != old
            old = report["key"]
            all_list_all(own_keys)
        reader.reads()
        other.reads()
    texts = {each.file.read_bytes() for each in own_keys}
    assert len(texts) == 1 and texts != {cluster.key.read_bytes()}
    for each in own_keys:
        assert each.file.stat().st_mode & 0o777 == 0o600
        assert not each.beside(".next").exists() and not each.beside(".previous").exists()
        assert "does not hold this node's key" not in each.node.daemon.said()


def test_the_old_key_is_accepted_until_an_absent_node_is_back(cluster, own_keys):
    one, two, away = own_keys
    sources = published(cluster, one.node)
    away.node.daemon.stop()
    wait_until(lambda: len(one.node.daemon.ask("peers")["peers"]) == 2, seconds_max=SECONDS_MAX)
    old = one.names()[0]
    report = rotated(one.node)
    assert report["away"] == ["node3"] and not report["forgotten"] and report["nodes"] == ["node2"]
    assert one.names() == two.names() == [report["key"], old]
    text = one.node.store.weft("cluster", "rotate-key").stdout
    assert "away: node3\n" in text and "--finish" in text
    assert one.names() == two.names() == [report["key"], old]
    away.node.daemon.start()
    all_list_all(own_keys)
    with away.node.mounted() as mount:  # with the old key
        assert (mount.version("m0", 1) / FILE).read_bytes() == (sources["m0"] / FILE).read_bytes()
        again = rotated(one.node)
        assert again["forgotten"] and again["key"] == report["key"] and again["away"] == []
        assert all(each.names() == [report["key"]] for each in own_keys)
        assert (mount.version("m1", 1) / FILE).read_bytes() == (sources["m1"] / FILE).read_bytes()
    away.node.daemon.stop()
    wait_until(lambda: len(one.node.daemon.ask("peers")["peers"]) == 2, seconds_max=SECONDS_MAX)
    last = rotated(one.node, "--finish")
    assert last["forgotten"] and last["away"] == ["node3"] and last["key"] != report["key"]
    assert one.names() == two.names() == [last["key"]]


def test_a_change_that_was_interrupted_goes_on_and_two_changes_do_not_mix(cluster, own_keys, tmp_path):
    one, two, three = own_keys
    old = one.names()[0]
    # The first step has reached this node and one other.
    key = new_key(one.node, tmp_path / "new-key")
    for each in (one, two):
        each.accept(key)
        each.reload()
    new = one.names()[1]
    refused = three.node.store.weft("cluster", "rotate-key", check=False)
    assert refused.returncode == 1
    assert f"node1: another change of the key has begun, with the second key {new}; the cluster goes on" in refused.stderr \
        or f"node2: another change of the key has begun, with the second key {new}; the cluster goes on" in refused.stderr
    assert three.names() == [old] and one.names() == two.names() == [old, new]
    # The second step has reached this node alone.
    one.use()
    one.reload()
    # No node has made this key: any holder of the old one may have planted it. It is used, and then replaced.
    report = rotated(one.node)
    assert report["forgotten"] and report["before"] == new and report["key"] not in (old, new)
    assert all(each.names() == [report["key"]] for each in own_keys)
    assert "has not made the key" in one.node.daemon.said()


def test_a_change_is_killed_again_and_again_and_ends_with_one_key(cluster, own_keys):
    """The daemon that changes the key is killed at many moments. The command then goes on, and no node is left behind."""
    one, two, three = own_keys
    sources = published(cluster, one.node)
    old = one.names()[0]
    chance = random.Random(KILLS)
    with Reader(two.node, {"m0": sources["m0"]}) as reader:  # whose bytes node3 has too
        three.node.holds("m0@1")
        for _ in range(KILLS):
            changing = subprocess.Popen([WEFT, "cluster", "rotate-key", "--store", one.node.store.path], env=environment(),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0, KILL_SECONDS_MAX))
            one.node.daemon.kill()
            changing.wait()
            one.node.daemon.start()
            all_list_all(own_keys)
            report = rotated(one.node)
            assert report["forgotten"] and all(each.names() == [report["key"]] for each in own_keys)
            assert not any(each.beside(suffix).exists() for each in own_keys for suffix in (".next", ".previous", ".made"))
            reader.reads()
    assert report["key"] != old
