"""`-o announce`: inotify tells of what is published, tagged and removed."""
import errno
import json
import os
import signal
import threading
import time

import pytest
from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer

from weftlib import (COMMAND_SECONDS_MAX, HAS_LINUX_6_9, LENGTH, NOBODY, InotifyWatcher, Mount, act_as, context_switches,
                     files_below, in_mount_namespace, random_tensors, run, store_with, wait_until, write_model)

needs_restart = pytest.mark.skipif(not HAS_LINUX_6_9, reason="a server follows another from Linux 6.9 on")


@pytest.fixture
def mount(tmp_path):
    """Of a store with org/m@1."""
    store = store_with(tmp_path, random_tensors(1, 4096, seed="announce"), name="org/m")
    with Mount(store, tmp_path / "mnt", options=f"announce,log={tmp_path}/weft.log") as mounted:
        yield mounted


@pytest.fixture
def publish(mount, tmp_path):
    count = iter(range(1000))

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
        mount.store.weft("rm", "org/m@2")
        watcher.saw(f"DELETE,ISDIR {place(mount, 'org/m/2')}", f"MOVED_TO {place(mount, 'org/m/latest')}")
        assert os.readlink(place(mount, "org/m/latest")) == "1"
        assert sorted(os.listdir(place(mount, "org/m"))) == ["1", "latest"]


def test_new_models_and_namespaces(mount, publish):
    with InotifyWatcher("--recursive", place(mount, "")) as watcher:
        publish("org/n")
        watcher.saw(f"CREATE,ISDIR {place(mount, 'org/n')}")
        publish("new/a/b")
        watcher.saw(f"CREATE,ISDIR {place(mount, 'new')}")
        time.sleep(0.5)  # inotifywait watches what came
        publish("new/a/b")
        watcher.saw(f"CREATE,ISDIR {place(mount, 'new/a/b/2')}", f"MOVED_TO {place(mount, 'new/a/b/latest')}")
        mount.store.weft("rm", "--all", "new/a/b")
        watcher.saw(f"DELETE,ISDIR {place(mount, 'new/a/b')}", f"DELETE,ISDIR {place(mount, 'new')}")
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


@pytest.mark.long
@needs_restart
def test_killed_servers(mount, publish):
    """No read waits for longer than two seconds, and no watcher misses the last state."""
    over, slowest = threading.Event(), [0.0]

    def read():
        while not over.is_set():
            start = time.monotonic()
            (mount / "README").read_bytes()
            os.listdir(place(mount, "org/m"))
            slowest[0] = max(slowest[0], time.monotonic() - start)

    reader = threading.Thread(target=read)
    with InotifyWatcher(place(mount, "org/m")) as watcher:
        reader.start()
        try:
            for number in range(2, 2 + int(20 * LENGTH)):
                publish(tag="prod")
                os.kill(status_of(mount)["pid"], signal.SIGKILL)
                if number % 5 == 0 and (announcer := announcer_of(mount)):
                    os.kill(announcer, signal.SIGKILL)
                mount.store.weft("tag", f"org/m@{number - 1}", "old")
            publish(tag="last")
            watcher.saw(f"MOVED_TO {place(mount, 'org/m/last')}", f"MOVED_TO {place(mount, 'org/m/latest')}")
            assert os.readlink(place(mount, "org/m/latest")) == str(number + 1)
        finally:
            over.set()
            reader.join()
    made = [line for line in watcher.lines if line.startswith("CREATE")]
    assert set(made) == {f"CREATE,ISDIR {place(mount, f'org/m/{n}')}" for n in range(2, number + 2)}
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


def test_idle(mount):
    """At most one wake a second."""
    running_announcer(mount)
    time.sleep(1)
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
