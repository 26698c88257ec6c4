"""Rates of a node: its reads are paced in small pieces, the class of traffic says what waits, and the bytes are right."""
import concurrent.futures
import signal

import pytest

from clusterlib import can_make_networks
from nodes import MODEL_FILE, Cluster
from weftlib import random_tensors, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
PIECE_BYTES_MAX = 128 << 10
RATE = 1 << 20  # bytes a second: 1M, about the least
FILE_BYTES = 16 << 20  # so that reads are held back for longer than the ten seconds for which their windows are leased


def traffic(node, name, traffic_class, end):
    return node.figures()[f'weft_traffic_{name}_total{{class="{traffic_class}",end="{end}"}}']


def held_seconds(node, traffic_class, rate):
    return node.figures()[f'weft_traffic_held_seconds_total{{class="{traffic_class}",rate="{rate}"}}']


def made_source(directory, seed):
    return write_model(directory, random_tensors(4, FILE_BYTES // 4, seed=seed))


def reads_equal(node, source):
    with node.mounted() as mount:
        return (mount.version("model", 1) / MODEL_FILE).read_bytes() == (source / MODEL_FILE).read_bytes()


def assert_was_paced(node, traffic_class, end, rate):
    """By the gate's own counts. While the gate holds bytes back, some read waits there."""
    count = traffic(node, "bytes", traffic_class, end)
    assert count >= FILE_BYTES
    assert traffic(node, "pieces", traffic_class, end) >= count / PIECE_BYTES_MAX
    assert held_seconds(node, traffic_class, rate) >= (FILE_BYTES - PIECE_BYTES_MAX) / RATE / 2


def test_a_fetch_at_the_least_rate_outlasts_the_lease_of_its_windows(cluster, tmp_path):
    source = made_source(tmp_path / "source", "paced")
    publisher = cluster.node()
    reader = cluster.node("--rate-total", "1M")
    cluster.publish(publisher, source, "model")
    report = reader.store.json("prefetch", "model@1")
    assert report["held_by"] == "rate.total"
    assert report["moved_bytes"] >= FILE_BYTES
    assert_was_paced(reader, "ahead", "peer", "rate.total")
    assert publisher.figures()["weft_peer_lease_ends_total"] == 0
    assert reads_equal(reader, source)


def test_a_rate_of_the_origin_holds_back_writes_and_reads_ahead_and_no_reader(tmp_path):
    with Cluster(tmp_path, origin=tmp_path / "origin") as cluster:
        source = made_source(tmp_path / "source", "origin")
        publisher = cluster.node("--rate-origin", "1M")
        cluster.publish(publisher, source, "model")
        publisher.store.weft("stage-out", "model@1")
        assert_was_paced(publisher, "staging", "origin", "rate.origin")
        ahead = cluster.node("--rate-origin", "1M")
        wait_until(lambda: ahead.knows("model@1"))
        assert ahead.store.json("prefetch", "model@1")["held_by"] == "rate.origin"
        assert_was_paced(ahead, "ahead", "origin", "rate.origin")
        assert reads_equal(ahead, source)
        reader = cluster.node("--rate-origin", "1M", "--cold", "stream")
        wait_until(lambda: reader.knows("model@1"))
        assert reads_equal(reader, source)
        assert traffic(reader, "bytes", "foreground", "origin") > 0
        assert held_seconds(reader, "foreground", "rate.origin") == 0


def test_a_copy_for_a_node_that_goes_is_staging(cluster, tmp_path):
    source = made_source(tmp_path / "source", "drained")
    going = cluster.node()
    stays = cluster.node("--rate-staging", "1M")
    cluster.publish(going, source, "model")
    going.store.weft("node", "drain")
    assert_was_paced(stays, "staging", "peer", "rate.staging")
    assert traffic(stays, "bytes", "ahead", "peer") == 0
    assert reads_equal(stays, source)


def reload(node, config, text):
    """Lets the daemon read this configuration."""
    config.write_text(text)
    node.daemon.signal(signal.SIGHUP)
    node.daemon.hears("RELOADING=1")
    node.daemon.hears("READY=1")


def test_a_reload_changes_the_rate_of_reads_that_wait(cluster, tmp_path):
    source = made_source(tmp_path / "source", "reloaded")
    config = tmp_path / "weft.conf"
    config.write_text('[rate]\ntotal = "1M"\n')
    publisher = cluster.node()
    reader = cluster.node("--config", config)
    cluster.publish(publisher, source, "model")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        fetched = pool.submit(reader.store.json, "prefetch", "model@1")
        wait_until(lambda: held_seconds(reader, "ahead", "rate.total") > 0.5)
        reload(reader, config, "")
        assert fetched.result()["held_by"] == "rate.total"
    held = held_seconds(reader, "ahead", "rate.total")
    other = made_source(tmp_path / "other", "unbounded")
    cluster.publish(publisher, other, "other")
    assert reader.store.json("prefetch", "other@1")["held_by"] == ""
    assert held_seconds(reader, "ahead", "rate.total") == held
    reload(reader, config, "[rate]\ntotal = 999999\n")
    assert "rate.total: expected 0 (no bound) or at least 1000000 bytes a second" in reader.daemon.log.read_text()
    assert reads_equal(reader, source)
