"""Servers that die, hang, or are replaced under a mount that goes on; supervisors that die. WEFT_KILL_PAUSE (seconds)
gives servers that start slowly, as those of a sanitizer do, more time between kills."""
import contextlib
import errno
import hashlib
import json
import mmap
import multiprocessing
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import threading
import time

import pytest

from assembled import container_of, publish_family
from weftlib import (BUILD, LENGTH, MOUNT_WEFT, PATIENCE, WEFT, Mount, files_below, foreground_mount, is_alive,
                     is_mounted, programs_for_everybody, random_tensors, rounds, run, wait_until, write_model)

RESTARTS = rounds(20, 500)
PAUSE = float(os.environ.get("WEFT_KILL_PAUSE", "0.02"))
TENSORS, TENSOR_BYTES = 8, 1 << 20


@pytest.fixture
def model(tmp_path):
    return write_model(tmp_path / "model", random_tensors(TENSORS, TENSOR_BYTES, seed="restart"))


@pytest.fixture
def mount(store, model, tmp_path):
    store.publish(model, name="m")
    with Mount(store, tmp_path / "mnt", options=f"log={tmp_path}/weft.log") as mounted:
        yield mounted


def status_of(mount):
    return json.loads((mount.path / ".weft/status").read_text())["mount"]


def children(pid):
    with contextlib.suppress(OSError):
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def new_server(mount, old):
    """Waits until another server than `old` serves."""
    wait_until(lambda: status_of(mount)["pid"] != old, seconds_max=30)
    return status_of(mount)["pid"]


def kill_and_wait(pid, number=signal.SIGKILL):
    os.kill(pid, number)
    wait_until(lambda: not is_alive(pid), seconds_max=30)


def read_uncached(fd, size):
    """Through the server, whatever the page cache holds."""
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    return os.pread(fd, size, 0)


def files_of(mount):
    """TREE/PATH -> bytes: the files of m@1 that do not change."""
    return {f"{tree}/{name}": data for tree in ("models", "layers", "tensors", "safetensors")
            for name, data in files_below(mount.version("m", 1, tree)).items()}


class Readers:
    """Processes that read a version in different ways until told to stop; each error is theirs, and fails the test."""

    def __init__(self, mount, expected):
        self.mount, self.expected = mount, expected
        self.models = sorted(os.listdir(mount / "models"))
        self.stop = multiprocessing.Event()
        self.results = multiprocessing.Queue()
        ways = [self.views_through_the_server, self.container_by_the_kernel, self.maps, self.directories]
        self.processes = [multiprocessing.Process(target=self.loop, args=(way,)) for way in ways]

    def __enter__(self):
        for process in self.processes:
            process.start()
        return self

    def __exit__(self, *exception):
        self.stop.set()
        for process in self.processes:
            process.join(60)
            if process.is_alive():
                process.kill()

    def loop(self, way):
        rounds = 0
        try:
            step = way()
            while not self.stop.is_set():
                next(step)
                rounds += 1
            self.results.put((way.__name__, rounds, ""))
        except BaseException as error:  # pylint: disable=broad-except
            self.results.put((way.__name__, rounds, repr(error)))

    def path(self, name):
        return self.mount.at("m", 1, name)

    def views(self):
        return sorted(name for name in self.expected if name.startswith("tensors/"))

    def views_through_the_server(self):
        held = {name: os.open(self.path(name), os.O_RDONLY) for name in self.views()}
        while True:
            for name, fd in held.items():
                assert read_uncached(fd, 2 * TENSOR_BYTES) == self.expected[name], name
                assert self.path(name).stat().st_size == len(self.expected[name])
            yield

    def container_by_the_kernel(self):
        path, expected = self.path("models/model.safetensors"), self.expected["models/model.safetensors"]
        held = os.open(path, os.O_RDONLY)
        while True:
            assert os.pread(held, len(expected), 0) == expected
            assert path.read_bytes() == expected
            yield

    def maps(self):
        """Of files whose descriptors are closed: pages are dropped and faulted in again."""
        maps = {}
        for name in ["models/model.safetensors", *self.views()[:2]]:
            with open(self.path(name), "rb") as file:
                maps[name] = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        while True:
            for name, view in maps.items():
                fd = os.open(self.path(name), os.O_RDONLY)
                view.madvise(mmap.MADV_DONTNEED)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)
                assert hashlib.sha256(view).digest() == hashlib.sha256(self.expected[name]).digest(), name
            yield

    def directories(self):
        names = sorted(os.path.basename(name) for name in self.views())
        held = os.open(self.mount.tensors("m", 1), os.O_RDONLY | os.O_DIRECTORY)
        changing = os.open(self.mount / "models", os.O_RDONLY | os.O_DIRECTORY)
        while True:
            assert sorted(os.listdir(held)) == names
            assert sorted(os.listdir(changing)) == self.models
            assert sorted(os.listdir(self.mount.tensors("m", 1))) == names
            assert os.readlink(self.mount / "layers/m/latest") == "1"
            yield

    def check(self):
        """After the stop: every reader got on, and none saw an error."""
        done = [self.results.get(timeout=60) for _ in self.processes]
        assert [entry for entry in done if entry[2]] == []
        assert all(rounds > 0 for _, rounds, _ in done), done
        return done


def kill_servers(mount, supervisor, restarts):
    """SIGKILL and SIGSEGV by turns, until so many servers were followed by another. The kills in between ask nothing of
    the server: it may be one that is just starting."""
    kills, end = 0, time.monotonic() + 60 * PATIENCE * max(1, LENGTH)
    while status_of(mount)["restarts"] < restarts:
        assert time.monotonic() < end, f"{status_of(mount)['restarts']} restarts after {kills} kills"
        for _ in range(7):
            for server in children(supervisor)[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(server, signal.SIGKILL if kills % 2 else signal.SIGSEGV)
            time.sleep(PAUSE * (kills % 7))
            kills += 1


@pytest.mark.long
@pytest.mark.parametrize("assemble", ["no room", "assembled"])
def test_restarts_under_readers_of_composed_files(store, tmp_path, assemble):
    """Their bytes lie in two packs, and meanwhile, where there is room, they get a file of their own."""
    family = publish_family(store, tmp_path, ["m"], tensors=TENSORS, changed=2)
    room = "1" if assemble == "no room" else "1G"
    with Mount(store, tmp_path / "mnt", options=f"assembly_cache_max={room}") as mounted:
        assert (mounted.version("m", 1) / "model.safetensors").stat().st_size == len(family["m"])
        expected = files_of(mounted)
        with Readers(mounted, expected) as readers:
            kill_servers(mounted, status_of(mounted)["supervisor_pid"], RESTARTS // 2)
            time.sleep(0.5)
        readers.check()


@pytest.mark.long
def test_restarts_under_load(mount):
    """Bytes are checked all the time."""
    expected = files_of(mount)
    before = status_of(mount)
    with Readers(mount, expected) as readers:
        kill_servers(mount, before["supervisor_pid"], RESTARTS)
        time.sleep(0.5)
    print(readers.check())
    after = status_of(mount)
    assert after["supervisor_pid"] == before["supervisor_pid"]
    assert after["mode"] == before["mode"]
    assert after["restarts"] >= RESTARTS


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT])
def test_a_server_that_crashes_is_followed_by_another(mount, number):
    before = status_of(mount)
    with open(mount.version("m", 1) / "model.safetensors", "rb") as held:
        kill_and_wait(before["pid"], number)
        after = status_of(mount)
        assert after["pid"] != before["pid"] and is_alive(after["pid"])
        assert after["restarts"] == before["restarts"] + 1
        assert held.read() == (mount.version("m", 1) / "model.safetensors").read_bytes()


def test_packs_stay_locked_over_restarts(store, mount, model):
    """What is open when a server dies is not collected, and it is when it was closed: no lock is left behind."""
    view = mount.version("m", 1) / "model.safetensors"
    other = write_model(model.parent / "other", random_tensors(1, 4096, seed="other"))
    store.publish(other, name="m")
    expected = view.read_bytes()
    with open(view, "rb") as held:
        server = status_of(mount)["pid"]
        for _ in range(5):
            kill_and_wait(server, signal.SIGKILL)
            server = new_server(mount, server)
        store.weft("rm", "m@1")
        store.weft("gc")
        assert held.read() == expected
    before = store.pack_bytes()
    wait_until(lambda: (store.weft("gc"), store.pack_bytes() < before - TENSORS * TENSOR_BYTES // 2)[1], pause=0.1)


def test_a_server_that_does_not_come_up_is_given_up(store, model, tmp_path):
    """With the reason, and so that nobody waits: the mount goes away."""
    store.publish(model, name="m")
    log = tmp_path / "weft.log"
    with Mount(store, tmp_path / "mnt", options=f"log={log}") as mount:
        server, supervisor = status_of(mount)["pid"], status_of(mount)["supervisor_pid"]
        (store.path / "index").rename(store.path / "index.away")
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: not is_mounted(mount.path), seconds_max=30)
        wait_until(lambda: not is_alive(supervisor))
    assert "got nowhere" in log.read_text() and str(store.path) in log.read_text()


class Held:
    """Files that are open and mapped, and read past the page cache all the while: none may fail or read wrong."""

    def __init__(self, files):
        self.files = files  # path -> its bytes
        self.rounds, self.failures, self.stop = 0, [], threading.Event()
        self.fds, self.maps = {}, {}
        for path in files:
            self.fds[path] = os.open(path, os.O_RDONLY)
            self.maps[path] = mmap.mmap(self.fds[path], 0, prot=mmap.PROT_READ)
        self.thread = threading.Thread(target=self.loop)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.stop.set()
        self.thread.join()
        for path, fd in self.fds.items():
            self.maps[path].close()
            os.close(fd)

    def read_once(self):
        for path, expected in self.files.items():
            assert read_uncached(self.fds[path], len(expected)) == expected, path
            self.maps[path].madvise(mmap.MADV_DONTNEED)
            os.posix_fadvise(self.fds[path], 0, 0, os.POSIX_FADV_DONTNEED)
            assert self.maps[path][:] == expected, path

    def loop(self):
        while not self.stop.is_set():
            try:
                self.read_once()
                self.rounds += 1
            except (OSError, AssertionError) as failure:
                self.failures.append(failure)
                return

    def check(self, rounds=3):
        """That so many rounds more go well."""
        before = self.rounds
        wait_until(lambda: self.rounds >= before + rounds or self.failures, seconds_max=60)
        assert self.failures == []


@pytest.fixture
def held_kinds(store, tmp_path):
    """A mount that assembles nothing, and of it files of each way to be read: path -> bytes."""
    containers = publish_family(store, tmp_path / "source", ["derived"])
    with Mount(store, tmp_path / "mnt", options=f"log={tmp_path}/weft.log,assembly_cache_max=0") as mount:
        view = mount.tensors("derived", 1) / "layer.0.weight.npy"
        base = mount.version("base", 1) / "model.safetensors"
        yield mount, {base: (tmp_path / "source/base/model.safetensors").read_bytes(),
                      container_of(mount, "derived"): containers["derived"], view: view.read_bytes()}


def cut_index(store):
    os.truncate(store.path / "index/data.mdb", 8192)


def wild_pointers(store):
    """Each page of the tree sends whoever searches it far out of the file."""
    page, of_a_tree, header = 4096, 1 | 2, 16
    with open(store.path / "index/data.mdb", "r+b", buffering=0) as file:
        for at in range(2 * page, os.fstat(file.fileno()).st_size, page):
            flags, lower = struct.unpack_from("=10xHH", os.pread(file.fileno(), header, at))
            if flags & of_a_tree and header <= lower <= page:
                os.pwrite(file.fileno(), b"\xff" * (lower - header), at + header)


@pytest.mark.parametrize("damage", [cut_index, wild_pointers])
def test_a_damaged_index_ends_requests_and_not_the_server(store, held_kinds, tmp_path, damage):
    """What the index cannot answer fails, and says what to do; what is open is read on."""
    mount, files = held_kinds
    with Held(files) as held:
        held.check()
        before = status_of(mount)
        damage(store)
        with pytest.raises(OSError):
            os.listdir(mount.layers("derived", 1))
        held.check()
        assert children(before["supervisor_pid"]) == [before["pid"]]
    said = (tmp_path / "weft.log").read_text()
    assert "index/data.mdb" in said and "weft fsck --rebuild" in said


def test_a_server_lost_on_a_damaged_index_leaves_what_the_kernel_reads(store, held_kinds, tmp_path):
    """The next server cannot open again what it would have to read."""
    mount, files = held_kinds
    base = mount.version("base", 1) / "model.safetensors"
    with Held({base: files[base]}) as held:
        before = status_of(mount)
        cut_index(store)
        os.kill(before["pid"], signal.SIGKILL)
        wait_until(lambda: not is_alive(before["pid"]), seconds_max=30)
        held.check()
        wait_until(lambda: not is_alive(before["supervisor_pid"]), seconds_max=30)
        held.check()
    assert "got nowhere" in (tmp_path / "weft.log").read_text()


class IndexReaders:
    """Processes that look up and read what they may not have read before; what they saw is right or an error."""

    CLEAR = {errno.EIO, errno.ENOTCONN, errno.ECONNABORTED, errno.EBADMSG, errno.EUCLEAN, errno.ENOENT}

    def __init__(self, mount, models, seed):
        self.mount, self.models, self.seed = mount, models, seed
        self.stop = multiprocessing.Event()
        self.results = multiprocessing.Queue()
        self.processes = [multiprocessing.Process(target=self.loop, args=(i,)) for i in range(2)]

    def look(self, chance):
        model = chance.choice(list(self.models))
        if chance.random() < 0.3:
            os.listdir(self.mount.tensors(model, 1))
            return
        name = chance.choice(["models/model.safetensors", "models/config.json", "tensors/layer.0.weight.npy"])
        content = self.mount.at(model, 1, name).read_bytes()
        expected = self.models[model]
        if name.endswith(".npy"):
            assert content.endswith(expected["tensor"]), f"{model}/{name} reads wrong"
        else:
            assert content == expected[name.removeprefix("models/")], f"{model}/{name} reads wrong"

    def loop(self, which):
        chance, right, seen, wrong = random.Random(f"{self.seed} {which}"), 0, set(), ""
        while not self.stop.is_set() and not wrong:
            try:
                self.look(chance)
                right += 1
            except OSError as error:
                seen.add(error.errno)
            except BaseException as error:  # pylint: disable=broad-except
                wrong = repr(error)
        self.results.put((right, sorted(seen), wrong))

    def __enter__(self):
        for process in self.processes:
            process.start()
        return self

    def __exit__(self, *exception):
        self.stop.set()

    def check(self):
        done = [self.results.get(timeout=60) for _ in self.processes]  # one that is stuck says nothing
        print(done)
        for process in self.processes:
            process.join()
        assert [entry for entry in done if entry[2]] == []
        assert all(right > 0 and set(seen) <= self.CLEAR for right, seen, _ in done), done


def flip_bits(path, chance, count):
    with open(path, "r+b", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        for _ in range(count):
            at = chance.randrange(size)
            os.pwrite(file.fileno(), bytes([os.pread(file.fileno(), 1, at)[0] ^ 1 << chance.randrange(8)]), at)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(rounds(1, 30)))
def test_bits_that_flip_in_the_index_of_a_live_mount(store, tmp_path, seed):
    """No reader gets a wrong byte or is stuck. A server that cannot go on is followed by another, until the supervisor
    gives up and says why."""
    models = {}
    for i in range(16):
        tensors = random_tensors(2, 4096, seed=f"{seed} {i}")
        directory = write_model(tmp_path / f"model{i}", tensors, files=[("config.json", b'{"n": %d}' % i)])
        store.publish(directory, name=f"m{i}")
        models[f"m{i}"] = {name: (directory / name).read_bytes() for name in ("model.safetensors", "config.json")}
        models[f"m{i}"]["tensor"] = tensors["layer.0.weight"][2]
    chance, log = random.Random(seed), tmp_path / "weft.log"
    with Mount(store, tmp_path / "mnt", options=f"log={log}") as mount:
        supervisor = status_of(mount)["supervisor_pid"]
        with IndexReaders(mount, models, seed) as readers:
            time.sleep(0.2)
            for _ in range(8):
                flip_bits(store.path / "index/data.mdb", chance, 12)
                time.sleep(0.05)
            for server in children(supervisor)[:1]:  # the next one meets the damage when it starts
                os.kill(server, signal.SIGKILL)
            time.sleep(1)
        readers.check()
        given_up = not is_alive(supervisor) or not is_mounted(mount.path)
        if given_up:
            wait_until(lambda: not is_mounted(mount.path) and not is_alive(supervisor), seconds_max=30)
    print(log.read_text()[-2000:])
    assert not given_up or "got nowhere" in log.read_text()


def test_the_exit_status_of_giving_up(store, model, tmp_path):
    store.publish(model, name="m")
    where = tmp_path / "mnt"
    with open(tmp_path / "messages", "wb") as messages, \
            foreground_mount(store, where, stderr=messages) as supervisor:
        (store.path / "index").rename(store.path / "index.away")
        os.kill(children(supervisor.pid)[0], signal.SIGKILL)
        assert supervisor.wait(30) == 32  # as mount(8) numbers a failure
        assert not is_mounted(where)
        assert "unmounted" in (tmp_path / "messages").read_text().splitlines()[-1]


def test_a_server_that_stands_still_is_replaced(store, model, tmp_path):
    store.publish(model, name="m")
    with Mount(store, tmp_path / "mnt", options=f"stall=1,log={tmp_path}/weft.log") as mount:
        server = status_of(mount)["pid"]
        os.kill(server, signal.SIGSTOP)
        assert (mount.version("m", 1) / "config.json").read_bytes()  # waits for the next server
        assert new_server(mount, server) != server
        assert "answered nothing" in status_log(tmp_path)
        assert not is_alive(server)


def status_log(tmp_path):
    return (tmp_path / "weft.log").read_text()


def test_an_idle_server_does_not_stand_still(store, model, tmp_path):
    store.publish(model, name="m")
    with Mount(store, tmp_path / "mnt", options="stall=1") as mount:
        server = status_of(mount)["pid"]
        time.sleep(2.5)
        assert status_of(mount)["pid"] == server


def test_a_server_without_supervisor_goes_on(mount):
    """And its status says so."""
    before = status_of(mount)
    with open(mount.version("m", 1) / "model.safetensors", "rb") as held:
        kill_and_wait(before["supervisor_pid"])
        wait_until(lambda: "supervisor_problem" in status_of(mount))
        assert held.read() == (mount.version("m", 1) / "model.safetensors").read_bytes()
    assert "supervisor_pid" not in status_of(mount)
    assert "supervisor is gone" in mount.store.weft("status", "--all").stdout


def abandon(mount, victims):
    """Kills the supervisor, or both; returns the status before."""
    before = status_of(mount)
    kill_and_wait(before["supervisor_pid"])
    if victims == "both":
        kill_and_wait(before["pid"])
    else:
        wait_until(lambda: "supervisor_problem" in status_of(mount))
    return before


@pytest.mark.parametrize("victims", ["supervisor", "both"])
def test_the_next_mount_clears_what_is_left(mount, victims):
    before = abandon(mount, victims)
    done = mount.store.weft("mount", mount.path)
    gone = "server" if victims == "both" else "supervisor"
    assert f"cleared a mount whose {gone} was gone" in done.stderr
    assert status_of(mount)["pid"] != before["pid"]
    wait_until(lambda: not is_alive(before["pid"]))


@pytest.mark.parametrize("victims", ["supervisor", "both"])
def test_umount_clears_what_is_left(mount, victims):
    before = abandon(mount, victims)
    done = mount.store.weft("umount", mount.path)
    assert "cleared" in done.stderr
    assert not is_mounted(mount.path) and not is_alive(before["pid"])


def test_sigterm_to_a_server_without_supervisor(mount):
    kill_and_wait(abandon(mount, "supervisor")["pid"], signal.SIGTERM)
    assert not is_mounted(mount.path)


@pytest.mark.parametrize("whom", ["supervisor_pid", "pid"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_both(mount, whom, number):
    before = status_of(mount)
    with open(mount.version("m", 1) / "model.safetensors", "rb"):
        os.kill(before[whom], number)
        wait_until(lambda: not is_alive(before["pid"]) and not is_alive(before["supervisor_pid"]))
    assert not is_mounted(mount.path)


@pytest.mark.parametrize("whom", ["supervisor_pid", "pid"])
def test_sighup_unmounts_nothing(mount, whom):
    before = status_of(mount)
    for _ in range(3):
        os.kill(before[whom], signal.SIGHUP)
        (mount.version("m", 1) / "model.safetensors").read_bytes()
    time.sleep(0.5)
    after = status_of(mount)
    assert [after[name] for name in ("pid", "supervisor_pid", "restarts")] == \
        [before[name] for name in ("pid", "supervisor_pid", "restarts")]


def test_sighup_reopens_the_log_of_a_mount(store, tmp_path):
    """Of the supervisor, which tells it, and of the server."""
    log = tmp_path / "weft.log"
    with Mount(store, tmp_path / "logged", options=f"log={log}") as mount:
        before = status_of(mount)
        log.rename(tmp_path / "weft.log.1")
        os.kill(before["supervisor_pid"], signal.SIGHUP)
        wait_until(lambda: log.exists() and "the log was reopened" in log.read_text())
        os.kill(before["supervisor_pid"], signal.SIGKILL)
        wait_until(lambda: "goes on alone" in log.read_text())
    assert "goes on alone" not in (tmp_path / "weft.log.1").read_text()


def test_umount_waits_for_the_server(mount):
    before = status_of(mount)
    mount.store.weft("umount", mount.path)
    assert not is_alive(before["pid"]) and not is_alive(before["supervisor_pid"])


def test_umount_of_one_of_two_places(mount, tmp_path):
    """The server goes on where the same mount is elsewhere too, and that is said instead of waited for."""
    (tmp_path / "bound").mkdir()
    run(["mount", "--bind", mount.path, tmp_path / "bound"])
    try:
        done = mount.store.weft("umount", mount.path, check=False)
        assert done.returncode == 1 and str(tmp_path / "bound") in done.stderr
    finally:
        run(["umount", tmp_path / "bound"])


def test_upgrade_and_back_under_load(mount, tmp_path):
    """The same program from another place, and from the first one again; then a killed server is followed by its own
    program."""
    expected = files_of(mount)
    before = status_of(mount)
    elsewhere = tmp_path / "new"
    elsewhere.mkdir()
    programs_for_everybody(elsewhere)
    with Readers(mount, expected) as readers:
        for weft, program in [(elsewhere / "weft", elsewhere / "mount.weft"), (WEFT, MOUNT_WEFT)] * 3:
            server = status_of(mount)["pid"]
            run([weft, "mount", "--upgrade", mount.path])
            assert new_server(mount, server)
            after = status_of(mount)
            for pid in (after["pid"], after["supervisor_pid"]):
                assert os.readlink(f"/proc/{pid}/exe") == str(program)
            time.sleep(0.3)
    readers.check()
    assert status_of(mount)["supervisor_pid"] == before["supervisor_pid"]
    server = status_of(mount)["pid"]
    kill_and_wait(server)
    assert os.readlink(f"/proc/{new_server(mount, server)}/exe") == str(MOUNT_WEFT)


def test_upgrade_to_what_does_not_serve(mount, tmp_path):
    """The mount stays as it is, and the error says why."""
    elsewhere = tmp_path / "new"
    elsewhere.mkdir()
    programs_for_everybody(elsewhere)
    (elsewhere / "mount.weft").write_text("#!/bin/sh\nexit 3\n")
    server = status_of(mount)["pid"]
    done = run([elsewhere / "weft", "mount", "--upgrade", mount.path], check=False)
    assert done.returncode == 1 and "upgrade" in done.stderr
    assert status_of(mount)["pid"] == server


def test_upgrade_to_another_format(mount, tmp_path):
    """A program whose stores have another format refuses this one. The upgrade fails in one line, readers do not notice,
    and the old program goes on serving, also after its server is lost."""
    elsewhere = tmp_path / "new"
    elsewhere.mkdir()
    programs_for_everybody(elsewhere)
    shutil.copy(BUILD / "tests/mount/next_format/mount.weft", elsewhere / "mount.weft")
    before, store = status_of(mount), mount.store.path
    with Readers(mount, files_of(mount)) as readers:
        done = run([elsewhere / "weft", "mount", "--upgrade", mount.path], check=False)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
        said, found = done.stderr.rsplit(" of format ", 1)
        assert said == f"weft: {mount.path}: upgrade: {elsewhere}/mount.weft: {store}: expected a store"
        ours = int(found.split(", got ")[1].split(":")[0])
        assert found.startswith(f"{ours + 1}, got {ours}: ")
        after = status_of(mount)
        assert all(after[name] == before[name] for name in ("pid", "supervisor_pid", "restarts"))
        kill_and_wait(before["pid"])
        assert os.readlink(f"/proc/{new_server(mount, before['pid'])}/exe") == str(MOUNT_WEFT)
    readers.check()
    assert os.readlink(f"/proc/{before['supervisor_pid']}/exe") == str(MOUNT_WEFT)


def test_upgrade_while_there_is_no_server(mount, tmp_path):
    """The new server is ready while the supervisor waits a moment before it follows one that got nowhere."""
    elsewhere = tmp_path / "new"
    elsewhere.mkdir()
    programs_for_everybody(elsewhere)
    go = tmp_path / "go"
    (elsewhere / "mount.weft").write_text(
        f"""#!/bin/sh\nuntil [ -e {go} ]; do sleep 0.01; done\nexec {MOUNT_WEFT} "$@"\n""")
    status = status_of(mount)
    supervisor, lost = status["supervisor_pid"], [status["pid"]]
    upgrade = subprocess.Popen([elsewhere / "weft", "mount", "--upgrade", mount.path], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(children(supervisor)) == 2)
    candidate = next(pid for pid in children(supervisor) if pid != lost[0])
    os.kill(lost[0], signal.SIGSEGV)
    for _ in range(3):
        wait_until(lambda: set(children(supervisor)) - {candidate, *lost}, pause=0.001)
        lost.append((set(children(supervisor)) - {candidate, *lost}).pop())
        os.kill(lost[-1], signal.SIGSEGV)
    go.touch()
    begun = time.monotonic()
    assert (mount.version("m", 1) / "config.json").exists()
    assert time.monotonic() - begun < 4 * PATIENCE  # nobody waited for a server that was gone
    stderr = upgrade.communicate(timeout=60)[1]
    assert upgrade.returncode == 0, stderr
    assert status_of(mount)["pid"] not in lost


def test_upgrade_of_no_mount(store, tmp_path):
    (tmp_path / "mnt").mkdir()
    done = store.weft("mount", "--upgrade", tmp_path / "mnt", check=False)
    assert done.returncode == 1 and "no weft file system" in done.stderr
