"""`weft wait` and `weft watch`: versions as they come."""
import contextlib
import json
import os
import pwd
import signal
import time

import pytest

from weftlib import (NOBODY, Follower, Mount, Store, context_switches, programs_for_everybody, random_tensors, store_with,
                     wait_until, write_model)

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture
def store(tmp_path):
    """With m@1."""
    return store_with(tmp_path, random_tensors(1, 4096, seed="watch 1"))


@pytest.fixture
def publish(store, tmp_path):
    count = iter(range(2, 1000))

    def publish(name="m", **options):
        number = next(count)
        model = write_model(tmp_path / f"model{number}", random_tensors(1, 4096, seed=f"watch {number}"))
        store.publish(model, name=name, **options)

    return publish


def open_files(pid):
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            yield os.readlink(f"/proc/{pid}/fd/{fd}")


def watch(store, *words, **options):
    follower = Follower("--store", store.path, "watch", *words, **options)
    # It follows once it has an inotify descriptor of the index.
    wait_until(lambda: any("inotify" in opened for opened in open_files(follower.process.pid)))
    return follower


def wait(store, *words, **options):
    return Follower("--store", store.path, "wait", *words, **options)


def test_events(store, publish):
    with watch(store, "--json") as watcher:
        publish(tag=["prod", "best"])
        store.weft("tag", "m@1", "prod")
        store.weft("tag", "--delete", "m", "best")
        store.weft("rm", "--force", "m@2")
        events = [json.loads(watcher.line()) for _ in range(4)]
        assert [(event["event"], event["version"], event.get("tags")) for event in events] == [
            ("publish", 2, ["best", "prod"]), ("tag", 1, ["prod"]), ("tag", None, ["best"]), ("remove", 2, [])]
        assert {(event["user"], event["node"]) for event in events} == {(ME, "")}
        assert events[0]["bytes"] >= 4096 and 0 < events[0]["new_bytes"] <= events[0]["bytes"]
        assert all(event["model"] == "m" and event["time_ns"] > 0 for event in events)
        assert sorted(event["position"] for event in events) == [event["position"] for event in events]
    with Follower("--store", store.path, "watch", "--json", "--since", events[1]["position"]) as watcher:
        assert [json.loads(watcher.line()) for _ in range(2)] == events[2:]
        assert watcher.says_nothing()


def test_lines(store, publish):
    with Follower("--store", store.path, "watch", "m", "--since", 0) as watcher:
        assert watcher.line().split()[1:] == ["publish", "m@1", "4.1", "KiB", "by", ME]
        publish(tag="prod")
        assert watcher.line().split()[1:] == ["publish", "m@2", "4.1", "KiB", "prod", "by", ME]
        store.weft("tag", "--delete", "m", "prod")
        assert watcher.line().split()[1:] == ["tag", "m", "prod", "deleted", "by", ME]


def test_prefixes(store, publish):
    with watch(store, "org", "n", "--json") as watcher:
        for name in ["m", "organ", "org/a", "n"]:
            publish(name=name)
        assert [json.loads(watcher.line())["model"] for _ in range(2)] == ["org/a", "n"]
        assert watcher.says_nothing()


def test_restart(store, publish):
    """The present state follows where the store cannot say what happened."""
    publish(tag="prod")
    store.weft("tag", "m@1", "old")
    with Follower("--store", store.path, "watch", "--json", "--since", 1) as watcher:
        events = [json.loads(watcher.line()) for _ in range(3)]
        assert [(event["event"], event.get("version"), event.get("tags")) for event in events] == [
            ("restart", None, None), ("publish", 2, ["prod"]), ("tag", 1, ["old"])]
        publish()
        assert json.loads(watcher.line())["version"] == 3


def test_exec(store, publish, tmp_path):
    """One at a time; of what came meanwhile, the newest."""
    log, gate = tmp_path / "log", tmp_path / "gate"
    os.mkfifo(gate)
    command = f'echo $WEFT_EVENT $WEFT_MODEL $WEFT_VERSION $WEFT_TAGS "$WEFT_PATH" >> {log}; cat {gate}'
    with Mount(store, tmp_path / "mnt") as mount, watch(store, "m", "--exec", command) as watcher:
        publish()
        wait_until(log.exists)
        publish()
        publish(tag="prod")
        store.weft("tag", "m@1", "prod")
        store.weft("rm", "--force", "m@2")
        for _ in range(5):
            watcher.line()
        for expected in range(1, 4):
            wait_until(lambda n=expected: len(log.read_text().splitlines()) == n)
            gate.write_text("")
        assert log.read_text().splitlines() == [f"publish m 2 {mount / 'models/m/2'}",
                                                f"publish m 4 prod {mount / 'models/m/4'}",
                                                f"tag m 1 prod {mount / 'models/m/1'}"]


def test_exec_fails(store, publish):
    with watch(store, "--exec", "exit 7") as watcher:
        publish()
        assert watcher.process.stderr.readline() == "weft: watch: the command for m@2 ended with exit code 7\n"
        publish()
        assert watcher.process.stderr.readline() == "weft: watch: the command for m@3 ended with exit code 7\n"


def test_exec_ends_with_the_watcher(store, publish, tmp_path):
    with watch(store, "--exec", f"echo $$ > {tmp_path}/pid; exec sleep 1000") as watcher:
        publish()
        wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        watcher.process.send_signal(signal.SIGTERM)
        pid = int((tmp_path / "pid").read_text())
        wait_until(lambda: not os.path.exists(f"/proc/{pid}/exe") or not os.path.lexists(f"/proc/{pid}"))


def test_wait(store, publish, tmp_path):
    assert store.weft("wait", "m").stdout == "m@1\n"
    with Mount(store, tmp_path / "mnt") as mount:
        with wait(store, "m", "--newer-than", 1, "--json") as waiting:
            assert waiting.says_nothing(0.3)
            publish()
            assert json.loads(waiting.line()) == {"model": "m", "version": 2, "path": str(mount / "models/m/2")}
            assert waiting.process.wait() == 0
        assert store.weft("wait", "m@1").stdout == f"m@1  {mount / 'models/m/1'}\n"


def test_wait_for_a_tag(store, publish):
    with wait(store, "m@prod", "--here") as waiting:
        publish()
        assert waiting.says_nothing(0.3)
        store.weft("tag", "m@1", "prod")
        assert waiting.line() == "m@1\n"


def test_wait_for_a_model(store, publish):
    with wait(store, "org/new@latest") as waiting:
        publish(name="org/other")
        assert waiting.says_nothing(0.3)
        publish(name="org/new")
        assert waiting.line() == "org/new@1\n"


def test_wait_no_longer(store):
    done = store.weft("wait", "m", "--newer-than", "1", "--timeout", "0.2", check=False)
    assert (done.returncode, done.stdout) == (124, "")
    assert done.stderr == "weft: wait: m, newer than 1, did not come in 0.2 s\n"
    assert store.weft("wait", "m", "--timeout", "0").returncode == 0
    assert store.weft("wait", "m", "--timeout", "soon", check=False).returncode == 2
    assert store.weft("wait", "m", "--newer-than", "-1", check=False).returncode == 2
    assert store.weft("watch", "--since", "now", check=False).returncode == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_no_right_to_write(open_dir, tmp_path):
    """A user who may only read the store can wait, watch, and run a command for each event."""
    store = Store(open_dir / "store", group="nogroup")
    store.publish(write_model(tmp_path / "m", random_tensors(2, 4096, seed="group")), name="m")
    (open_dir / "bin").mkdir()
    member = {"program": programs_for_everybody(open_dir / "bin") / "weft", "user": NOBODY, "group": NOBODY,
              "extra_groups": [], "cwd": "/"}
    said = open_dir / "said"
    with wait(store, "m@prod", **member) as waiting, watch(store, "--json", **member) as watcher, \
            watch(store, "--exec", f'echo "$(id -u) $WEFT_EVENT $WEFT_TAGS" > {said}', **member):
        store.weft("tag", "m@1", "prod")
        assert waiting.line() == "m@1\n"
        assert json.loads(watcher.line())["tags"] == ["prod"]
        wait_until(lambda: said.exists() and said.read_text() == f"{NOBODY} tag prod\n")


def test_idle(store):
    """Who waits sleeps."""
    with watch(store) as watcher, wait(store, "m@none") as waiting:
        assert waiting.says_nothing(0.3)
        pids = [watcher.process.pid, waiting.process.pid]
        before = context_switches(pids)
        time.sleep(2)
        assert context_switches(pids) - before <= 2
