"""Peers that lie, vanish, or are not let in: every read ends with the right bytes or a clear errno, in bounded time."""
import contextlib
import errno
import os
import signal
import subprocess
import threading
import time

import pytest

from clusterlib import can_make_networks
from nodes import SECONDS_MAX, cluster_key, comes_right_on, errno_of, resident
from weftlib import PATIENCE, environment, random_tensors, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
FILE = "model.safetensors"
LEASE_SECONDS = 10


def slowly_from(cluster, *nodes, seed, rate="200mbit"):
    """A model that the first has published and the others have too; their links are so slow that a read is still under
    way when something happens. What was published."""
    source = write_model(cluster.directory / "source", random_tensors(4, 16 << 20, seed=seed))
    cluster.publish(nodes[0], source, "model")
    for other in nodes[1:]:
        other.store.weft("prefetch", "model")
    for node in nodes:
        node.host.shape(rate)
    return source


@contextlib.contextmanager
def reading(node, source, model="model"):
    """A reader of the whole file that is under way: `cmp` with what was published."""
    with node.mounted("cold=stream") as mount:
        reader = subprocess.Popen(["cmp", source / FILE, mount.version(model, 1) / FILE], stderr=subprocess.PIPE,
                                  text=True, env=environment())
        try:
            wait_until(lambda: node.fetched() > 0, seconds_max=SECONDS_MAX, pause=0.01)
            yield reader
        finally:
            reader.kill()
            reader.communicate()


def ends_with_an_errno(reader):
    """`cmp` could not read on, in time. Its other exit codes say that bytes were equal, or that they differed."""
    _, said = reader.communicate(timeout=SECONDS_MAX)
    assert reader.returncode == 2, said
    assert os.strerror(errno.EIO) in said


def nothing_is_lost(*nodes):
    for node in nodes:
        node.store.assert_sound()


def pack_with(node, needle):
    """(pack, offset) of these bytes in a node's store."""
    for pack in node.store.path.rglob("*.pack"):
        at = pack.read_bytes().find(needle)
        if at >= 0:
            return pack, at
    raise AssertionError("no pack has these bytes")


def make_lie(node, tensor, how):
    """What the node has on its disk, and will give to others, is not what it published."""
    node.daemon.stop()
    pack, at = pack_with(node, tensor)
    if how == "short":
        os.truncate(pack, at + len(tensor) // 2)
    else:
        with open(pack, "r+b") as file:
            file.seek(at)
            file.write(b"\xff" * len(tensor))
    node.daemon.start()


@pytest.mark.parametrize("how", ["wrong", "short"])
def test_a_peer_that_gives_other_bytes_is_found_out(cluster, three, tmp_path, how):
    tensors = random_tensors(4, 3 << 20, seed=how)
    source = write_model(tmp_path / "source", tensors)
    cluster.publish(three[0], source, "model")
    make_lie(three[0], tensors["layer.1.weight"][2], how)
    with three[1].mounted() as mount:
        begin = time.monotonic()
        assert errno_of(mount.version("model", 1) / FILE) == errno.EIO
        assert time.monotonic() - begin < SECONDS_MAX
    three[1].store.assert_sound()


def test_a_holder_that_tells_the_truth_is_asked_instead_of_one_that_lies(cluster, three, tmp_path):
    tensors = random_tensors(4, 3 << 20, seed="truth")
    source = write_model(tmp_path / "source", tensors)
    cluster.publish(three[0], source, "model")
    three[1].store.weft("prefetch", "model")
    make_lie(three[0], tensors["layer.1.weight"][2], "wrong")
    comes_right_on(three[2], source)
    three[2].store.assert_sound()


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_holder_that_stops_or_dies_mid_read_is_replaced_by_another(cluster, three, how):
    source = slowly_from(cluster, three[0], three[1], seed="replaced")
    with reading(three[2], source) as reader:
        wait_until(lambda: three[0].exchange()["windows"] > 0, seconds_max=SECONDS_MAX, pause=0.005)
        assert reader.poll() is None
        os.kill(three[0].daemon.pid, how)  # while it is giving
        try:
            assert reader.wait(SECONDS_MAX) == 0
        finally:
            os.kill(three[0].daemon.pid, signal.SIGCONT)
    assert three[1].exchange()["served_bytes"] > 0
    three[2].store.assert_sound()


def test_a_slow_holder_holds_up_nobody_while_another_is_fast(cluster, three):
    source = write_model(cluster.directory / "source", random_tensors(4, 8 << 20, seed="slow"))
    cluster.publish(three[0], source, "model")
    three[1].store.weft("prefetch", "model")
    three[0].host.shape("256kbit", burst="32k")
    begin = time.monotonic()
    comes_right_on(three[2], source)
    assert time.monotonic() - begin < SECONDS_MAX
    assert three[1].exchange()["served_bytes"] > 0.9 * (source / FILE).stat().st_size
    three[2].store.assert_sound()


def test_the_only_holder_killed_mid_read_is_an_errno_and_the_bytes_when_it_is_back(cluster, three):
    source = slowly_from(cluster, three[0], seed="only")
    with reading(three[1], source) as reader:
        three[0].daemon.kill()
        ends_with_an_errno(reader)
    three[0].host.unshape()
    three[0].daemon.start()
    comes_right_on(three[1], source)
    nothing_is_lost(three[0], three[1])


def test_a_holder_that_is_stopped_costs_the_only_reader_an_errno_in_time(cluster, three):
    source = slowly_from(cluster, three[0], seed="stopped")
    with reading(three[1], source) as reader:
        os.kill(three[0].daemon.pid, signal.SIGSTOP)
        try:
            ends_with_an_errno(reader)
            assert three[1].daemon.alive()
        finally:
            os.kill(three[0].daemon.pid, signal.SIGCONT)
    three[0].host.unshape()
    comes_right_on(three[1], source)
    nothing_is_lost(three[0], three[1])


def test_a_partition_is_an_errno_and_its_end_brings_the_bytes(cluster, three):
    source = slowly_from(cluster, three[0], seed="partition")
    with reading(three[1], source) as reader:
        three[0].host.cut()
        try:
            ends_with_an_errno(reader)
        finally:
            three[0].host.mend()
    three[0].host.unshape()
    comes_right_on(three[1], source)
    nothing_is_lost(three[0], three[1])


def test_a_reader_killed_mid_read_leaves_no_windows_behind_its_lease(cluster, three):
    source = slowly_from(cluster, three[0], seed="reader", rate="50mbit")
    memory = resident(three[0])
    with three[1].mounted("cold=stream") as mount:
        file = mount.version("model", 1) / FILE
        reader = threading.Thread(target=errno_of, args=(file,))
        reader.start()
        wait_until(lambda: three[0].exchange()["windows"] > 0, seconds_max=SECONDS_MAX, pause=0.005)
        three[1].daemon.kill()
        wait_until(lambda: three[0].exchange()["windows"] == 0, seconds_max=LEASE_SECONDS + 2, pause=0.05)
        assert three[0].exchange()["window_bytes"] == 0
        assert resident(three[0]) < memory + (32 << 20) * PATIENCE
        reader.join(SECONDS_MAX)
        assert not reader.is_alive()
        three[1].daemon.start()
    three[0].host.unshape()
    comes_right_on(three[2], source)
    comes_right_on(three[1], source)
    nothing_is_lost(*three)


def listed_by(node):
    """The nodes that it lists: names, and ids."""
    return {peer["name"]: peer["node"] for peer in node.daemon.ask("peers")["peers"]}


def names_another_key(node, other):
    """How often its log says that the other node holds another key."""
    own_id = listed_by(other).get(other.directory.name, "no id yet")
    sentence = f"peer {own_id} ({other.directory.name}) does not hold this node's key of the cluster: they refuse each other"
    return node.daemon.said().count(sentence)


def test_a_node_with_another_key_gets_nothing_and_keeps_nobody_else(cluster, tmp_path):
    one, two = cluster.some(2)
    stranger = cluster.node("--key-file", cluster_key(tmp_path / "other-key"))
    strangers = [(one, stranger), (two, stranger), (stranger, one), (stranger, two)]
    # Without any reader or message both sides say so, at most once a minute, and neither lists the other.
    wait_until(lambda: all(names_another_key(*pair) == 1 for pair in strangers), seconds_max=SECONDS_MAX)
    wait_until(lambda: [sorted(listed_by(node)) for node in (one, two, stranger)] ==
               [["node1", "node2"], ["node1", "node2"], ["node3"]], seconds_max=SECONDS_MAX)
    source = write_model(tmp_path / "source", random_tensors(3, 3 << 20, seed="key"))
    cluster.publish(one, source, "model")
    with stranger.mounted() as mount:
        begin = time.monotonic()
        assert errno_of(mount.version("model", 1) / FILE) == errno.EIO
        assert time.monotonic() - begin < SECONDS_MAX
    assert stranger.fetched() == 0
    assert one.daemon.status()["peers"] == 2 and stranger.daemon.status()["peers"] == 1
    assert all(names_another_key(*pair) <= 2 for pair in strangers)
    assert [sorted(listed_by(node)) for node in (one, stranger)] == [["node1", "node2"], ["node3"]]
    with two.mounted() as mount:
        assert (mount.version("model", 1) / FILE).read_bytes() == (source / FILE).read_bytes()
    assert stranger.exchange()["calls"] == 0
    assert not any("it is refused" in node.daemon.said() for node in (one, two, stranger))


def test_looks_at_what_only_a_dead_node_has_are_refused_in_time(cluster, three):
    """Each costs little, again and again, and the first after its return is answered."""
    names = [f"m{i}" for i in range(8)]
    for name in names:
        cluster.publish(three[0], write_model(cluster.directory / name, random_tensors(2, 4096, seed=name)), name)
    three[0].daemon.kill()
    begin = time.monotonic()
    with three[1].mounted() as mount:
        for _ in range(4):
            for name in names:
                with pytest.raises(OSError) as failure:
                    os.listdir(mount.version(name, 1))
                assert failure.value.errno == errno.EIO
        refused = three[1].store.weft("info", names[0], check=False)
        assert refused.returncode == 1 and "manifest" in refused.stderr and refused.stderr.count("\n") == 1
        assert three[1].store.json("du")["unknown_versions"] == len(names)
        assert time.monotonic() - begin < SECONDS_MAX
        three[0].daemon.start()
        for name in names:
            wait_until(lambda name=name: listed(mount.version(name, 1)), seconds_max=SECONDS_MAX, pause=0.05)


def listed(directory):
    with contextlib.suppress(OSError):
        return FILE in os.listdir(directory)
    return False


@pytest.mark.parametrize("who", [0, 1])
def test_a_daemon_that_begins_anew_is_heard_at_once(cluster, three, who):
    for name in "abc":
        source = write_model(cluster.directory / name, random_tensors(3, 1 << 20, seed=name))
        cluster.publish(three[0], source, name)
    for name in "abc":
        three[1].store.weft("prefetch", name)
        three[who].daemon.kill()
        three[who].daemon.start()
