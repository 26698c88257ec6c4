"""Other nodes are told of a publish, and a node that follows a model has its bytes before anybody reads them."""
import contextlib
import json
import os
import time

import pytest
from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer

from clusterlib import can_make_networks
from nodes import SECONDS_MAX
from weftlib import Follower, InotifyWatcher, random_tensors, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
BYTES = 2 << 20


def model(tmp_path, number, **options):
    return write_model(tmp_path / f"model{number}", random_tensors(2, BYTES // 2, seed=f"push {number}", **options))


def test_a_reader_is_told_of_what_another_node_publishes(cluster, tmp_path):
    publisher, reader = cluster.some(2)
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
        publisher.store.weft("rm", "--force", "org/m@1")
        removed = json.loads(next(events))  # its tag goes with it, as on a node without a cluster
        assert (removed["event"], removed["version"]) == ("remove", 1)
        publisher.store.publish(model(tmp_path, 2), name="org/m")
        assert json.loads(next(events))["event"] == "publish"


class Handler(FileSystemEventHandler):
    """Of watchdog: what it was told, and where `latest` led then."""

    def __init__(self, place):
        self.place, self.told = place, []

    def on_created(self, event):
        self.told.append(("created", event.src_path))

    def on_moved(self, event):
        self.told.append(("moved", event.dest_path, os.readlink(self.place / "latest")))


@contextlib.contextmanager
def watchdog_on(place):
    handler, observer = Handler(place), Observer()
    observer.schedule(handler, str(place), recursive=True)
    observer.start()
    try:
        yield handler
    finally:
        observer.stop()
        observer.join()


@pytest.mark.parametrize("options", ["announce", "publish"])
def test_inotify_on_a_reading_node(options, cluster, tmp_path):
    """The version is created, its tag moves, and `latest` moves last."""
    publisher, reader = cluster.some(2)
    cluster.publish(publisher, model(tmp_path, 1), "org/m")
    with reader.mounted(options) as mount:
        place = mount / "models/org/m"
        created, moved = f"CREATE,ISDIR {place / '2'}", f"MOVED_TO {place / 'latest'}"
        with InotifyWatcher(place) as watcher, watchdog_on(place) as handler:
            publisher.store.publish(model(tmp_path, 2), name="org/m", tag="prod")
            watcher.saw(created, moved)
            wait_until(lambda: ("moved", str(place / "latest"), "2") in handler.told)
            time.sleep(0.5)
        steps = [line for line in watcher.lines if line.startswith(("CREATE", "MOVED_TO"))]
        assert steps == [created, f"MOVED_TO {place / 'prod'}", moved]
        told_here = [told[:2] for told in handler.told if os.path.dirname(told[1]) == str(place)]  # not of files below
        assert told_here == [
            ("created", str(place / "2")), ("moved", str(place / "prod")), ("moved", str(place / "latest"))]


def test_a_node_that_follows_a_model_fetches_it_at_once(cluster, tmp_path):
    publisher, other = cluster.some(2)
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
