"""Other nodes are told of a publish, and a node that follows a model has its bytes before anybody reads them."""
import json
import time

import pytest

from clusterlib import can_make_networks
from nodes import SECONDS_MAX
from weftlib import Follower, InotifyWatcher, random_tensors, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
BYTES = 2 << 20


def model(tmp_path, number, **options):
    return write_model(tmp_path / f"model{number}", random_tensors(2, BYTES // 2, seed=f"push {number}", **options))


def test_a_reader_is_told_of_what_another_node_publishes(cluster, tmp_path):
    publisher, reader = cluster.node(), cluster.node()
    with reader.mounted() as mount, open(mount / ".weft/events", encoding="utf-8") as events, \
            Follower("--store", reader.store.path, "wait", "org/m", "--here") as waiting, \
            Follower("--store", reader.store.path, "watch", "--json") as watcher:
        time.sleep(0.5)
        publisher.store.publish(model(tmp_path, 1), name="org/m", tag="prod")
        told, tagged = json.loads(next(events)), json.loads(next(events))
        assert (told["event"], told["model"], told["version"]) == ("publish", "org/m", 1)
        assert told["bytes"] > BYTES and told["new_bytes"] in (None, told["bytes"])  # its content may not be here yet
        assert (tagged["event"], tagged["version"], tagged["tags"]) == ("tag", 1, ["prod"])
        assert [json.loads(watcher.line())["position"] for _ in range(2)] == [told["position"], tagged["position"]]
        assert waiting.line() == f"org/m@1  {mount / 'models/org/m/1'}\n"
        assert reader.fetched() >= BYTES
        publisher.store.weft("rm", "org/m@1")
        removed = json.loads(next(events))  # its tag goes with it, as on a node without a cluster
        assert (removed["event"], removed["version"]) == ("remove", 1)
        publisher.store.publish(model(tmp_path, 2), name="org/m")
        assert json.loads(next(events))["event"] == "publish"


def test_inotify_on_a_reading_node(cluster, tmp_path):
    publisher, reader = cluster.node(), cluster.node()
    cluster.publish(publisher, model(tmp_path, 1), "org/m")
    with reader.mounted("announce") as mount, InotifyWatcher(mount / "models/org/m") as watcher:
        publisher.store.publish(model(tmp_path, 2), name="org/m", tag="prod")
        place = mount / "models/org/m"
        watcher.saw(f"CREATE,ISDIR {place / '2'}", f"MOVED_TO {place / 'prod'}")
        watcher.saw(f"CREATE,ISDIR {place / '2'}", f"MOVED_TO {place / 'latest'}")


def test_a_node_that_follows_a_model_fetches_it_at_once(cluster, tmp_path):
    publisher, other = cluster.node(), cluster.node()
    follower = cluster.node("--follow", "org", "--follow", "m")
    for number, name in enumerate(["org/a", "m", "organ", "org/a"]):
        cluster.publish(publisher, model(tmp_path, number), name)
    wait_until(lambda: follower.fetched() >= 3 * BYTES, seconds_max=SECONDS_MAX)
    time.sleep(1)
    assert follower.fetched() < 4 * BYTES and other.fetched() == 0
    before = follower.fetched()
    with follower.mounted() as mount:
        assert (mount / "models/org/a/2/model.safetensors").read_bytes() == \
            (tmp_path / "model3/model.safetensors").read_bytes()
    assert follower.fetched() == before


def test_what_came_meanwhile_is_fetched_at_the_start(cluster, tmp_path):
    publisher = cluster.node()
    cluster.publish(publisher, model(tmp_path, 1), "m")
    follower = cluster.node("--follow", "m")
    wait_until(lambda: follower.knows("m@1") and follower.fetched() >= BYTES, seconds_max=SECONDS_MAX)
