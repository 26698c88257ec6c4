"""Versions in memory whose machine stopped: who watches is told, and who reads before anybody knows gets no wrong byte."""
import contextlib
import errno
import itertools
import json

import pytest

from memorylib import FILE, events_since_the_start, holding_up_the_flush, newest, publish, write_weights
from nodes import SECONDS_MAX
from power import cut_power
from weftlib import MOUNT_WEFT, InotifyWatcher, Mount, run, wait_until

WHY = "only in the memory"


def packs(node):
    return set((node.store.path / "packs").glob("*.pack"))


def publish_into_memory(one, two, source, tmp_path):
    """m@2, which is in memory when the machine of `one` stops; its pack."""
    before = packs(one)
    with holding_up_the_flush(one, tmp_path):
        publish(one.store, source, "m")
        [pack] = packs(one) - before
        wait_until(lambda: two.knows("m@2"), seconds_max=SECONDS_MAX)
        one.daemon.kill()
    return pack


@pytest.fixture
def pair(machine, cluster, tmp_path):
    """A node whose power can be cut, and its peer; m@1 is on the disk."""
    one, two = cluster.node(machine=machine), cluster.node()
    cluster.publish(one, write_weights(tmp_path / "first", 1, mib=1), "m")
    return one, two


def test_a_lost_version_is_announced(pair, machine, tmp_path):
    """To those who watch on another node: by events, and by inotify."""
    one, two = pair
    with two.mounted("announce") as mount, open(mount / ".weft/events", encoding="utf-8") as events, \
            InotifyWatcher(mount / "models/m") as watcher:
        place = mount / "models/m"
        pack = publish_into_memory(one, two, write_weights(tmp_path / "second", 2, mib=8), tmp_path)
        two.store.weft("tag", "m@2", "prod")
        watcher.saw(f"CREATE,ISDIR {place / '2'}", f"MOVED_TO {place / 'latest'}", f"MOVED_TO {place / 'prod'}")
        cut_power(machine, one.daemon, lambda: pack.write_bytes(b""))
        told = [json.loads(next(events)) for _ in range(4)]
        assert [(line["event"], line["model"], line["version"]) for line in told] == [
            ("publish", "m", 2), ("memory", "m", 2), ("tag", "m", 2), ("lost", "m", 2)]
        assert WHY in told[-1]["why"] and told[-1]["tags"] == ["prod"]
        assert [(line["event"], line["position"]) for line in events_since_the_start(two.store, 5)[1:]] == \
            [(line["event"], line["position"]) for line in told]
        watcher.saw(f"MOVED_TO {place / 'prod'}", f"DELETE {place / 'prod'}", f"DELETE,ISDIR {place / '2'}",
                    f"MOVED_TO {place / 'latest'}")
        assert watcher.lines[-1] == f"MOVED_TO {place / 'latest'}"
        assert sorted(path.name for path in place.iterdir()) == ["1", "latest"]
        for node in pair:
            wait_until(lambda node=node: newest(node.store, "m")["removed"], seconds_max=SECONDS_MAX)
            assert WHY in newest(node.store, "m")["lost"]
        one.daemon.kill()  # its machine's mounts are copies of all that there were


@contextlib.contextmanager
def mounted_on(machine, store, where):
    """A mount whose server runs on that machine; gives a function that reads a file there: its bytes, or None."""
    where.mkdir(exist_ok=True)
    run([*machine.inside, MOUNT_WEFT, store.path, where, "-o", "attr_timeout=1"])
    pids = Mount(store, where).server_pids()
    inside = ["nsenter", f"--mount=/proc/{pids[0]}/ns/mnt", f"--root=/proc/{pids[0]}/root"]

    def read(path):
        done = run([*inside, "cat", where / path], check=False, text=False)
        return done.stdout if done.returncode == 0 else None

    try:
        yield read
    finally:
        run([*inside, "umount", where])
        wait_until(lambda: not Mount(store, where).server_pids(), seconds_max=30)


def read_at(mount, path):
    try:
        return (mount / path).read_bytes()
    except OSError as failed:
        assert failed.errno in (errno.EIO, errno.ENOENT, errno.EHOSTUNREACH, errno.ETIMEDOUT), failed
        return None


def judged_late(daemon, pack):
    """From its start: weftd takes some time for the last step of its judgement of a pack."""
    daemon.wrapper = [*daemon.wrapper, "strace", "-f", "-D", "-o", "/dev/null", "-P", str(pack), "-e",
                      "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:delay_enter=3s"]


@pytest.mark.parametrize("left", ["nothing", "torn", "whole"])
def test_who_reads_before_the_judgement(left, pair, machine, tmp_path):
    """Gets an error or the right bytes: on the node itself, with and without weftd, and on another node."""
    one, two = pair
    source = write_weights(tmp_path / "second", 2, mib=8)
    right = (source / FILE).read_bytes()
    pack = publish_into_memory(one, two, source, tmp_path)
    content = pack.read_bytes()
    half = len(content) // 2
    disk = {"nothing": b"", "torn": content[:half] + bytes(len(content) - half), "whole": content}[left]
    got = {"alone": [], "one": [], "two": []}

    def before_boot():
        pack.write_bytes(disk)
        with mounted_on(machine, one.store, tmp_path / "alone") as read:
            got["alone"] += [read(f"models/m/2/{FILE}") for _ in range(3)]

    judged_late(one.daemon, pack)
    cut_power(machine, one.daemon, before_boot)
    with mounted_on(machine, one.store, tmp_path / "one") as read, two.mounted() as mount:
        for _ in itertools.takewhile(lambda _: one.daemon.status()["memory"]["versions"] > 0, itertools.count()):
            got["one"].append(read(f"models/m/2/{FILE}"))
            got["two"].append(read_at(mount, f"models/m/2/{FILE}"))
        assert all(got.values()), "they read before weftd knew"
        wrong = {who: sum(bytes_read not in (None, right) for bytes_read in reads) for who, reads in got.items()}
        assert wrong == {"alone": 0, "one": 0, "two": 0}
        wait_until(lambda: newest(two.store, "m")["durability"] == ("local" if left == "whole" else ""),
                   seconds_max=SECONDS_MAX)
        wait_until(lambda: (read(f"models/m/2/{FILE}"), read_at(mount, f"models/m/2/{FILE}")) ==
                   ((right, right) if left == "whole" else (None, None)), seconds_max=SECONDS_MAX)
