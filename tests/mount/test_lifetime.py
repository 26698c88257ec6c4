"""Bytes that somebody has open, mapped, or still in a pipe stay what they are, whatever becomes of their version, of the
store and of the servers meanwhile. Every file of two versions is used in one way, then things happen in some order, and
after each of them every byte is compared, with no page of it in memory."""
import contextlib
import json
import os
import random
import signal

import pytest

from assembled import assembled
from uses import Mapped, Opened, OpenedMapped, Piped, Sent, drop_caches
from weftlib import (MOUNT_WEFT, PATIENCE, WEFT, Mount, Store, files_below, is_alive, overlay_over,
                     programs_for_everybody, random_tensors, rounds, run, wait_until, write_model)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="passthrough, overlays and dropping caches need root")

TENSOR_BYTES = 256 << 10
DERIVED = "model.safetensors"
# Of the version that is removed: a file of one pack, a composed one that is assembled, a composed one that is not, and
# what is made of tensors and of records alone.
FILES = {"base": ["models/own.bin", "models/config.json", f"models/{DERIVED}", "tensors/layer.3.weight.npy",
                  "layers/layer/2.safetensors"],
         "big": [f"models/{DERIVED}"],
         "derived": [f"models/{DERIVED}", "lineage/info.json", "tensors/layer.0.weight.npy", "tensors/layer.5.weight.npy",
                     "layers/layer.safetensors", "layers/layer/1.safetensors", "lineage/owners.tsv",
                     "lineage/diff/base@1"]}
SEEDS = range(1, rounds(1, 20) + 1)  # of drawn orders; a failure names what happened
EVENTS = ("collect", "collect without a server", "kill", "upgrade", "evict", "rebuild")


def status_of(mount):
    return json.loads((mount / ".weft/status").read_text())["mount"]


class World:
    """A store with versions that share most of their bytes, some of which go and some stay, and its mount."""

    def __init__(self, mount, directory):
        self.mount, self.store, self.directory = mount, mount.store, directory
        programs_for_everybody(directory)
        self.programs = [(directory / "weft", directory / "mount.weft"), (WEFT, MOUNT_WEFT)]
        self.removed = False
        shared = random_tensors(8, TENSOR_BYTES, seed="lifetime")
        self.publish("base", shared, [("own.bin", os.urandom(1 << 20))])
        self.publish("derived", shared | random_tensors(2, TENSOR_BYTES, seed="changed"))
        large = random_tensors(4, 1 << 20, seed="large", prefix="large")  # worth assembling
        self.publish("other", large)
        self.publish("big", large | random_tensors(1, 1 << 20, seed="big", prefix="large"))
        # What stays shares a part of each pack that loses the rest.
        self.publish("stays", shared | random_tensors(7, TENSOR_BYTES, seed="stays"))
        self.publish("large", large | random_tensors(3, 1 << 20, seed="stays", prefix="large"))
        assembled(mount, "big", (directory / "big" / DERIVED).read_bytes())
        self.expected = {name: (self.path(*name)).read_bytes() for name in ALL}
        for model in FILES:
            source = files_below(directory / model)
            for path, data in source.items():
                assert self.expected.get((model, f"models/{path}"), data) == data
        self.kill()  # the next has no pack open because of all this

    def publish(self, model, tensors, files=()):
        self.store.publish(write_model(self.directory / model, tensors, files), name=model)

    def path(self, model, path):
        return self.mount.at(model, 1, path)

    def gc(self):
        return self.store.json("gc")

    def collect(self):
        if not self.removed:
            for model in [*FILES, "other"]:
                self.store.weft("rm", f"{model}@1")
        self.removed = True
        return self.gc()

    def lose_server(self):
        server = status_of(self.mount)["pid"]
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: not is_alive(server))
        return server

    def await_server(self, old):
        wait_until(lambda: status_of(self.mount)["pid"] != old, seconds_max=30 * PATIENCE)

    def collect_without_a_server(self):
        """The supervisor is stopped, so that nobody takes the place of the server yet."""
        supervisor = status_of(self.mount)["supervisor_pid"]
        os.kill(supervisor, signal.SIGSTOP)
        try:
            server = status_of(self.mount)["pid"]
            os.kill(server, signal.SIGKILL)
            wait_until(lambda: not is_alive(server))
            self.collect()
        finally:
            os.kill(supervisor, signal.SIGCONT)
        self.await_server(server)

    def kill(self):
        self.await_server(self.lose_server())

    def upgrade(self):
        weft, program = self.programs[0]
        self.programs.reverse()
        # A server answers a moment before its supervisor knows that it does.
        wait_until(lambda: "not serving just now" not in self.try_upgrade(weft))
        status = status_of(self.mount)
        for pid in (status["pid"], status["supervisor_pid"]):
            assert os.readlink(f"/proc/{pid}/exe") == str(program)

    def try_upgrade(self, weft):
        done = run([weft, "mount", "--upgrade", self.mount.path], check=False)
        assert done.returncode == 0 or "not serving just now" in done.stderr
        return done.stderr

    def evict(self):
        self.store.weft("cache", "--max", "0")

    def rebuild(self):
        self.store.weft("fsck", "--rebuild")

    def happens(self, event):
        getattr(self, event.replace(" ", "_"))()


OPEN = [Opened, OpenedMapped]
LEFT_MAPPED = [Mapped]
IN_FLIGHT = [Piped, Sent]
# Whether other files of the versions are open too: whoever has one open keeps all of its version.
ALL = [(model, path) for model, paths in FILES.items() for path in paths]
PASSED_THROUGH = [("base", "models/own.bin"), ("base", f"models/{DERIVED}"), ("big", f"models/{DERIVED}")]


class Users:
    """Some files of what goes, each used in these ways. Closes what is left at its end."""

    def __init__(self, world, ways, names):
        self.world = world
        self.used = [(name, way(world.path(*name))) for way in ways for name in names]

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for _, one in self.used:
            one.close()

    def check(self, when):
        for _, one in self.used:
            one.drop()
        drop_caches()
        for name, one in self.used:
            assert one.reads(self.world.expected[name]), (when, name, type(one).__name__)

    def check_in_flight(self, when):
        for name, one in self.used:
            if isinstance(one, (Piped, Sent)):
                assert one.moved > 0
                assert one.read_once() == self.world.expected[name][:one.moved], (when, name, type(one).__name__)


@contextlib.contextmanager
def world_in(directory, parent):
    store = Store(parent / "store")
    with Mount(store, directory / "mnt", options=f"log={directory}/weft.log") as mount:
        yield World(mount, directory)


@pytest.fixture(name="world", params=["disk", "overlay"])
def any_world(request, tmp_path):
    with contextlib.ExitStack() as stack:
        parent = tmp_path
        if request.param == "overlay":
            parent = stack.enter_context(overlay_over(tmp_path / "lower", tmp_path / "overlay"))
        yield stack.enter_context(world_in(tmp_path, parent))


def assert_all_comes_back(world):
    """Once nobody has them open, the versions go, and what stays is whole."""
    wait_until(lambda: world.gc()["versions_open"] == 0, seconds_max=30 * PATIENCE, pause=0.05)
    assert world.store.json("status")["open_removed"] == 0
    for model in ("stays", "large"):
        got = (world.mount.version(model, 1) / DERIVED).read_bytes()
        assert got == (world.directory / model / DERIVED).read_bytes()
    world.store.assert_sound()


def order_of(seed):
    """Of the events; of the two that collect, the first has its place among the others, and the second comes last."""
    rng = random.Random(seed)
    events = [event for event in EVENTS if not event.startswith("collect")]
    rng.shuffle(events)
    events.insert(rng.randrange(len(events)), EVENTS[seed % 2])
    return [*events, EVENTS[(seed + 1) % 2]]


@pytest.mark.long
@pytest.mark.parametrize("ways, names", [(OPEN, ALL), (LEFT_MAPPED, ALL), (LEFT_MAPPED, PASSED_THROUGH),
                                         (IN_FLIGHT, ALL)],
                         ids=["open", "mapped", "mapped and passed through", "in flight"])
@pytest.mark.parametrize("seed", SEEDS)
def test_bytes_in_use_stay(world, ways, names, seed):
    done = []
    with Users(world, ways, names) as users:
        for event in order_of(seed):
            world.happens(event)
            done.append(event)
            users.check(done)
        users.check_in_flight(done)
    assert_all_comes_back(world)
