"""Versions in memory, as tests make them and look at them."""
import contextlib
import json
import os

import numpy as np

from daemonlib import Daemon
from nodes import SECONDS_MAX, fuse_directory
from power import StoreOn, cut_power
from weftlib import wait_until

MIB = 1 << 20
FILE = "weights.npy"


def write_weights(path, seed, mib=8):
    path.mkdir(exist_ok=True)
    np.save(path / FILE, np.random.default_rng(seed).integers(0, 1 << 62, mib * MIB // 8, dtype=np.int64))
    return path


def newest(store, model):
    return store.json("log", model)["versions"][0]


def publish(store, path, name, durability="memory"):
    return store.publish(path, name=name, durability=durability)


class Alone:
    """A store and its weftd on a machine, of no cluster."""

    def __init__(self, machine, *options):
        self.machine = machine
        self.store = StoreOn(machine, machine.where / "store")
        self.daemon = Daemon(self.store, *options, wrapper=machine.inside)
        self.daemon.log = machine.boot.parent / "weftd.log"

    def __enter__(self):
        self.daemon.start()
        return self

    def __exit__(self, *exception):
        self.daemon.kill()
        self.daemon.close()

    def cut(self):
        cut_power(self.machine, self.daemon)


@contextlib.contextmanager
def holding_up_the_flush(node, tmp_path):
    """By a publish of slow bytes, which goes on for longer than what is inside. The flush waits for it at most five seconds
    before each 16 MiB that it writes, and before the last step."""
    slow = write_weights(tmp_path / "slow", 7, mib=64)
    with fuse_directory(slow, tmp_path / "slow-disk", f"--read-rate={MIB}"):
        publishing = node.store.start("import", tmp_path / "slow-disk", "--name", "slow")
        try:
            wait_until(lambda: os.listdir(node.store.path / "tmp"), seconds_max=SECONDS_MAX)
            yield
        finally:
            publishing.kill()
            publishing.communicate()


def events_since_the_start(store, count):
    watch = store.start("watch", "--since", "0", "--json")
    try:
        return [json.loads(watch.stdout.readline()) for _ in range(count)]
    finally:
        watch.terminate()
        watch.communicate()
