"""Endpoints of a cluster: clients of a hub read what other nodes have, and what the upstream has is pulled once."""
import concurrent.futures
import contextlib
import ctypes
import filecmp

import pytest

from clusterlib import can_make_networks
from endpointlib import client
from hub_double import Hub
from nodes import MODEL_FILE
from weftlib import PATIENCE, random_tensors, run, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
PORT = 18100
CLONE_NEWNET = 0x40000000
LOADS = "import json, sys; from huggingface_hub import snapshot_download; print(json.dumps(snapshot_download(sys.argv[1])))"


@pytest.fixture
def pair(cluster, tmp_path):
    """(a node that published org/m, a node with the endpoint and nothing else, the source)."""
    publisher, reader = cluster.node(), cluster.node("--hub-listen", f"127.0.0.1:{PORT}")
    source = write_model(tmp_path / "source", random_tensors(6, 3 << 20, seed="endpoint"), files=[("a/config.json", b"{}")])
    cluster.publish(publisher, source, "org/m")
    wait_until(lambda: reader.knows("org/m@1"), seconds_max=30 * PATIENCE)
    return publisher, reader, source


def by_curl(node, path, *words, **options):
    return run([*node.host.inside, "curl", "--silent", "--show-error", "--noproxy", "*", *words,
                f"http://127.0.0.1:{PORT}/{path}"], **options)


def test_a_client_reads_a_model_that_another_node_has(pair, tmp_path):
    publisher, reader, source = pair
    assert reader.fetched() == 0
    directory = client(LOADS, f"http://127.0.0.1:{PORT}", tmp_path / "home", "org/m", wrapper=reader.host.inside)
    for name in (MODEL_FILE, "a/config.json"):
        assert filecmp.cmp(f"{directory}/{name}", source / name, shallow=False)
    size = (source / MODEL_FILE).stat().st_size
    assert size <= reader.fetched() <= 1.1 * size
    before = reader.fetched()
    by_curl(reader, f"org/m/resolve/1/{MODEL_FILE}", "--output", tmp_path / "again")
    assert filecmp.cmp(tmp_path / "again", source / MODEL_FILE, shallow=False) and reader.fetched() == before


def test_a_range_moves_a_part(pair, tmp_path):
    _, reader, source = pair
    whole = (source / MODEL_FILE).read_bytes()
    by_curl(reader, f"org/m/resolve/main/{MODEL_FILE}", "--range", "5000000-5000099", "--output", tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == whole[5000000:5000100]
    assert 0 < reader.fetched() < len(whole) / 2


def test_nobody_has_the_bytes(pair, tmp_path):
    """The listing needs the manifest, which came before; the bytes are an error in time, and not wrong ones."""
    publisher, reader, source = pair
    assert "config.json" in by_curl(reader, "api/models/org/m/tree/main?recursive=1").stdout
    publisher.daemon.kill()
    done = by_curl(reader, f"org/m/resolve/main/{MODEL_FILE}", "--fail", "--output", tmp_path / "none", check=False)
    assert done.returncode in (18, 22, 52, 56)  # a short body, an error's status, no answer
    assert by_curl(reader, "api/models/org/m").stdout.startswith("{")


@contextlib.contextmanager
def inside(host):
    """This thread makes sockets on the host."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(path):
        with open(path, encoding="ascii") as space:
            if libc.setns(space.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")

    with open("/proc/thread-self/ns/net", encoding="ascii") as own:
        enter(f"/run/netns/{host.space}")
        try:
            yield
        finally:
            if libc.setns(own.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")


@pytest.fixture
def upstream(cluster):
    host = cluster.network.host()
    with inside(host):
        hub = Hub(host.address, host.address)
    with hub:
        yield hub


def test_nodes_whose_clients_ask_at_the_same_time_pull_once(cluster, upstream, tmp_path):
    source = write_model(tmp_path / "source", random_tensors(8, 4 << 20, seed="upstream"))
    upstream.add("org/m", source)
    upstream.pace = 1 << 20
    nodes = cluster.some(3, "--hub-listen", f"127.0.0.1:{PORT}", "--hub-upstream", upstream.endpoint)

    def load(node):
        return client(LOADS, f"http://127.0.0.1:{PORT}", tmp_path / f"home of {node.directory.name}", "org/m",
                      wrapper=node.host.inside)

    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
        for directory in pool.map(load, nodes):
            for name in (MODEL_FILE, "config.json"):
                assert filecmp.cmp(f"{directory}/{name}", source / name, shallow=False)
    size = sum(path.stat().st_size for path in source.iterdir())
    assert size <= sum(upstream.sent.values()) <= 1.05 * size
    for node in nodes:
        assert [one["version"] for one in node.store.json("log", "org/m")["versions"]] == [1]
        assert node.figures()["weft_hub_pulls_total"] == 1 and node.figures()["weft_hub_pull_failures_total"] == 0
    assert sum(node.figures()["weft_pulls_followed_total"] for node in nodes) == 2
