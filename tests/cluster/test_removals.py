"""Bases that are removed while others inherit from them, without an origin: what is freed wrongly is gone for good."""
import json
import random
import threading
import time

import pytest

from clusterlib import can_make_networks
from nodes import MODEL_FILE, SECONDS_MAX
from weftlib import random_tensors, rounds, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
RACES = rounds(50, 1500)
TENSOR_BYTES = 4096
DERIVED = 10  # models whose versions inherit, by turns


class Collector:
    """As a context: nodes that collect garbage all the time; the bytes that each has freed."""

    def __init__(self, *nodes):
        self.nodes, self.freed, self.stop = nodes, dict.fromkeys(nodes, 0), threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def run(self):
        while not self.stop.is_set():
            for node in self.nodes:
                done = node.store.weft("gc", "--json", check=False)
                if done.returncode == 0:  # one that knows not all that is published frees nothing
                    self.freed[node] += json.loads(done.stdout)["bytes_freed"]

    def __exit__(self, *exception):
        self.stop.set()
        self.thread.join()


class Race:
    """The first node publishes a base whose bytes no other has, and then one of the two derives from it while the other
    removes it. By turns the second has fetched the base before."""

    def __init__(self, i, first, second, directory):
        self.base = random_tensors(2, TENSOR_BYTES, seed=f"base {i}")
        self.own = random_tensors(1, 64, seed=f"own {i}", prefix="own")
        self.directory = directory
        self.first_derives, self.fetched_before = i % 2 == 0, i % 4 == 1
        self.first, self.second = first, second
        self.deriver, self.remover = (first, second) if self.first_derives else (second, first)
        self.model = f"d{i % DERIVED}"
        self.version = None  # what survived

    def run(self, shown, number, pause):
        """`shown`: where the second's mount shows this version of the base. `pause`: of the removal; below 0 it is the
        first to begin. Returns the seconds that the import took."""
        spec = f"base@{number}"
        self.first.store.publish(write_model(self.directory / "base", self.base), name="base")
        wait_until(shown.exists, seconds_max=SECONDS_MAX)
        if self.fetched_before:
            self.second.store.weft("prefetch", spec)
        own = write_model(self.directory / "own", self.own) / MODEL_FILE
        derive = ("import", own, "--name", self.model, "--inherit", spec, "--add", "--json")
        begun = time.monotonic() + max(0, -pause)
        if pause < 0:
            removing = self.remover.store.start("rm", spec)
            time.sleep(-pause)
            deriving = self.deriver.store.start(*derive)
        else:
            deriving = self.deriver.store.start(*derive)
            time.sleep(pause)
            removing = self.remover.store.start("rm", spec)
        said, why_refused = deriving.communicate(timeout=60)
        took = time.monotonic() - begun
        _, why = removing.communicate(timeout=60)
        assert removing.returncode == 0, why
        if deriving.returncode == 0:
            self.version = json.loads(said)["version"]
        else:
            assert deriving.returncode == 1 and why_refused.count("\n") == 1, why_refused
        return took

    @property
    def deriver_has_all(self):
        return self.first_derives or self.fetched_before

    @property
    def spec(self):
        return f"{self.model}@{self.version}"

    def assert_whole(self, mount):
        got = (mount.version(self.model, self.version) / MODEL_FILE).read_bytes()
        for tensors in (self.base, self.own):
            for _, _, data in tensors.values():
                assert data in got, self.spec


@pytest.mark.long
def test_removals_race_inheriting_publishes(three, tmp_path):
    """Every version that survives is whole, and what a publish found here stays here."""
    first, second, third = three
    rng = random.Random(11)
    races = [Race(i, first, second, tmp_path) for i in range(RACES)]
    with second.mounted() as mount, Collector(first, second) as collector:
        took = 0.05  # seconds, of the last import: on a slow machine the removal has to pause for longer
        for number, race in enumerate(races, 1):
            took = race.run(mount.version("base", number), number, rng.uniform(-0.6, 1.2) * took)
    for node in (first, second):
        node.store.weft("gc")
        node.store.weft("evict", "--all")
    assert collector.freed[first] > 0
    kept = [race for race in races if race.version]
    for derives in (True, False):
        assert {race.version is not None for race in races if race.first_derives is derives} == {True, False}
    wait_until(lambda: third.store.json("ls") == first.store.json("ls"), seconds_max=SECONDS_MAX)
    derived = {model["model"] for model in third.store.json("ls")["models"]} - {"base"}  # those of which a publish succeeded
    shown = {f"{name}@{one['version']}" for name in derived for one in third.store.json("log", name)["versions"]}
    assert shown == {race.spec for race in kept}
    for race in kept:
        if race.deriver_has_all:
            assert race.deriver.store.json("prefetch", race.spec)["moved_bytes"] == 0
        assert first.store.json("prefetch", race.spec)["moved_bytes"] < TENSOR_BYTES  # the deriver's own, at most
    with first.mounted() as here, third.mounted() as there:
        for race in kept:
            race.assert_whole(here)
            race.assert_whole(there)  # also where the first alone has the base, of which the third knows nothing
    for node in three:
        node.daemon.stop()
        node.store.assert_sound()
