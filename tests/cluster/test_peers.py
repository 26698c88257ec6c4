"""Bytes that a node has not come from other nodes, without an origin: each once, verified, from whoever has them."""
import concurrent.futures
import contextlib
import os
import pathlib
import subprocess
import sys
import time

import pytest

from clusterlib import DATAGRAMS, PROVIDERS, can_make_networks
from daemonlib import Daemon, metrics
from nodes import SECONDS_MAX, cluster_key, errno_of
from weftlib import PATIENCE, WEFT, Deadline, Store, environment, random_tensors, run, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
FILE = "model.safetensors"
IDLE_SECONDS = 3
IDLE_PART_MAX = 0.1 * PATIENCE  # of a core; what it really takes is measured by scripts/bench net idle
# Whether two files have the same tensors, for a process of its own: several load at once.
SAME_TENSORS = """
import sys
from safetensors.numpy import load_file
expected, loaded = (load_file(path) for path in sys.argv[1:])
assert expected and loaded.keys() == expected.keys()
assert all(loaded[name].tobytes() == expected[name].tobytes() for name in expected)
"""


@contextlib.contextmanager
def slow_calls(daemon, call, seconds):
    """Each of these system calls takes so much longer."""
    pid = daemon.process.pid
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}",
                               "-e", f"inject={call}:delay_enter={round(seconds * 1e6)}", "-p", str(pid)])
    try:
        wait_until(lambda: all(" ".join(line.split()) != "TracerPid: 0"
                               for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                               for line in (task / "status").read_text().splitlines()), seconds_max=SECONDS_MAX)
        yield
    finally:
        tracer.terminate()
        tracer.wait()


def size_of(tensors):
    return sum(len(data) for _, _, data in tensors.values())


def loads_equal(node, source, spec):
    """Whether the file reads the same through this node's mount."""
    model, number = spec.split("@")
    with node.mounted() as mount:
        return (mount.version(model, number) / FILE).read_bytes() == (source / FILE).read_bytes()


def assert_same_tensors(node, source, spec):
    """By load_file through this node's mount, and then byte for byte."""
    model, number = spec.split("@")
    with node.mounted() as mount:
        file = mount.version(model, number) / FILE
        run([sys.executable, "-c", SAME_TENSORS, source / FILE, file])
        assert file.read_bytes() == (source / FILE).read_bytes()


def test_what_one_node_publishes_all_others_load(cluster, three, tmp_path):
    pytest.importorskip("safetensors.numpy")
    source = write_model(tmp_path / "source", random_tensors(6, 3 << 20, seed="peers"))
    spec = cluster.publish(three[0], source, "model")
    for node in three[1:]:
        assert_same_tensors(node, source, spec)
        assert (source / FILE).stat().st_size <= node.fetched("peer") <= sum(
            path.stat().st_size for path in source.iterdir())
        assert node.fetched("origin") == 0
        assert node.exchange()["sessions"] > 0
    assert three[0].exchange()["served_bytes"] > 0
    assert three[0].exchange()["windows"] == 0


def test_a_version_is_read_before_the_index_of_its_publisher_has_it(cluster, tmp_path):
    """The registry has it first. Here the publisher's index is 0.7 s later than that with every commit."""
    giver, taker = cluster.some(2)
    models = [write_model(tmp_path / name, random_tensors(2, 4 << 20, seed=name)) for name in "ab"]
    cluster.publish(giver, models[0], "m")
    with taker.mounted() as mount, slow_calls(giver.daemon, "fdatasync", seconds=0.7), subprocess.Popen(
            [WEFT, "--store", giver.store.path, "import", models[1], "--name", "m"], env=environment(),
            stdout=subprocess.DEVNULL) as publishing:
        wait_until((mount.version("m", 2) / FILE).exists, seconds_max=SECONDS_MAX, pause=0.001)
        assert publishing.poll() is None  # not so: nothing is tested here
        assert (mount.version("m", 2) / FILE).read_bytes() == (models[1] / FILE).read_bytes()
    assert publishing.returncode == 0


def test_eight_nodes_load_one_model_at_once(cluster, tmp_path):
    pytest.importorskip("safetensors.numpy")
    nodes = cluster.some(8)
    source = write_model(tmp_path / "source", random_tensors(9, 4 << 20, seed="eight"))
    spec = cluster.publish(nodes[0], source, "model")
    with concurrent.futures.ThreadPoolExecutor(7) as pool:
        list(pool.map(lambda node: assert_same_tensors(node, source, spec), nodes[1:]))
    assert all(node.fetched("peer") >= (source / FILE).stat().st_size for node in nodes[1:])
    assert sum(node.exchange()["served_bytes"] for node in nodes[1:]) > 0  # the first was not the only one that gave


def test_a_derived_model_moves_only_what_differs(cluster, three, tmp_path):
    tensors = random_tensors(6, 3 << 20, seed="base")
    cluster.publish(three[0], write_model(tmp_path / "base", tensors), "base")
    three[1].store.weft("prefetch", "base")
    before = three[1].fetched()
    other = random_tensors(6, 3 << 20, seed="other")
    derived = write_model(tmp_path / "derived", tensors | {"layer.2.weight": other["layer.2.weight"]})
    assert loads_equal(three[1], derived, cluster.publish(three[0], derived, "derived"))
    assert 3 << 20 <= three[1].fetched() - before <= (3 << 20) + 65536


def publish_changed(cluster, node, base, name, changed):
    """Publishes what `base` has with these tensors changed: the node takes nothing else of it."""
    part = write_model(cluster.directory / f"part of {name}", changed)
    return cluster.publish(node, part, name, inherit=base)


def manifests_looked_at(node):
    return node.daemon.status()["fetched"]["manifests"]


@pytest.mark.parametrize("looks", [False, True])
def test_what_a_derived_model_inherits_comes_from_who_had_it_first(cluster, three, tmp_path, looks):
    tensors = random_tensors(4, 3 << 20, seed="base")
    changed = {"layer.1.weight": random_tensors(4, 3 << 20, seed="other")["layer.1.weight"]}
    derived = write_model(tmp_path / "derived", tensors | changed)
    spec = publish_changed(cluster, three[1], cluster.publish(three[0], write_model(tmp_path / "base", tensors), "base"),
                           "derived", changed)
    assert three[1].fetched() < 1 << 20  # it has none of what it inherits
    if looks:
        three[2].store.weft("info", "base")
    assert loads_equal(three[2], derived, spec)
    assert manifests_looked_at(three[2]) == (2 if looks else 1)
    assert 3 * (3 << 20) <= three[0].exchange()["served_bytes"] < 3.5 * (3 << 20)
    assert 3 << 20 <= three[1].exchange()["served_bytes"] < 1.5 * (3 << 20)


def test_a_chain_of_ancestors_is_not_walked_to_who_had_it_first(cluster, three, tmp_path):
    reader = cluster.node()
    tensors = random_tensors(6, 1 << 20, seed="chain")
    other = random_tensors(6, 1 << 20, seed="later")
    spec = cluster.publish(three[0], write_model(tmp_path / "base", tensors), "base")
    for number, node in enumerate(three[1:], 1):
        changed = {f"layer.{number}.weight": other[f"layer.{number}.weight"]}
        tensors |= changed
        spec = publish_changed(cluster, node, spec, f"derived{number}", changed)
    assert loads_equal(reader, write_model(tmp_path / "last", tensors), spec)
    assert manifests_looked_at(reader) == 1  # of what it read, and of no ancestor
    assert three[0].exchange()["served_bytes"] >= 4 << 20
    assert all(node.exchange()["served_bytes"] >= 1 << 20 for node in three[1:])


def test_a_view_moves_its_own_chunks_alone(cluster, three, tmp_path):
    tensors = random_tensors(8, 4 << 20, seed="view")
    cluster.publish(three[0], write_model(tmp_path / "source", tensors), "model")
    wanted = tensors["layer.3.weight"][2]
    with three[1].mounted() as mount:
        assert (mount.tensors("model", 1) / "layer.3.weight.npy").read_bytes().endswith(wanted)
    assert len(wanted) <= three[1].fetched() <= len(wanted) * 1.02 + 65536


def test_prefetch_of_layers_moves_these_alone(cluster, three, tmp_path):
    tensors = random_tensors(6, 3 << 20, seed="prefetch")
    cluster.publish(three[0], write_model(tmp_path / "source", tensors), "model")
    part = three[1].store.json("prefetch", "model", "--layers", "layer.[01]")
    assert 2 * (3 << 20) <= part["moved_bytes"] <= 1.02 * 2 * (3 << 20) + 65536
    assert three[1].fetched() == part["moved_bytes"]


def test_without_etcd_nodes_go_on_reading_from_each_other(cluster, three, tmp_path):
    """Also what a node has not looked at before."""
    source = write_model(tmp_path / "source", random_tensors(4, 1 << 20, seed="no etcd"))
    spec = cluster.publish(three[0], source, "model")
    cluster.etcd.kill()
    for node in three[1:]:
        wait_until(lambda node=node: not node.daemon.status()["registry"]["connected"], seconds_max=SECONDS_MAX)
        with Deadline(SECONDS_MAX):
            assert loads_equal(node, source, spec)
        assert node.fetched("peer") >= (source / FILE).stat().st_size


def test_who_fetched_gives_to_others(cluster, three, tmp_path):
    source = write_model(tmp_path / "source", random_tensors(6, 3 << 20, seed="again"))
    spec = cluster.publish(three[0], source, "model")
    three[1].store.weft("prefetch", "model")
    three[0].daemon.kill()
    assert loads_equal(three[2], source, spec)
    assert three[1].exchange()["served_bytes"] > 0


def test_what_a_daemon_has_from_an_earlier_run_is_found(cluster, three, tmp_path):
    tensors = random_tensors(6, 3 << 20, seed="earlier")
    source = write_model(tmp_path / "source", tensors)
    cluster.publish(three[0], source, "model")
    three[1].store.weft("prefetch", "model")
    for node in three:
        node.daemon.stop()
    for node in three[1:]:
        node.daemon.start()
    with three[2].mounted() as mount:
        wait_until(lambda: errno_of(mount.version("model", 1) / FILE) == 0, seconds_max=SECONDS_MAX, pause=0.1)
        assert (mount.version("model", 1) / FILE).read_bytes() == (source / FILE).read_bytes()
    assert three[1].exchange()["served_bytes"] >= size_of(tensors)


def test_peers_and_metrics_tell_of_each_other(cluster, three, tmp_path):
    cluster.publish(three[0], write_model(tmp_path / "source", random_tensors(2, 1 << 20, seed="told")), "model")
    three[1].store.weft("prefetch", "model")
    peers = {peer["name"]: peer for peer in three[1].store.json("peers")["peers"]}
    assert set(peers) == {"node1", "node2", "node3"}
    assert peers["node1"]["address"].startswith(three[0].host.address + ":")
    assert peers["node1"]["provider"] == three[0].exchange()["provider"]
    table = three[1].store.weft("peers", env=environment(TZ="XST-9")).stdout.splitlines()  # nine hours east of UTC
    for peer in peers.values():
        assert peer["since"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(peer["since_ns"] // 10**9))
        local = time.strftime("%Y-%m-%d %H:%M", time.gmtime(peer["since_ns"] // 10**9 + 9 * 3600))
        row = f"{peer['name']} {peer['address']} {peer['provider']} {local} {peer['node']}"
        assert row.split() in [line.split() for line in table]
    samples = metrics(three[1].daemon.ask("metrics")["text"])
    assert samples['weft_fetched_bytes_total{source="peer"}'] > 0
    assert samples["weft_peer_sessions"] > 0


def test_an_export_fetches_what_the_node_lacks(cluster, three, tmp_path):
    source = write_model(tmp_path / "source", random_tensors(2, 1 << 20, seed="export"))
    spec = cluster.publish(three[0], source, "model")
    three[1].store.weft("export", spec, tmp_path / "out")
    assert (tmp_path / "out" / FILE).read_bytes() == (source / FILE).read_bytes()
    assert three[1].fetched("peer") > 0
    three[1].daemon.stop()
    three[1].store.weft("export", spec, tmp_path / "again")


def test_a_list_of_peers_without_etcd_is_marked(cluster, three):
    assert three[0].store.json("peers")["stale"] is False
    cluster.etcd.kill()
    wait_until(lambda: three[0].store.json("peers")["stale"], seconds_max=SECONDS_MAX)
    told = three[0].store.weft("peers")
    assert "may be out of date: etcd does not answer since" in told.stderr
    assert "node2" in told.stdout


def refusal_of(store, *options):
    with Daemon(store, "--etcd-endpoints", "http://127.0.0.1:1", *options, ready=False) as daemon:
        assert daemon.wait(SECONDS_MAX) != 0
        return daemon.said()


def test_a_daemon_of_a_cluster_refuses_to_start_without_a_secret_key(tmp_path):
    store = Store(tmp_path / "store")
    here = ["--listen", "127.0.0.1"]
    assert "key_file" in refusal_of(store, *here)
    assert "key" in refusal_of(store, *here, "--key-file", tmp_path / "none")
    key = cluster_key(tmp_path / "key")
    key.chmod(0o640)
    assert str(key) in refusal_of(store, *here, "--key-file", key)


def test_a_daemon_of_a_cluster_refuses_to_start_without_an_address_of_its_own(tmp_path):
    store, key = Store(tmp_path / "store"), cluster_key(tmp_path / "key")
    assert "weftd: listen: expected the address of this node" in refusal_of(store, "--key-file", key)


def test_an_address_of_no_interface_is_one_short_line(tmp_path):
    store, key = Store(tmp_path / "store"), cluster_key(tmp_path / "key")
    said = refusal_of(store, "--key-file", key, "--listen", "192.0.2.1:4711")
    assert said.splitlines()[-1] == "weftd: listen: no interface of this machine has the address 192.0.2.1"


def test_nodes_with_different_providers_leave_each_other_alone(cluster, tmp_path):
    one, other, third = (cluster.node("--provider", provider) for provider in (PROVIDERS[0], DATAGRAMS, DATAGRAMS))
    source = write_model(tmp_path / "source", random_tensors(2, 1 << 20, seed="unlike"))
    cluster.publish(one, source, "unlike")
    done = other.store.weft("prefetch", "unlike", check=False)
    assert done.returncode != 0
    assert f"uses provider {PROVIDERS[0]}, this node {DATAGRAMS}: they read nothing from each other" in other.daemon.said()
    assert other.daemon.said().count(f"uses provider {PROVIDERS[0]}") == 1
    cluster.publish(other, source, "like")
    third.store.weft("prefetch", "like")


def processor_seconds(daemon):
    fields = pathlib.Path(f"/proc/{daemon.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_daemons_with_sessions_and_nothing_to_do_wait(cluster, tmp_path, provider):
    nodes = cluster.some(3, "--provider", provider)
    source = write_model(tmp_path / "source", random_tensors(2, 1 << 20, seed="idle"))
    cluster.publish(nodes[0], source, "model")
    for node in nodes[1:]:
        node.store.weft("prefetch", "model")
    time.sleep(1)  # what they have is told
    before = [processor_seconds(node.daemon) for node in nodes]
    time.sleep(IDLE_SECONDS)
    for node, used in zip(nodes, before):
        assert processor_seconds(node.daemon) - used <= IDLE_PART_MAX * IDLE_SECONDS
        assert node.exchange()["provider"] == provider
        assert node.exchange()["sessions"] > 0
        assert node.daemon.status()["registry"]["connected"]
