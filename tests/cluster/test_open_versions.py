"""Versions that are removed in the whole cluster while nodes have files of them open."""
import contextlib
import json
import os
import signal

import pytest

from clusterlib import can_make_networks
from nodes import MODEL_FILE, SECONDS_MAX
from uses import Mapped, Opened, OpenedMapped, drop_caches
from weftlib import is_alive, random_tensors, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
FILES = (MODEL_FILE, "config.json", "tensors/layer.2.weight.npy", "layers/layer/4.safetensors")


def remove_everywhere(spec, nodes):
    """By the first, and none has it any more but for who has it open."""
    nodes[0].store.weft("rm", spec)
    for node in nodes:
        wait_until(lambda node=node: not node.knows(spec), seconds_max=SECONDS_MAX)
    return [node.store.json("gc") for node in nodes]


def kill_server(mount):
    def server():
        return json.loads((mount / ".weft/status").read_text())["mount"]["pid"]

    lost = server()
    os.kill(lost, signal.SIGKILL)
    wait_until(lambda: not is_alive(lost))
    wait_until(lambda: server() != lost, seconds_max=30)


def test_an_open_version_stays_and_is_served_to_peers(cluster, three, tmp_path):
    """The first node publishes and collects. The second has all of the version open, and has fetched it; the third has it
    open and has read nothing: it gets all from the second, which serves what the whole cluster has removed."""
    first, second, third = three
    tensors = random_tensors(6, 1 << 20, seed="open")
    base = write_model(tmp_path / "base", tensors)
    spec = cluster.publish(first, base, "base")
    changed = random_tensors(5, 1 << 20, seed="stays")
    stays = cluster.publish(first, write_model(tmp_path / "stays", tensors | changed), "stays")
    second.store.weft("prefetch", spec)
    with second.mounted() as here, third.mounted("cold=stream") as there, contextlib.ExitStack() as stack:
        paths = [here.version("base", 1) / name for name in FILES]
        expected = [path.read_bytes() for path in paths]
        assert expected[0] == (base / MODEL_FILE).read_bytes()
        used = [(stack.enter_context(contextlib.closing(way(path))), data)
                for way in (Opened, OpenedMapped, Mapped) for path, data in zip(paths, expected)]
        far = stack.enter_context(contextlib.closing(Opened(there.version("base", 1) / MODEL_FILE)))
        collected = remove_everywhere(spec, three)
        assert [report["versions_open"] for report in collected] == [0, 1, 1]
        assert first.store.json("gc")["versions_open"] == 0
        second.store.weft("evict", "--all")
        for change in (lambda: None, lambda: kill_server(here), lambda: second.store.weft("gc")):
            change()
            for one, data in used:
                one.drop()
                assert one.reads(data)
        drop_caches()
        assert far.reads(expected[0])
        kill_server(there)
        far.drop()
        assert far.reads(expected[0])
        assert second.store.json("status")["open_removed"] == 1
    for node in three:
        wait_until(lambda node=node: node.store.json("gc")["versions_open"] == 0, seconds_max=SECONDS_MAX, pause=0.1)
        assert node.store.json("status")["open_removed"] == 0
        node.store.weft("prefetch", stays)
        node.store.assert_sound()
