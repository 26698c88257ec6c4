"""A daemon that is killed at any moment of what it and another do: nothing is lost, and all ends in time."""
import contextlib
import errno
import itertools
import random
import subprocess
import time

import pytest

from clusterlib import can_make_networks
from nodes import MODEL_FILE, SECONDS_MAX, Cluster
from weftlib import random_tensors, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
ROUNDS = 8
counter = itertools.count(1)


def finished(process):
    """Its exit status, within the time."""
    process.communicate(timeout=SECONDS_MAX)
    return process.returncode


def what_a_reader_does(rng, node, mount, number, source):
    """Beside a publish: reads the version before, brings all of it, or drops what it has of it."""
    file = mount.version("model", number) / MODEL_FILE
    return rng.choice([lambda: subprocess.Popen(["cmp", source / MODEL_FILE, file], stderr=subprocess.PIPE, text=True),
                       lambda: node.store.start("prefetch", f"model@{number}"),
                       lambda: node.store.start("evict", "--all")])()


def reads(path, expected):
    """Whether all of it is read; until then it may fail, but brings nothing wrong."""
    try:
        got = path.read_bytes()
    except OSError as failure:
        assert failure.errno in (errno.EIO, errno.ENOENT)
        return False
    assert got == expected
    return True


def latest(node):
    """Of the registry: a new tag shows on the node after all that came before it. A tag that the version has already changes
    nothing, so it shows at once: each tag has a name of its own."""
    node.store.weft("tag", "model@1", f"seen{next(counter)}", timeout=SECONDS_MAX)
    return node.store.json("log", "model")["versions"][0]["version"]


def test_a_new_tag_shows_after_what_came_before_the_daemon(tmp_path):
    """Also while the daemon, which has just started, receives it."""
    with Cluster(tmp_path) as cluster:
        one, two = cluster.some(2)
        cluster.publish(one, write_model(tmp_path / "source1", random_tensors(1, 4096, seed="before 1")), "model")
        assert latest(one) == 1
        for number in range(2, ROUNDS + 2):
            one.daemon.kill()
            two.store.publish(write_model(tmp_path / f"source{number}", random_tensors(1, 4096, seed=f"before {number}")),
                              name="model")
            one.daemon.start()
            assert latest(one) == number


def test_a_daemon_killed_at_any_moment(tmp_path):
    """While one node publishes and writes behind, and another reads, brings or evicts."""
    rng = random.Random(5)
    with Cluster(tmp_path) as cluster, contextlib.ExitStack() as stack:
        one, two = cluster.some(2)
        source = write_model(tmp_path / "source0", random_tensors(8, 4 << 20, seed="killed 0"))
        number = int(cluster.publish(one, source, "model").split("@")[1])
        mount = stack.enter_context(two.mounted("cold=stream"))
        for turn in range(1, ROUNDS + 1):
            following = write_model(tmp_path / f"source{turn}", random_tensors(8, 4 << 20, seed=f"killed {turn}"))
            publisher = one.store.start("import", following, "--name", "model")
            reader = what_a_reader_does(rng, two, mount, number, source)
            time.sleep(rng.uniform(0, 0.5))
            killed = rng.choice([one, two])
            killed.daemon.kill()
            killed.daemon.start()
            published = finished(publisher) == 0
            assert finished(reader) != 1 or reader.args[0] != "cmp"  # it may fail; what it read was right
            begin = time.monotonic()
            now = latest(one)
            # Without an answer, nobody could say whether it was published.
            assert now in ([number + 1] if published else [number, number + 1]), one.store.json("log", "model")["versions"]
            number, source = now, following if now > number else source
            one.store.weft("stage-out", timeout=SECONDS_MAX)
            expected = (source / MODEL_FILE).read_bytes()
            file = mount.version("model", number) / MODEL_FILE
            wait_until(lambda file=file, expected=expected: reads(file, expected), seconds_max=SECONDS_MAX, pause=0.05)
            assert time.monotonic() - begin < SECONDS_MAX
        for node in (one, two):
            assert node.daemon.stop() == 0
            node.store.assert_sound()
