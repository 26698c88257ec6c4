"""Damaged bytes of a node are repaired from a peer, and from the origin."""
import pytest

from clusterlib import can_make_networks
from nodes import MODEL_FILE, Cluster
from weftlib import files_below, random_tensors, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")


def damage(store):
    pack = max((store.path / "packs").glob("*.pack"), key=lambda path: path.stat().st_size)
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 1
    pack.chmod(0o600)
    pack.write_bytes(data)


@pytest.fixture
def source(tmp_path):
    return write_model(tmp_path / "source", random_tensors(4, 1 << 20, seed="repair"))


def assert_repaired(node, source, out, *words):
    found = node.store.weft("fsck", check=False)
    assert found.returncode == 1 and f"affected: model@1 {MODEL_FILE} (tensor " in found.stdout
    assert "repaired: " in node.store.weft("fsck", "--repair", *words).stdout
    node.store.assert_sound()
    node.store.weft("export", "model@1", out)
    assert files_below(out) == files_below(source)


@pytest.mark.parametrize("damaged", ["publisher", "reader"])
def test_from_a_peer(cluster, source, tmp_path, damaged):
    publisher, reader = cluster.some(2)
    cluster.publish(publisher, source, "model")
    reader.store.weft("prefetch", "model@1")
    node, other = (publisher, reader) if damaged == "publisher" else (reader, publisher)
    damage(node.store)
    assert_repaired(node, source, tmp_path / "out")
    if node is publisher:  # its bytes are its own as before
        node.store.weft("evict", "--all")
        other.daemon.kill()
        node.store.weft("export", "model@1", tmp_path / "kept")
        assert files_below(tmp_path / "kept") == files_below(source)


def test_without_a_peer_the_node_keeps_what_it_has(cluster, source):
    node = cluster.node()
    cluster.publish(node, source, "model")
    damage(node.store)
    before = node.store.weft("fsck", check=False).stdout
    done = node.store.weft("fsck", "--repair", check=False)
    assert done.returncode == 1 and "; not repaired: " in done.stdout
    assert node.store.weft("fsck", check=False).stdout == before


def test_from_a_path_through_the_daemon(cluster, source, tmp_path):
    node = cluster.node()
    cluster.publish(node, source, "model")
    damage(node.store)
    assert_repaired(node, source, tmp_path / "out", "--from", source)


@pytest.mark.parametrize("runs", [True, False], ids=["by the daemon", "without a daemon"])
def test_from_the_origin(tmp_path, source, runs):
    with Cluster(tmp_path) as cluster:
        node = cluster.node()
        cluster.publish(node, source, "model")
        node.store.weft("stage-out", "model@1")
        damage(node.store)
        if runs:
            return assert_repaired(node, source, tmp_path / "out")
        node.daemon.stop()
        missing = node.store.weft("fsck", "--repair", check=False)
        assert missing.returncode == 1 and "only a peer may have it" in missing.stdout
        assert_repaired(node, source, tmp_path / "out", "--from", cluster.origin)
