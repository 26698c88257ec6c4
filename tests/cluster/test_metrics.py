"""The metrics of a node of a cluster: the names that the dashboard and the alerts use are there, and keep Prometheus'
rules; the mount of the node is among them."""
import json
import re
import shutil

import pytest

from clusterlib import can_make_networks
from daemonlib import metrics
from nodes import SECONDS_MAX, Cluster
from weftlib import TOP, random_tensors, run, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
RULES = TOP / "daemon/prometheus/weft.rules.yml"
DASHBOARD = TOP / "daemon/grafana/weft.json"
NAME = re.compile(r"\b(?:weft|process)_[a-z0-9_]+\b")
FOREIGN_UNITS = re.compile(r"_(ms|us|ns|milliseconds|minutes|hours|kb|mb|kilobytes|percent)(_|$)|_max$")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """What Prometheus gets from a node with an origin, peers and a mount that was read; and the daemon's mount point."""
    directory = tmp_path_factory.mktemp("metrics")
    (directory / "origin").mkdir()
    with Cluster(directory, origin=directory / "origin", peers=True) as cluster:
        node = cluster.node("--hub-listen", "127.0.0.1:8080")  # whose metrics are among them
        source = write_model(directory / "source", random_tensors(2, 64 << 10, seed="metrics"))
        cluster.publish(node, source, "model")
        with node.mounted() as mount:
            (mount.version("model", 1) / "model.safetensors").read_bytes()
            node.figures()  # the first look begins the counts
            wait_until(lambda: {"weft_store_versions", "weft_origin_reachable"} <= node.figures().keys()
                       and node.figures()["weft_mounts"] == 1, seconds_max=SECONDS_MAX)
            yield node.daemon.ask("metrics")["text"], str(mount.path)


def families(text):
    """Name -> type, of the TYPE lines."""
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, flags=re.M))


def names_of_samples(text):
    """All names that a query may use."""
    return {name.split("{")[0] for name in metrics(text)}


def used(path):
    text = path.read_text(encoding="utf-8")
    return set(NAME.findall(text))


@pytest.mark.parametrize("path", [RULES, DASHBOARD], ids=lambda path: path.name)
def test_dashboard_and_alerts_use_metrics_that_exist(page, path):
    known = families(page[0]).keys() | names_of_samples(page[0])
    assert used(path)
    assert sorted(used(path) - known) == []


def test_the_dashboard_is_one():
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) >= 20
    for panel in board["panels"]:
        assert all(NAME.search(target["expr"]) for target in panel["targets"]), panel["title"]


def test_names_keep_the_rules(page):
    text = page[0]
    helped = set(re.findall(r"^# HELP (\S+) \S", text, flags=re.M))
    assert helped == families(text).keys()
    for name, kind in families(text).items():
        assert re.fullmatch(r"(weft|process)_[a-z0-9_]+", name), name
        assert (kind == "counter") == name.endswith("_total"), (name, kind)
        assert not FOREIGN_UNITS.search(name), name
        assert kind in ("counter", "gauge", "histogram", "summary"), name
    samples = list(metrics(text))
    assert len(samples) == len(set(samples))
    assert text.count("\n# TYPE ") + text.startswith("# TYPE ") == len(families(text))


def test_every_metric_is_in_the_page(page):
    described = set(NAME.findall((TOP / "man/weftd.8").read_text(encoding="utf-8")))
    assert sorted(families(page[0]).keys() - described) == []
    gone = {name for name in described if name.startswith("weft_") and name not in families(page[0])}
    assert sorted(gone) == []


def test_the_process_and_its_build_are_there(page):
    samples = metrics(page[0])
    assert samples["process_resident_memory_bytes"] > 1 << 20
    assert samples["process_open_fds"] > 5
    assert samples["process_start_time_seconds"] > 1e9
    build = [name for name in samples if name.startswith("weft_build_info{")]
    assert len(build) == 1 and 'version="' in build[0] and 'commit="' in build[0]


def test_the_mount_is_there(page):
    text, directory = page
    samples = metrics(text)
    mount = f'directory="{directory}",uid="0"'
    assert samples[f'weft_mount_request_duration_seconds_count{{{mount},request="lookup"}}'] > 0
    assert samples[f'weft_mount_request_duration_seconds_bucket{{{mount},request="lookup",le="+Inf"}}'] \
        == samples[f'weft_mount_request_duration_seconds_count{{{mount},request="lookup"}}']
    assert samples[f"weft_mount_restarts_total{{{mount}}}"] == 0


def test_the_sizes_are_there(page):
    samples = metrics(page[0])
    assert samples["weft_store_versions"] == 1
    assert samples["weft_unsaved_bytes"] == 0
    assert samples["weft_origin_reachable"] == 1
    assert 0 < samples["weft_disk_free_bytes"] < samples["weft_disk_size_bytes"]
    assert samples["weft_registry_request_duration_seconds_count"] > 0
    assert samples["weft_registry_request_duration_seconds_sum"] > 0


def test_promtool_finds_no_mistake(page):
    if not shutil.which("promtool"):
        pytest.skip("no promtool here: Debian's package prometheus has it")
    done = run(["promtool", "check", "metrics"], stdin=None, input=page[0], check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    run(["promtool", "check", "rules", "--lint=all", "--lint-fatal", RULES])
