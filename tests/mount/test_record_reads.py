"""LMDB files under its own library: a fault inside a record brings the whole record."""
import json
import os
import signal
import subprocess
import sys
import time

import pytest

import lmdblib
from weftlib import TOP, Mount, Store, environment, run, wait_until

SIZE = 60_000
COUNT = 300


@pytest.fixture(name="published")
def fixture_published(tmp_path):
    """A store whose model `set` is an LMDB of COUNT records, none of whose pages is in the page cache."""
    lmdblib.write(tmp_path / "source/train", COUNT, SIZE)
    store = Store(tmp_path / "store")
    store.publish(tmp_path / "source", name="set")
    return store


def drop_pages(store):
    """What was published leaves the page cache, if the file system has a disk below it."""
    os.sync()
    for pack in (store.path / "packs").glob("*.pack"):
        with open(pack, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def reader(directory, seed, count=COUNT, size=SIZE):
    words = [sys.executable, TOP / "tests/lmdblib.py", directory, seed, count, size]
    return subprocess.Popen([str(word) for word in words], env=environment(), stdout=subprocess.PIPE, text=True)


def faults_of(process):
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return json.loads(out)["faults"]


def test_a_record_costs_about_one_fault(published, tmp_path):
    drop_pages(published)
    with Mount(published, tmp_path / "mnt") as mount:
        directory = mount.version("set", 1) / "train"
        assert faults_of(reader(directory, 1)) <= 1.5 * COUNT
        # What the records brought stays in the page cache, and is right.
        assert faults_of(reader(directory, 2)) <= COUNT // 10
        run(["cmp", tmp_path / "source/train/data.mdb", directory / "data.mdb"])


def test_the_records_of_a_data_set_are_known_without_a_scan(tmp_path):
    lmdblib.write(tmp_path / "source/train", COUNT, SIZE)
    store = Store(tmp_path / "store")
    store.weft("import", "--dataset", tmp_path / "source", "--name", "set")
    drop_pages(store)
    with Mount(store, tmp_path / "mnt") as mount:
        directory = mount.version("set", 1, "datasets") / "train"
        assert faults_of(reader(directory, 1)) <= 1.5 * COUNT
        run(["cmp", tmp_path / "source/train/data.mdb", directory / "data.mdb"])


def test_reads_by_record_can_be_turned_off(published, tmp_path):
    if run(["stat", "-f", "-c", "%T", published.path]).stdout.strip() == "tmpfs":
        pytest.skip("the store has no disk below it: its pages stay in the page cache")
    drop_pages(published)
    with Mount(published, tmp_path / "mnt", options="record_reads=off") as mount:
        assert faults_of(reader(mount.version("set", 1) / "train", 1)) >= 5 * COUNT


def test_a_file_that_only_has_the_name_is_read_as_any_other(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "data.mdb").write_bytes(os.urandom(1 << 20))
    store = Store(tmp_path / "store")
    store.publish(source, name="set")
    drop_pages(store)
    with Mount(store, tmp_path / "mnt") as mount:
        run(["cmp", source / "data.mdb", mount.version("set", 1) / "data.mdb"])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_many_processes_on_few_records_while_servers_are_killed(tmp_path):
    """The rule of fuse/state/record_reads.h: nobody waits for ever, and nobody reads other bytes."""
    rounds, count, killed = 3, 100, 0
    store = Store(tmp_path / "store")
    for number in range(rounds):
        lmdblib.write(tmp_path / f"source{number}/train", count, SIZE + number)
        store.publish(tmp_path / f"source{number}", name=f"set{number}")
    drop_pages(store)
    with Mount(store, tmp_path / "mnt") as mount:
        for number in range(rounds):
            directory = mount.version(f"set{number}", 1) / "train"
            readers = [reader(directory, seed, count, SIZE + number) for seed in range(64)]
            while any(process.poll() is None for process in readers):
                if killed < 10 * (number + 1):
                    server = mount.server_pids()[-1]
                    os.kill(server, signal.SIGKILL)
                    killed += 1
                    wait_until(lambda server=server: len(set(mount.server_pids()) - {server}) >= 2)
                time.sleep(0.1)
            for process in readers:
                faults_of(process)
    assert killed >= rounds
