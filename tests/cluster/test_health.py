"""`weft health` of a cluster: what it finds, its exit status, its metrics, and what gc does when a node is absent."""
import json

import pytest

from clusterlib import can_make_networks
from nodes import SECONDS_MAX
from weftlib import random_tensors, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
WELL, WARNINGS, TROUBLE = 0, 1, 2


def health(node):
    """The exit status, and the report."""
    done = node.store.weft("health", "--json", check=False)
    return done.returncode, json.loads(done.stdout)


def found(report):
    return {(one["level"], one["what"]) for one in report["findings"]}


def sees_absent(node, name):
    return any(one["name"] == name and not one["present"] for one in health(node)[1]["facts"]["nodes"])


def offsets(nodes):
    return {one["node"]: (one["clock_offset_seconds"], one["clock_ahead"], one["clock_error_seconds"])
            for one in nodes if not one.get("self")}


def model(tmp_path, seed):
    return write_model(tmp_path / seed, random_tensors(1, 50_000, seed=seed))


def test_copies_and_absent_nodes(three, cluster, tmp_path):
    first, second, third = three
    code, report = health(first)
    assert report["facts"]["clustered"] and len(report["facts"]["nodes"]) == 3
    assert not {what for _, what in found(report)} & {"versions-absent", "versions-on-one-node", "node-absent"}
    cluster.publish(third, model(tmp_path, "alone"), "alone")
    cluster.publish(third, model(tmp_path, "shared"), "shared")
    second.holds("shared@1")
    code, report = health(first)
    assert code == WARNINGS and ("warning", "versions-on-one-node") in found(report)
    assert [(one["node"], one["named"]) for one in report["facts"]["sole"]] == [(third.directory.name, ["alone@1"])]
    samples = first.figures()
    assert samples["weft_health_verdict"] == WARNINGS
    third_id = report["facts"]["sole"][0]["id"]
    assert samples[f'weft_health_sole_versions{{node="{third.directory.name}",id="{third_id}"}}'] == 1
    assert samples['weft_health_findings{finding="versions-on-one-node"}'] == 1
    clocks = [name for name in samples if name.startswith("weft_health_clock_offset_seconds{")]
    assert len(clocks) == 3
    # Those of the status are the ones that were measured last; weftd may measure again at any time.
    wait_until(lambda: offsets(health(first)[1]["facts"]["nodes"]) == offsets(first.store.json("status")["clocks"]),
               seconds_max=SECONDS_MAX)
    assert len(first.store.json("status")["clocks"]) == 2
    assert "\nclocks    2 of 2 other nodes compared, farthest " in first.store.weft("status", check=False).stdout
    assert first.store.weft("status", "--all", check=False).stdout.count("\nclock     ") == 2

    third.daemon.stop()
    wait_until(lambda: sees_absent(first, third.directory.name), seconds_max=SECONDS_MAX)
    code, report = health(first)
    assert code == TROUBLE and {("trouble", "versions-absent"), ("warning", "node-absent")} <= found(report)
    trouble = next(one for one in report["findings"] if one["what"] == "versions-absent")
    assert third.directory.name in trouble["text"] and "alone@1" in trouble["text"] and "shared@1" not in trouble["text"]
    text = first.store.weft("health", check=False).stdout
    assert text.splitlines()[-1].startswith("health    trouble: ")
    assert first.store.weft("status", check=False).stdout.splitlines()[-1].startswith("cluster   trouble: ")
    assert third.directory.name in first.store.weft("peers").stdout

    # gc goes on, and names what it cannot decide.
    done = first.store.weft("gc", "--json", check=False)
    undecided = json.loads(done.stdout)["undecided"]
    assert done.returncode == 1 and "alone@1" in {one["version"] for one in undecided}
    assert all(third.directory.name in one["command"] for one in undecided if one["version"] == "alone@1")

    third.daemon.start()
    wait_until(lambda: ("warning", "node-absent") not in found(health(first)[1]), seconds_max=SECONDS_MAX)
    assert json.loads(first.store.weft("gc", "--json").stdout)["undecided"] == []


def test_etcd_is_away(three, cluster):
    first = three[0]
    cluster.etcd.stop_answering()
    try:
        wait_until(lambda: ("trouble", "etcd-unreachable") in found(health(first)[1]), seconds_max=SECONDS_MAX)
        code, report = health(first)
        assert code == TROUBLE and ("warning", "copies-unknown") in found(report)
        done = first.store.weft("gc", check=False)
        assert done.returncode == 1 and "weft health" in done.stdout
    finally:
        cluster.etcd.answer_again()


def test_without_a_daemon(three):
    first = three[0]
    first.daemon.stop()
    code, report = health(first)
    assert code == TROUBLE and found(report) >= {("trouble", "node-silent")}
