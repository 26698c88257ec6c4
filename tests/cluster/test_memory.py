"""Versions that are published into memory: all nodes see them at once, a disk has them later, and a machine that stops
before takes none without saying so."""
import collections
import itertools
import random
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

from memorylib import FILE, MIB, Alone, events_since_the_start, holding_up_the_flush, newest, publish, write_weights
from nodes import SECONDS_MAX
from weftlib import Store, files_below, random_bytes, rounds, wait_until

CUTS = rounds(3, 100)  # of the power, in each of two tests


def test_a_version_in_memory_becomes_local(machine, tmp_path):
    source = write_weights(tmp_path / "source", 1)
    with Alone(machine) as node:
        publish(node.store, source, "m")
        wait_until(lambda: newest(node.store, "m")["durability"] == "local", seconds_max=SECONDS_MAX)
        assert node.daemon.status()["memory"]["kept"] == 1
        node.cut()
        assert newest(node.store, "m")["durability"] == "local"
        node.store.weft("export", "m@1", tmp_path / "out")
        assert (tmp_path / "out" / FILE).read_bytes() == (source / FILE).read_bytes()
        assert node.store.weft("fsck", check=False).returncode == 0


def complete_or_lost(node, sources):
    """After a cut: each version that was said to be local is complete, every other is complete or said to be lost. What
    became of each."""
    became = collections.Counter()
    wait_until(lambda: node.daemon.status()["memory"]["versions"] == 0, seconds_max=SECONDS_MAX)
    for version in node.store.json("log", "m")["versions"]:
        number = version["version"]
        if number not in sources:
            continue
        if version["removed"]:
            assert "only in the memory" in version["lost"], version
            assert number not in sources["local"], f"m@{number} was on the disk"
            became["lost"] += 1
            continue
        out = node.machine.boot.parent / f"out-{number}"
        node.store.weft("export", f"m@{number}", out)
        assert (out / FILE).read_bytes() == (sources[number] / FILE).read_bytes()
        shutil.rmtree(out)
        became["local, complete" if number in sources["local"] else "memory, complete"] += 1
    checked = node.store.weft("fsck", check=False)
    assert checked.returncode == 0, checked.stdout
    return became


@pytest.mark.long
def test_power_cuts(machine, tmp_path):
    """Some versions are on the disk when the power is cut, some are not."""
    rng, became = random.Random(7), collections.Counter()
    with Alone(machine) as node:
        for cut in range(CUTS):
            sources = {"local": set()}
            first = cut * 10 + 1
            for seed in range(first, first + 2):
                source = write_weights(tmp_path / f"source-{seed}", seed, mib=rng.choice([1, 16]))
                answer = node.store.json("import", source, "--name", "m", "--durability", "memory")
                sources[answer["version"]] = source
            time.sleep(rng.choice([0, 0, 0.3]))
            for version in node.store.json("log", "m")["versions"]:
                if version["durability"] == "local":
                    sources["local"].add(version["version"])
            node.cut()
            known = {v["version"] for v in node.store.json("log", "m")["versions"] if not v["removed"]}
            assert sources["local"] <= known
            became += complete_or_lost(node, sources)
            for version in node.store.json("log", "m")["versions"]:
                if not version["removed"]:
                    node.store.weft("rm", "--force", f"m@{version['version']}")
            node.store.weft("gc", "--quiet")
            for seed in range(first, first + 2):
                shutil.rmtree(tmp_path / f"source-{seed}")
    print(f"{CUTS} cuts: {dict(became)}")
    assert sum(became.values()) == 2 * CUTS


@pytest.mark.long
def test_power_cuts_between_other_changes(machine, tmp_path):
    """Versions share files, some are local, some are removed, and some are published again right after the cut: what is
    there is complete, and what a version lacks has made it a lost one."""
    rng = random.Random(11)
    with Alone(machine) as node:
        files, expected, local, lost = [], {}, set(), 0

        def publish_some(model, durability):
            source = tmp_path / f"source-{len(expected)}"
            source.mkdir()
            for name in ("a", "b"):
                if not files or rng.random() < 0.6:
                    files.append(random_bytes(rng.choice([1000, 3 * MIB, 9 * MIB]), f"cuts {len(files)}"))
                (source / name).write_bytes(rng.choice(files[-4:]))
            answer = node.store.json("import", source, "--name", model, "--durability", durability)
            spec = f"{model}@{answer['version']}"
            expected[spec] = files_below(source)
            if durability == "local":
                local.add(spec)
            shutil.rmtree(source)

        for _ in range(CUTS):
            for _ in range(rng.randrange(1, 5)):
                publish_some(rng.choice("mno"), rng.choice(["memory", "memory", "local"]))
                if rng.random() < 0.3:
                    removed = rng.choice(sorted(expected))
                    node.store.weft("rm", "--force", removed)
                    expected.pop(removed)
            time.sleep(rng.choice([0, 0, 0.1]))
            node.cut()
            if rng.random() < 0.5:
                publish_some("again", rng.choice(["memory", "local"]))
            wait_until(lambda: node.store.json("status")["in_memory"] == 0, seconds_max=SECONDS_MAX)
            live = {f"{model['model']}@{version['version']}" for model in node.store.json("ls")["models"]
                    for version in node.store.json("ls", model["model"])["versions"]}
            assert live <= set(expected) and local & set(expected) <= live
            for spec in sorted(live):
                node.store.weft("export", spec, tmp_path / "out")
                assert files_below(tmp_path / "out") == expected[spec], spec
                shutil.rmtree(tmp_path / "out")
            for spec in set(expected) - live:
                model, number = spec.split("@")
                [gone] = [v for v in node.store.json("log", model)["versions"] if v["version"] == int(number)]
                assert "only in the memory" in gone["lost"], gone
                expected.pop(spec)
                lost += 1
            checked = node.store.weft("fsck", check=False)
            assert checked.returncode == 0, checked.stdout
            while len(expected) > 10:
                removed = rng.choice(sorted(expected))
                node.store.weft("rm", "--force", removed)
                expected.pop(removed)
            if rng.random() < 0.3:
                node.store.weft("gc", "--quiet")
        print(f"{CUTS} cuts: {lost} versions were lost")


def test_no_torn_byte_is_served(machine, tmp_path):
    """The machine stops before the flush could begin: readers get an error, then the version is gone, and says why."""
    source = write_weights(tmp_path / "source", 1, mib=32)
    with Alone(machine) as node:
        node.store.weft("import", source, "--name", "m", "--durability", "local", "--tag", "first")
        write_weights(source, 2, mib=32)
        publish(node.store, source, "m")
        node.cut()
        complete = newest(node.store, "m")
        wait_until(lambda: node.daemon.status()["memory"]["versions"] == 0, seconds_max=SECONDS_MAX)
        complete = newest(node.store, "m")
        if complete["removed"]:
            assert "lost" in complete["lost"]
            assert "only in the memory" in node.store.weft("log", "m").stdout
            assert "lost      1 version; the last is m@2, 20" in node.store.weft("status", "--all").stdout
            assert node.store.json("status")["lost"] == 1
            assert node.store.json("log", "m")["versions"][1]["latest"]
        else:
            node.store.weft("export", "m@2", tmp_path / "out")
            assert (tmp_path / "out" / FILE).read_bytes() == (source / FILE).read_bytes()


def test_no_sync_of_data_before_it_returns(machine, tmp_path):
    source = write_weights(tmp_path / "source", 1, mib=16)
    with Alone(machine) as node:
        trace = tmp_path / "trace"
        with tracing(node.daemon.pid, trace):
            publish(node.store, source, "m")
        assert not synced_packs(trace), trace.read_text()
        node.store.weft("wait", "m", "--durable")
        write_weights(source, 2, mib=16)
        with tracing(node.daemon.pid, trace):
            publish(node.store, source, "m", durability="local")
        assert synced_packs(trace)


WRITES = "write,pwrite64,writev,pwritev,pwritev2,copy_file_range,sendfile,splice"


class tracing:
    """strace of a daemon's calls, until what it was asked meanwhile has been answered."""

    def __init__(self, pid, out, calls="fsync,fdatasync"):
        self.words = ["strace", "-f", "-y", "-ttt", "-e", f"trace={calls}", "-o", str(out), "-p", str(pid)]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stderr=subprocess.PIPE, text=True)
        assert "attached" in self.process.stderr.readline()

    def __exit__(self, *exception):
        self.process.terminate()
        self.process.wait()


def synced_packs(trace):
    """Before the index had the version."""
    before = itertools.takewhile(lambda line: "/index/data.mdb>" not in line, trace.read_text().splitlines())
    return [line for line in before if ".pack>" in line]


def test_a_flush_makes_no_second_copy(machine, tmp_path):
    """It writes the pages of the pack that is served already, each once, and beside them a record of it."""
    source, trace = write_weights(tmp_path / "source", 1, mib=64), tmp_path / "trace"
    with Alone(machine) as node:
        with holding_up_the_flush(node, tmp_path):
            publish(node.store, source, "m")
            [pack] = (node.store.path / "packs").glob("*.pack")
            served, size = pack.stat().st_ino, pack.stat().st_size
            with tracing(node.daemon.pid, trace, WRITES + ",sync_file_range"):
                node.store.weft("wait", "m", "--durable")
        assert pack.stat().st_ino == served and pack.stat().st_size == size > 64 * MIB
    said = trace.read_text()
    pieces = [(int(at), int(length)) for at, length in
              re.findall(rf"sync_file_range\(\d+<[^>]*{pack}>, (\d+), (\d+), .*WAIT_AFTER", said)]
    assert pieces == sorted(pieces) and sum(length for _, length in pieces) == size
    written = re.findall(rf"write\w*\(\d+<[^>]*{node.store.path}/(?!tmp/)[^\n]* = (\d+)\n", said)
    assert written and sum(map(int, written)) < MIB, said


def test_a_flush_waits_while_a_publish_runs(machine, tmp_path):
    """It begins no write then, unless one has waited for five seconds."""
    trace = tmp_path / "trace"
    with Alone(machine) as node, tracing(node.daemon.pid, trace, "sync_file_range"):
        with holding_up_the_flush(node, tmp_path):
            begin = time.time()
            publish(node.store, write_weights(tmp_path / "source", 1, mib=32), "m")
            time.sleep(2)
            end = time.time()
        node.store.weft("wait", "m", "--durable")
    begun = [float(line.split()[1]) for line in trace.read_text().splitlines()
             if "sync_file_range(" in line and ".pack>" in line and "WAIT_AFTER" in line]
    assert begun and [at for at in begun if begin <= at <= min(end, begin + 5)] == []


def test_what_relies_on_memory(cluster, tmp_path):
    """Its publisher is stopped: the version stays in memory, and so does what another node makes of it, until it goes on."""
    one, two = cluster.some(2)
    with holding_up_the_flush(one, tmp_path):
        publish(one.store, write_weights(tmp_path / "large", 5, mib=64), "large")
        wait_until(lambda: two.knows("large@1"), seconds_max=SECONDS_MAX, pause=0.005)
        two.store.weft("info", "large@1")  # its manifest comes
        one.daemon.signal(signal.SIGSTOP)
    try:
        assert newest(two.store, "large")["durability"] == "memory"
        assert "in memory" in two.store.weft("log", "large").stdout
        head = write_weights(tmp_path / "head", 6, mib=1)
        two.store.publish(head, name="tuned", parent="large@1", durability="memory")
        assert newest(two.store, "tuned")["durability"] == "memory"
        time.sleep(1.5)
        assert newest(two.store, "tuned")["durability"] == "memory"  # though its own bytes are on the disk by now
    finally:
        one.daemon.signal(signal.SIGCONT)
    wait_until(lambda: newest(two.store, "tuned")["durability"] == "local", seconds_max=SECONDS_MAX)


def test_a_publisher_that_never_comes_back(cluster, tmp_path):
    """Its version stays in memory, where it is read, until somebody removes it; what relies on it is on a disk then."""
    one, two = cluster.some(2)
    source = write_weights(tmp_path / "large", 5, mib=64)
    with holding_up_the_flush(one, tmp_path):
        publish(one.store, source, "large")
        wait_until(lambda: two.knows("large@1"), seconds_max=SECONDS_MAX)
        two.store.weft("prefetch", "large@1")
        one.daemon.kill()
    assert newest(two.store, "large")["durability"] == "memory"
    two.store.publish(write_weights(tmp_path / "head", 6, mib=1), name="tuned", parent="large@1", durability="memory")
    wait_until(lambda: two.daemon.status()["memory"]["elsewhere_away"] == 1, seconds_max=SECONDS_MAX)
    shown = two.store.weft("status", "--all").stdout
    assert "memory    1 version, " in shown and "; the oldest is tuned@1, since 20" in shown
    assert "memory    1 version of other nodes; the oldest is large@1, since 20" in shown
    assert "; 1 until a node comes back that is away\n" in shown
    publisher = newest(two.store, "large")["publisher"]
    assert publisher != newest(two.store, "tuned")["publisher"]
    assert f"in memory of node {publisher}" in two.store.weft("log", "large").stdout
    assert "(latest, in memory)" in two.store.weft("log", "tuned").stdout
    versions = two.store.json("ls", "large")["versions"]
    assert [version["durability"] for version in versions] == ["memory"]

    two.store.weft("export", "large@1", tmp_path / "out")
    two.store.weft("rm", "--force", "large@1")
    wait_until(lambda: newest(two.store, "tuned")["durability"] == "local", seconds_max=SECONDS_MAX)
    two.store.weft("import", tmp_path / "out", "--name", "large")
    assert (newest(two.store, "large")["version"], newest(two.store, "large")["durability"]) == (2, "local")
    watched = [(event["event"], event["model"], event["version"]) for event in events_since_the_start(two.store, 7)]
    assert watched == [
        ("publish", "large", 1), ("memory", "large", 1), ("publish", "tuned", 1), ("memory", "tuned", 1),
        ("remove", "large", 1), ("durable", "tuned", 1), ("publish", "large", 2)]


def test_a_process_without_weftd_takes_memory_to_the_disk(machine, tmp_path):
    """What a version relies on that a process publishes alone: it is on the disk when the process says so."""
    source, tuned = write_weights(tmp_path / "source", 1, mib=64), write_weights(tmp_path / "tuned", 2, mib=1)
    with Alone(machine) as node:
        with holding_up_the_flush(node, tmp_path):
            publish(node.store, source, "m")
            node.daemon.kill()
        assert newest(node.store, "m")["durability"] == "memory"
        assert "memory    1 version, which weftd takes to the disk when it runs; the oldest is m@1, since 20" in \
            node.store.weft("status", "--all").stdout
        node.store.weft("import", tuned, "--name", "tuned", "--parent", "m@1")
        assert [newest(node.store, model)["durability"] for model in ("m", "tuned")] == ["local", "local"]
        node.cut()
        for model, path in (("m", source), ("tuned", tuned)):
            assert newest(node.store, model)["durability"] == "local"
            node.store.weft("export", model, tmp_path / f"out-{model}")
            assert (tmp_path / f"out-{model}" / FILE).read_bytes() == (path / FILE).read_bytes()
        assert node.store.weft("fsck", check=False).returncode == 0


@pytest.mark.parametrize("cut", [False, True], ids=["", "cut"])
def test_bytes_of_a_removed_version_go_to_the_disk_with_what_finds_them(cut, machine, tmp_path):
    source = write_weights(tmp_path / "source", 1, mib=64)
    with Alone(machine) as node:
        with holding_up_the_flush(node, tmp_path):
            publish(node.store, source, "m")
            node.daemon.kill()
        assert newest(node.store, "m")["durability"] == "memory"
        node.store.weft("rm", "--force", "m@1")
        if cut:
            node.daemon.close()
            node.machine.cut()
        node.store.weft("import", source, "--name", "again")
        assert newest(node.store, "again")["durability"] == "local"
        assert cut or len(list((node.store.path / "packs").glob("*.pack"))) == 1  # nothing was written twice
        node.cut()
        node.store.weft("export", "again", tmp_path / "out")
        assert (tmp_path / "out" / FILE).read_bytes() == (source / FILE).read_bytes()


def test_memory_is_bounded(machine, tmp_path):
    with Alone(machine, "--memory-max", "24M") as node:
        for seed in range(6):
            publish(node.store, write_weights(tmp_path / "source", seed, mib=16), "m")
            assert node.daemon.status()["memory"]["bytes"] <= 24 * MIB
        publish(node.store, write_weights(tmp_path / "source", 9, mib=32), "large")  # more than may be there
        assert newest(node.store, "large")["durability"] == "local"


def test_all_nodes_see_it(cluster, tmp_path):
    one, two = cluster.some(2)
    source = write_weights(tmp_path / "source", 1)
    seen = []
    def look():
        wait_until(lambda: two.knows("m@1"), seconds_max=SECONDS_MAX, pause=0.005)
        seen.append(newest(two.store, "m")["durability"])
    watcher = threading.Thread(target=look)
    watcher.start()
    publish(one.store, source, "m")
    watcher.join()
    assert seen[0] in ("memory", "local")
    for node in (one, two):
        wait_until(lambda node=node: newest(node.store, "m")["durability"] == "local", seconds_max=SECONDS_MAX)
    with two.mounted() as mount:
        assert (mount.version("m", 1) / FILE).read_bytes() == (source / FILE).read_bytes()


def test_events_tell_of_it(cluster, tmp_path):
    """In this order, on another node."""
    one, two = cluster.some(2)
    publish(one.store, write_weights(tmp_path / "source", 1), "m")
    two.store.weft("wait", "m", "--durable", "--timeout", str(SECONDS_MAX))
    lines = events_since_the_start(two.store, 3)
    assert [(line["event"], line["model"], line["version"]) for line in lines] == [
        ("publish", "m", 1), ("memory", "m", 1), ("durable", "m", 1)]


def test_killed_daemons_lose_nothing(cluster, tmp_path):
    one = cluster.node()
    rng = random.Random(3)
    for seed in range(5):
        source = write_weights(tmp_path / f"source-{seed}", seed)
        publish(one.store, source, "m")
        time.sleep(rng.random() / 10)
        one.daemon.kill()
        one.daemon.start()
    wait_until(lambda: one.daemon.status()["memory"]["versions"] == 0, seconds_max=SECONDS_MAX)
    versions = one.store.json("log", "m")["versions"]
    assert [(v["version"], v["durability"], v["lost"]) for v in versions] == [(n, "local", "") for n in range(5, 0, -1)]


def test_without_a_daemon_it_goes_to_the_disk(tmp_path):
    store = Store(tmp_path / "store")
    done = store.weft("import", write_weights(tmp_path / "source", 1), "--name", "m", "--durability", "memory")
    assert "no daemon runs" in done.stderr
    assert newest(store, "m")["durability"] == "local"
