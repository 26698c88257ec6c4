"""`-o announce`: inotify tells of what is published, tagged and removed."""
import contextlib
import errno
import itertools
import json
import os
import random
import signal
import statistics
import threading
import time

import pytest
from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer

from weftlib import (COMMAND_SECONDS_MAX, HAS_LINUX_6_9, NOBODY, Follower, InotifyWatcher, Mount, act_as, context_switches,
                     files_below, in_mount_namespace, random_tensors, rounds, run, store_with, wait_until, write_model)

KILLS = rounds(20, 1000)
INSIDE_MIN = 1 / 3  # of the kills: so many fall between the event of a publish and the end of its announcement
needs_restart = pytest.mark.skipif(not HAS_LINUX_6_9, reason="a server follows another from Linux 6.9 on")


def mounted(tmp_path, options):
    """Of a store with org/m@1."""
    store = store_with(tmp_path, random_tensors(1, 4096, seed="announce"), name="org/m")
    return Mount(store, tmp_path / "mnt", options=f"{options},log={tmp_path}/weft.log")


@pytest.fixture
def mount(tmp_path):
    with mounted(tmp_path, "announce") as made:
        yield made


@pytest.fixture
def publish(mount, tmp_path):
    count = itertools.count()

    def publish(name="org/m", **options):
        seed = f"announce {next(count)}"
        mount.store.publish(write_model(tmp_path / "next", random_tensors(1, 64, seed=seed)), name=name, **options)

    return publish


def place(mount, name):
    return mount.path / "models" / name


def test_a_publish_is_a_creation_and_then_a_move_of_latest(mount, publish):
    with InotifyWatcher(place(mount, "org/m")) as watcher:
        publish(tag=["prod", "best"])
        watcher.saw(f"CREATE,ISDIR {place(mount, 'org/m/2')}", f"MOVED_TO {place(mount, 'org/m/best')}",
                    f"MOVED_TO {place(mount, 'org/m/prod')}", f"MOVED_TO {place(mount, 'org/m/latest')}")
        assert watcher.lines[-1] == f"MOVED_TO {place(mount, 'org/m/latest')}"
        assert watcher.lines.count(f"MOVED_FROM {place(mount, 'org/m/.flip')}") == 3


def test_a_mount_that_publishes_announces_too(tmp_path):
    """What is published in its new/, and what others publish."""
    with mounted(tmp_path, "publish") as mount, InotifyWatcher(place(mount, "org/m")) as watcher:
        for number, act in enumerate([by_rename, by_import], 2):
            act(mount, tmp_path, number)
            watcher.saw(f"CREATE,ISDIR {place(mount, f'org/m/{number}')}", f"MOVED_TO {place(mount, 'org/m/prod')}",
                        f"MOVED_TO {place(mount, 'org/m/latest')}")
            assert watcher.lines[-1] == f"MOVED_TO {place(mount, 'org/m/latest')}"
            assert [os.readlink(place(mount, f"org/m/{name}")) for name in ("prod", "latest")] == [str(number)] * 2
            watcher.lines.clear()
        mount.store.weft("rm", "--force", "org/m@3")
        watcher.saw(f"DELETE {place(mount, 'org/m/prod')}", f"DELETE,ISDIR {place(mount, 'org/m/3')}",
                    f"MOVED_TO {place(mount, 'org/m/latest')}")


def by_rename(mount, _, number):
    write_model(mount / "new/org/m", random_tensors(1, 64, seed=f"rename {number}"))
    os.rename(mount / "new/org/m", mount / "new/org/m@prod")


def by_import(mount, tmp_path, number):
    model = write_model(tmp_path / "next", random_tensors(1, 64, seed=f"import {number}"))
    mount.store.publish(model, name="org/m", tag="prod")


def test_the_version_is_there_before_it_is_announced(mount, publish):
    with InotifyWatcher(place(mount, "org/m")) as watcher:
        for number in range(2, 12):
            publish()
            watcher.saw(f"CREATE,ISDIR {place(mount, f'org/m/{number}')}")
            assert sorted(os.listdir(place(mount, f"org/m/{number}"))) == ["config.json", "model.safetensors"]
            watcher.saw(f"CREATE,ISDIR {place(mount, f'org/m/{number}')}", f"MOVED_TO {place(mount, 'org/m/latest')}")
            assert os.readlink(place(mount, "org/m/latest")) == str(number)


def test_a_data_set_is_announced_in_datasets(mount, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set/small").write_text("small")
    datasets = mount.path / "datasets"
    with InotifyWatcher(datasets) as of_sets, InotifyWatcher(place(mount, "org")) as of_models:
        mount.store.weft("import", "--dataset", tmp_path / "set", "--name", "org/set")
        of_sets.saw(f"CREATE,ISDIR {datasets / 'org'}")
        mount.store.publish(tmp_path / "set", name="org/model")
        of_models.saw(f"CREATE,ISDIR {place(mount, 'org/model')}")
        assert f"CREATE,ISDIR {place(mount, 'org/set')}" not in of_models.lines


def test_tags_and_removals(mount, publish):
    publish()
    with InotifyWatcher(place(mount, "org/m")) as watcher:
        mount.store.weft("tag", "org/m@1", "prod")
        watcher.saw(f"MOVED_TO {place(mount, 'org/m/prod')}")
        mount.store.weft("tag", "--delete", "org/m", "prod")
        watcher.saw(f"DELETE {place(mount, 'org/m/prod')}")
        mount.store.weft("tag", "org/m@2", "best")
        mount.store.weft("rm", "--force", "org/m@2")
        watcher.saw(f"DELETE {place(mount, 'org/m/best')}", f"DELETE,ISDIR {place(mount, 'org/m/2')}",
                    f"MOVED_TO {place(mount, 'org/m/latest')}")
        assert os.readlink(place(mount, "org/m/latest")) == "1"
        assert sorted(os.listdir(place(mount, "org/m"))) == ["1", "latest"]


def test_a_rename(mount, publish):
    publish("org/n")
    with InotifyWatcher(place(mount, "org")) as watcher:
        mount.store.weft("mv", "org/m", "org/moved")
        watcher.saw(f"DELETE,ISDIR {place(mount, 'org/m')}", f"CREATE,ISDIR {place(mount, 'org/moved')}")
        assert sorted(os.listdir(place(mount, "org/moved"))) == ["1", "latest"]
        assert sorted(os.listdir(place(mount, "org"))) == ["moved", "n"]


def test_new_models_and_namespaces(mount, publish):
    with InotifyWatcher("--recursive", place(mount, "")) as watcher:
        publish("org/n")
        watcher.saw(f"CREATE,ISDIR {place(mount, 'org/n')}")
        publish("new/a/b")
        watcher.saw(f"CREATE,ISDIR {place(mount, 'new')}")
        # inotifywait watches a directory after those in it.
        wait_until(lambda: all(watcher.watches(place(mount, name)) for name in ("new/a/b", "new/a", "new")))
        publish("new/a/b")
        watcher.saw(f"CREATE,ISDIR {place(mount, 'new/a/b/2')}", f"MOVED_TO {place(mount, 'new/a/b/latest')}")
        mount.store.weft("rm", "--force", "--all", "org/n")
        watcher.saw(f"DELETE,ISDIR {place(mount, 'org/n')}")
        mount.store.weft("rm", "--force", "--all", "new/a/b")
        watcher.saw(f"DELETE,ISDIR {place(mount, 'new')}")
    assert sorted(os.listdir(place(mount, ""))) == ["org"]


def test_somebody_looks_at_the_name_all_the_while(mount, publish):
    """The kernel knows the name then, and a directory that it knows cannot be made."""
    over = threading.Event()

    def look():
        while not over.is_set():
            os.path.exists(place(mount, "org/m/2"))

    looker = threading.Thread(target=look)
    looker.start()
    try:
        with InotifyWatcher(place(mount, "org/m")) as watcher:
            publish()
            watcher.saw(f"CREATE,ISDIR {place(mount, 'org/m/2')}", f"MOVED_TO {place(mount, 'org/m/latest')}")
    finally:
        over.set()
        looker.join()


def test_watchdog(mount, publish):
    class Handler(FileSystemEventHandler):
        def __init__(self):
            self.seen = []

        def on_created(self, event):
            self.seen.append(("created", event.src_path))

        def on_moved(self, event):
            self.seen.append(("moved", event.dest_path))

    handler, observer = Handler(), Observer()
    observer.schedule(handler, str(place(mount, "org/m")), recursive=True)
    observer.start()
    try:
        publish()
        wait_until(lambda: ("moved", str(place(mount, "org/m/latest"))) in handler.seen)
        assert ("created", str(place(mount, "org/m/2"))) in handler.seen
    finally:
        observer.stop()
        observer.join()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_watchers_in_a_container(mount, publish, tmp_path):
    """A bind mount in another mount namespace, as a container has it."""
    place_there = tmp_path / "container"
    place_there.mkdir()
    result = []
    script = f"""mount --bind {mount.path} {place_there}
        exec timeout {COMMAND_SECONDS_MAX} inotifywait --event moved_to --format '%f' {place_there}/models/org/m"""
    container = threading.Thread(target=lambda: result.append(in_mount_namespace(script).stdout))
    container.start()
    while container.is_alive():
        publish()
        time.sleep(0.2)
    assert result == ["latest\n"]


@pytest.mark.parametrize("user", [0, NOBODY] if os.geteuid() == 0 else [os.geteuid()])
def test_all_others_are_refused(user, mount):
    """As on a mount that is read-only. Nobody else sees the names by which the announcer changes it."""
    model = place(mount, "org/m")
    mount.let_in()

    def change():
        for act, *arguments in ((os.mkdir, model / "7"), (os.rename, model / "latest", model / "other"),
                                (os.rename, model / "latest", model / ".flip"), (os.rmdir, model / "1"),
                                (os.unlink, model / "latest"), (os.symlink, "1", model / "link"),
                                (open, model / "1/model.safetensors", "r+b"), (os.chmod, model / "1", 0o777),
                                (open, mount / "models/file", "wb"), (os.utime, model / "1")):
            with pytest.raises(OSError) as refused:
                act(*arguments)
            assert refused.value.errno == errno.EROFS, (act.__name__, arguments)
        for name in (".flip", ".expire-1"):
            with pytest.raises(FileNotFoundError):
                os.rename(model / name, model / "latest")
            assert not os.path.lexists(model / name)

    act_as(user, change)
    assert "new" not in os.listdir(mount.path)


def announcer_of(mount):
    """Its pid; None while there is none."""
    for pid in mount.server_pids():
        with open(f"/proc/{pid}/cmdline", "rb") as words:
            if b"--announce=" in words.read():
                return pid
    return None


def running_announcer(mount):
    """Its pid, once it runs: it starts when the mount answers."""
    wait_until(lambda: announcer_of(mount))
    return announcer_of(mount)


def status_of(mount):
    return json.loads((mount / ".weft/status").read_text())["mount"]


def test_an_announcer_that_dies_is_replaced(mount, publish):
    with InotifyWatcher(place(mount, "org/m")) as watcher:
        first = running_announcer(mount)
        os.kill(first, signal.SIGKILL)
        publish()
        watcher.saw(f"CREATE,ISDIR {place(mount, 'org/m/2')}", f"MOVED_TO {place(mount, 'org/m/latest')}")
        assert announcer_of(mount) not in (None, first)


@pytest.mark.parametrize("dies", [False, pytest.param(True, marks=needs_restart)], ids=["", "killed"])
def test_a_backlog_leads_to_the_last_state_of_each_name(dies, mount, publish):
    """More than is announced one by one: the announcer stands still meanwhile, and the server dies."""
    announcer, model = running_announcer(mount), place(mount, "org/m")
    with InotifyWatcher(model) as watcher:
        publish(tag=["prod", "old"])
        watcher.saw(f"MOVED_TO {model / 'latest'}")
        watcher.lines.clear()
        os.kill(announcer, signal.SIGSTOP)
        try:
            publish()
            if dies:
                os.kill(status_of(mount)["pid"], signal.SIGKILL)
            for _ in range(129):
                mount.store.weft("tag", "org/m@1", "prod")
                mount.store.weft("tag", "org/m@3", "prod")
            mount.store.weft("tag", "--delete", "org/m", "old")
            mount.store.weft("rm", "--force", "org/m@2")
            mount.store.weft("tag", "org/m@1", "prod")
        finally:
            os.kill(announcer, signal.SIGCONT)
        watcher.saw(f"CREATE,ISDIR {model / '3'}", f"DELETE {model / 'old'}", f"DELETE,ISDIR {model / '2'}",
                    f"MOVED_TO {model / 'prod'}", f"MOVED_TO {model / 'latest'}")
        assert watcher.lines.count(f"MOVED_TO {model / 'prod'}") == 1
        assert [os.readlink(model / name) for name in ("prod", "latest")] == ["1", "3"]


CHANGES = [word for event in ("create", "moved_to", "delete") for word in ("--event", event)]


class StateWatcher(InotifyWatcher):
    """Keeps what a program would that looks at each name when its event comes: where its link led then, or that it was
    there."""

    def __init__(self, directory):
        self.directory, self.names = directory, {}
        super().__init__(*CHANGES, directory)
        for name in os.listdir(directory):  # as a program begins that watches
            self.names.setdefault(name, self.state_of(name))

    def see(self, line):
        super().see(line)
        event, path = line.split(" ", 1)
        name = os.path.basename(path)
        if event.startswith("DELETE"):
            self.names.pop(name, None)
        else:
            with contextlib.suppress(FileNotFoundError):  # it is gone by now, and so says a later event
                self.names[name] = self.state_of(name)

    def state_of(self, name):
        path = self.directory / name
        return os.readlink(path) if path.is_symlink() else path.is_dir()

    def has_all(self):
        """The last event of each name came with the state that it has now."""
        return self.names == {name: self.state_of(name) for name in os.listdir(self.directory)}


class LatestWatcher(InotifyWatcher):
    """Keeps when `latest` moved, which ends the announcement of a publish."""

    def __init__(self, directory):
        self.moved, self.line = 0, f"MOVED_TO {directory / 'latest'}"
        super().__init__(*CHANGES, directory)

    def see(self, line):
        if line == self.line:
            self.moved = time.monotonic()


class Kills:
    """Kills at random moments of publishes, most of them while these are announced."""
    TAGS = [f"tag{number}" for number in range(40)]  # so that an announcement takes some time

    def __init__(self, mount, latest, publish):
        self.mount, self.latest, self.publish = mount, latest, publish
        self.random = random.Random(40)
        self.told = []  # when `weft watch` said each publish
        self.took = []  # seconds, of publishes that nothing disturbed: to the event, and on to the end of the announcement
        self.inside = 0

    def follow(self, lines):
        for line in lines:
            if json.loads(line)["event"] == "publish":
                self.told.append(time.monotonic())

    def publish_undisturbed(self):
        begin, count = time.monotonic(), len(self.told)
        self.publish(tag=self.TAGS)
        wait_until(lambda: len(self.told) > count and self.latest.moved > begin)
        self.took.append((self.told[-1] - begin, max(0, self.latest.moved - self.told[-1])))

    def victims(self):
        server, announcer = status_of(self.mount)["pid"], announcer_of(self.mount)
        if announcer is None or self.random.random() < 0.8:
            return [server]
        return self.random.choice([[announcer, server], [announcer]])

    def kill_once(self):
        """In most rounds a random moment of the announcement, from the event on; in others of the whole publish."""
        victims, begin, count = self.victims(), time.monotonic(), len(self.told)
        whole, announcing = (statistics.median(times) for times in zip(*self.took[-9:]))
        early = self.random.random() < 0.25
        wait = self.random.uniform(0, whole if early else announcing)
        killed = []

        def kill():
            if not early:
                wait_until(lambda: len(self.told) > count)
            time.sleep(wait)
            killed.append(time.monotonic())
            for victim in victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        self.publish(tag=self.random.sample(self.TAGS, len(self.TAGS)))
        killer.join()
        wait_until(lambda: len(self.told) > count)
        wait_until(lambda: self.latest.moved > begin)
        self.inside += self.told[-1] <= killed[0] <= self.latest.moved


@pytest.mark.long
@needs_restart
def test_killed_servers(mount, publish):
    """No read waits for longer than two seconds, and no watcher misses the last state."""
    over, slowest, model = threading.Event(), [0.0], place(mount, "org/m")

    def read():
        while not over.is_set():
            start = time.monotonic()
            (model / "latest/model.safetensors").read_bytes()
            os.listdir(model)
            slowest[0] = max(slowest[0], time.monotonic() - start)

    running_announcer(mount)
    with StateWatcher(model) as watcher, LatestWatcher(model) as latest, \
            Follower("--store", mount.store.path, "watch", "--json", "--since", "0") as follower:
        kills = Kills(mount, latest, publish)
        threading.Thread(target=kills.follow, args=(follower.process.stdout,), daemon=True).start()
        reader = threading.Thread(target=read)
        reader.start()
        try:
            for _ in range(3):
                kills.publish_undisturbed()
            for number in range(KILLS):
                kills.kill_once()
                if number % 3 == 0:
                    mount.store.weft("tag", f"org/m@{kills.random.randrange(1, 4)}", "old")
                if number % 9 == 4:
                    mount.store.weft("tag", "--delete", "org/m", "old")
            wait_until(watcher.has_all, seconds_max=30)
        finally:
            over.set()
            reader.join()
    made = {line for line in watcher.lines if line.startswith("CREATE")}
    assert made == {f"CREATE,ISDIR {model / str(number)}" for number in range(2, KILLS + 5)}
    print(f"{kills.inside} of {KILLS} kills fell inside an announcement; the slowest read took {slowest[0]:.2f} s")
    assert kills.inside >= INSIDE_MIN * KILLS
    assert slowest[0] < 2


def test_unmounting_between_announcements(tmp_path):
    """umount(8) is never told twice in a row that the mount is busy."""
    store = store_with(tmp_path, random_tensors(1, 64, seed="busy"))
    over = threading.Event()

    def tag():
        while not over.is_set():
            store.weft("tag", "m@1", "prod")

    tagger = threading.Thread(target=tag)
    tagger.start()
    try:
        for _ in range(10):
            with Mount(store, tmp_path / "mnt", options="announce") as mount:
                time.sleep(0.1)
                if run(["umount", mount.path], check=False).returncode != 0:
                    run(["umount", mount.path])
                wait_until(lambda m=mount: not m.server_pids())
    finally:
        over.set()
        tagger.join()


@pytest.mark.parametrize("options", ["announce", "publish"])
def test_idle(options, tmp_path):
    """At most one wake a second, of all processes of the mount together."""
    with mounted(tmp_path, options) as mount:
        running_announcer(mount)
        if options == "publish":
            write_model(mount / "new/draft", random_tensors(1, 4096, seed="idle"))
        time.sleep(3)
        pids = mount.server_pids()
        before = context_switches(pids)
        time.sleep(5)
        assert context_switches(pids) - before <= 5


@needs_restart
def test_an_upgrade_keeps_announcing(mount, publish):
    first = running_announcer(mount)
    mount.store.weft("mount", "--upgrade", mount.path)
    wait_until(lambda: announcer_of(mount) not in (None, first))
    with InotifyWatcher(place(mount, "org/m")) as watcher:
        publish()
        watcher.saw(f"CREATE,ISDIR {place(mount, 'org/m/2')}", f"MOVED_TO {place(mount, 'org/m/latest')}")


def test_the_tree_is_as_without(mount, tmp_path):
    with Mount(mount.store, tmp_path / "plain") as plain:
        assert files_below(mount / "models") == files_below(plain / "models")
