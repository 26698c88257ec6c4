"""Versions that are removed in the whole cluster while nodes have files of them open."""
import contextlib
import json
import os
import signal

import pytest

from clusterlib import can_make_networks
from daemonlib import metrics
from nodes import MODEL_FILE, SECONDS_MAX
from uses import Mapped, Opened, OpenedMapped, drop_caches
from weftlib import is_alive, random_tensors, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
ROUNDS = 3
FILES = (f"models/{MODEL_FILE}", "models/config.json", "tensors/layer.2.weight.npy", "layers/layer/4.safetensors")


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


def test_a_fetched_version_stays_while_it_is_open(cluster, three, tmp_path):
    """The first node publishes, and nobody has it open there. The second has fetched it, which nobody else has by the end,
    and its cache may not evict it."""
    first, second, _ = three
    tensors = random_tensors(6, 1 << 20, seed="open")
    base = write_model(tmp_path / "base", tensors)
    spec = cluster.publish(first, base, "base")
    changed = random_tensors(5, 1 << 20, seed="stays")
    cluster.publish(first, write_model(tmp_path / "stays", tensors | changed), "stays")
    second.store.weft("prefetch", spec)
    with second.mounted() as here, contextlib.ExitStack() as stack:
        paths = [here.at("base", 1, name) for name in FILES]
        expected = [path.read_bytes() for path in paths]
        assert expected[0] == (base / MODEL_FILE).read_bytes()
        used = [(stack.enter_context(contextlib.closing(way(path))), data)
                for way in (Opened, OpenedMapped, Mapped) for path, data in zip(paths, expected)]
        collected = remove_everywhere(spec, three)
        assert [report["versions_open"] for report in collected] == [0, 1, 0]
        for change in (lambda: second.store.weft("evict", "--all"), lambda: kill_server(here),
                       lambda: second.store.weft("gc")):
            change()
            for one, _ in used:
                one.drop()
            drop_caches()
            assert all(one.reads(data) for one, data in used)
        assert second.store.json("status")["open_removed"] == 1
    wait_until(lambda: second.store.json("gc")["versions_open"] == 0, seconds_max=SECONDS_MAX, pause=0.1)
    assert second.store.json("status")["open_removed"] == 0
    second.store.weft("evict", "--all")
    for node in three:
        node.store.assert_sound()


def test_bytes_that_a_peer_reads_stay_while_their_packs_go(cluster, three, tmp_path):
    """The first node serves versions that stay while gc rewrites and deletes the packs that it serves from."""
    first, _, third = three
    tensors = random_tensors(6, 2 << 20, seed="served")
    names = list(tensors)
    for turn in range(ROUNDS):
        own = random_tensors(1, 4096, seed=f"turn {turn}", prefix="own")
        cluster.publish(first, write_model(tmp_path / f"all{turn}", tensors | own), "all")
        stays = cluster.publish(first, write_model(tmp_path / f"stays{turn}",
                                                   {name: tensors[name] for name in names[:3]} | own), "stays")
        first.store.weft("rm", f"all@{turn + 1}")
        fetching = third.store.start("prefetch", stays)
        while fetching.poll() is None:
            first.store.weft("gc", "--all")
        assert fetching.returncode == 0, fetching.stderr.read()
        with third.mounted() as mount:
            got = (mount.version("stays", turn + 1) / MODEL_FILE).read_bytes()
            assert got == (tmp_path / f"stays{turn}" / MODEL_FILE).read_bytes()
        if turn > 0:
            first.store.weft("rm", f"stays@{turn}")
            wait_until(lambda turn=turn: not third.knows(f"stays@{turn}"), seconds_max=SECONDS_MAX)
        third.store.weft("evict", "--all")
        tensors |= random_tensors(6, 2 << 20, seed=f"served {turn}")
    assert metrics(third.daemon.ask("metrics")["text"])['weft_fetch_failures_total{source="peer"}'] == 0
    first.store.assert_sound()
