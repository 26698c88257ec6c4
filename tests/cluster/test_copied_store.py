"""A store and its copy are one node: only one of them runs at a time."""
import shutil
import subprocess

from threenodes import SECONDS_MAX, Node
from weftlib import environment, wait_until


def test_a_copied_store_is_refused_beside_its_original(network, etcd, tmp_path, small_model):
    """The copy says which host has the node, and ends; the original goes on. Later the copy may take its place."""
    original, copy = (Node(network.host(), etcd, tmp_path, name) for name in ("n0", "copy"))
    with original.daemon:
        wait_until(original.connected, seconds_max=SECONDS_MAX)
    shutil.rmtree(copy.store.path, ignore_errors=True)
    shutil.copytree(original.store.path, copy.store.path, symlinks=True,
                    ignore=shutil.ignore_patterns("*.sock"))
    with original.daemon:
        wait_until(original.connected, seconds_max=SECONDS_MAX)
        refused = subprocess.run([*copy.daemon.wrapper, *copy.daemon.words()], stdin=subprocess.DEVNULL, text=True,
                                 stderr=subprocess.PIPE, env=environment(), timeout=SECONDS_MAX + 30)
        assert refused.returncode == 1
        assert "another weftd is this node already: n0 at " in refused.stderr.splitlines()[-1], refused.stderr
        original.store.publish(small_model, name="m")
    with copy.daemon:
        wait_until(copy.connected, seconds_max=SECONDS_MAX)
        copy.store.publish(small_model, name="m")
        assert copy.versions("m") == [1]


def test_a_killed_daemon_comes_back_at_once(network, etcd, tmp_path, small_model):
    """Its key is still there; the store is in the same place, so nothing of that process runs."""
    node = Node(network.host(), etcd, tmp_path, "n0")
    with node.daemon:
        wait_until(node.connected, seconds_max=SECONDS_MAX)
        node.daemon.kill()
        node.daemon.start()
        wait_until(node.connected, seconds_max=SECONDS_MAX)
        node.store.publish(small_model, name="m")
