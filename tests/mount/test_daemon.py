"""A store that a daemon has: the command line through it, who may ask for what, what it says of itself."""
import json
import os
import re
import pwd
import signal
import socket
import subprocess
import time
import urllib.request

import pytest

from daemonlib import Daemon, metrics, receive, send
from weftlib import (NOBODY, WEFT, Mount, Store, environment, files_below, programs_for_everybody, random_tensors, run,
                     wait_until, write_model)

MIB = 1 << 20


@pytest.fixture
def daemon(store):
    with Daemon(store) as running:
        yield running


def say_all(store, model, changed):
    """What the commands that write say, one after the other; times and sizes on disk are left out."""
    said = []
    for words in (["import", model, "--name", "m", "--tag", "t", "--metric", "loss=0.5", "--message", "first"],
                  ["import", model, "--name", "m"], ["import", changed, "--name", "m", "--json"],
                  ["import", changed / "nothing", "--name", "m"], ["import", model, "--name", "m", "--parent", "x@1"],
                  ["import", model, "--name", "m/../x"], ["import", model, "--name", "n", "--inherit", "m@1"],
                  ["tag", "m@1", "stable"], ["tag", "m@7", "stable"], ["tag", "m@2", "stable", "--json"],
                  ["tag", "--delete", "m", "t"], ["tag", "--delete", "m", "t"], ["tag", "m@1", "5"],
                  ["rm", "m@1", "m@1"], ["rm", "m@1"], ["rm", "m@2", "none@1"], ["rm", "--all", "none"],
                  ["gc", "--dry-run"], ["gc"], ["rm", "m@2"], ["rm", "--all", "m"], ["rm", "m", "--keep", "1", "--dry-run"],
                  ["import", model, "--name", "m", "--metric", "loss=0.4", "--keep", "1"],
                  ["rm", "m", "--keep", "1", "--keep-best", "loss", "--json"],
                  ["rm", "--all", "--force", "m", "--json"], ["gc", "--json"]):
        done = store.weft(*words, check=False)
        text = re.sub("`weft undelete` brings it back.*", "", done.stdout)  # the daemon keeps it for gc_delay
        text = re.sub('"kept_until(_ns)?": *("[^"]*"|\\d+|null)', "", text)
        said.append((words[0], done.returncode, text, done.stderr.replace(str(store.path), "STORE")))
    return said


def test_commands_say_and_do_what_they_do_without_a_daemon(tmp_path):
    model = write_model(tmp_path / "model", random_tensors(4, 64 << 10, seed="a"), files=[("a/b.txt", b"text")])
    changed = write_model(tmp_path / "changed", random_tensors(4, 64 << 10, seed="a") | random_tensors(1, 4096, seed="b"))
    alone, through = Store(tmp_path / "alone"), Store(tmp_path / "through")
    without = say_all(alone, model, changed)
    with Daemon(through) as daemon:
        assert say_all(through, model, changed) == without
        assert daemon.status()["requests"] >= 15  # others were refused before they got there
    through.assert_sound()


def test_keep_names_the_removed_versions(daemon, store, tmp_path):
    for number in range(4):
        model = write_model(tmp_path / str(number), random_tensors(1, 64, seed=f"keep {number}"))
        report = store.json("import", model, "--name", "m", "--keep", "2")
        assert [one["version"] for one in report["removed"]] == ([number - 1] if number >= 2 else [])
        assert report["not_removed"] == ""
    model = write_model(tmp_path / "last", random_tensors(1, 64, seed="keep last"))
    lines = store.weft("import", model, "--name", "m", "--keep", "1").stdout.splitlines()
    assert [line for line in lines if "removed" in line] == ["  removed m@3", "  removed m@4"]


def test_what_is_published_is_what_was_given(daemon, store, tmp_path):
    """Also where the files' directory is not one that the daemon could find: the client opens them."""
    tensors = random_tensors(6, MIB, seed="given")
    model = write_model(tmp_path / "model", tensors, files=[(f"many/{i}", bytes([i % 256]) * i) for i in range(300)])
    (model / "link").symlink_to(model / "many/7")
    store.weft("import", "model", "--name", "m", cwd=tmp_path)
    with Mount(store, tmp_path / "mnt") as mount:
        assert files_below(mount.version("m", 1)) == files_below(model)
    store.assert_sound()


def test_files_are_opened_with_the_rights_of_who_asks(store, open_dir, small_model):
    """A user who may publish cannot publish what he cannot read, though the daemon could."""
    programs = programs_for_everybody(open_dir)
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    if os.geteuid() != 0:
        pytest.skip("needs root")
    shared = Store(open_dir / "store", group="nogroup")
    (shared.path).chmod(0o755)
    secret = open_dir / "secret.bin"
    secret.write_bytes(b"secret")
    secret.chmod(0o600)
    public = open_dir / "public.bin"
    public.write_bytes(b"public")
    public.chmod(0o644)
    weft = [programs / "weft", "--store", shared.path]
    with Daemon(shared, "--control-publish", str(NOBODY)):
        refused = run([*weft, "import", secret, "--name", "m"], check=False, **user)
        assert refused.returncode == 1 and "Permission denied" in refused.stderr
        assert "m@1" in run([*weft, "import", public, "--name", "m"], **user).stdout
        run([*weft, "tag", "m@1", "mine"], **user)
        run([*weft, "note", "m@1", "-m", "mine"], **user)
        (change,) = shared.json("tag", "--log", "m")["changes"]
        assert (change["tag"], change["user"], change["node"]) == ("mine", pwd.getpwuid(NOBODY).pw_name, None)
        run([*weft, "mv", "m", "n"], **user)
        run([*weft, "mv", "n", "m"], **user)
        for words in (["rm", "m@1"], ["undelete", "m@1"], ["gc"]):
            refused = run([*weft, *words], check=False, **user)
            assert refused.returncode == 1 and f"user {NOBODY} may not" in refused.stderr
    assert shared.json("ls")["models"][0]["versions"] == 1


@pytest.mark.parametrize("option, words", [("--control-remove", ["rm", "m@1"]), ("--control-gc", ["gc"]),
                                           ("--control-publish", ["tag", "m@1", "x"]),
                                           ("--control-publish", ["note", "m@1", "-m", "x"]),
                                           ("--control-publish", ["mv", "m", "n"])])
def test_groups_may_be_let_in(open_dir, option, words):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    programs = programs_for_everybody(open_dir)
    store = Store(open_dir / "store", group="nogroup")
    file = open_dir / "a.bin"
    file.write_bytes(b"a")
    store.publish(file, name="m")
    weft = [programs / "weft", "--store", store.path, *words]
    # The group is one of his others, not his first.
    member = {"user": NOBODY, "group": NOBODY, "extra_groups": [4711]}
    with Daemon(store, option, "@4711"):
        assert run(weft, check=False, user=NOBODY, group=NOBODY, extra_groups=[]).returncode == 1
        run(weft, **member)


def test_rights_differ_by_prefix(open_dir, tmp_path):
    """The longest prefix of a name decides, on every way to a change; SIGHUP takes the rules over."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    programs = programs_for_everybody(open_dir)
    store = Store(open_dir / "store", group="nogroup")
    store.path.chmod(0o755)
    file = open_dir / "a.bin"
    file.write_bytes(b"a")
    config = tmp_path / "weft.conf"
    config.write_text(f"store = '{store.path}'\n[[grant]]\nprefix = 'team/'\npublish = [{NOBODY}]\n")

    def weft(*words, may=True):
        done = run([programs / "weft", "--store", store.path, *words], check=False, user=NOBODY, group=NOBODY,
                   extra_groups=[])
        assert (done.returncode == 0) == may, (words, done.stdout, done.stderr)
        assert may or f"user {NOBODY} may not" in done.stderr, (words, done.stderr)
        return done.stderr

    with Daemon(store, config=config) as daemon:
        store.publish(file, name="other")
        weft("import", file, "--name", "team/m", "--tag", "t")
        assert "one of control.publish in weft.conf" in weft("import", file, "--name", "teams", may=False)
        weft("tag", "team/m@1", "u")
        weft("note", "team/m@1", "-m", "new")
        for words in (["tag", "other@1", "u"], ["note", "other@1", "-m", "new"], ["mv", "team/m", "mine"],
                      ["mv", "other", "team/other"], ["rm", "--force", "team/m@1"]):
            weft(*words, may=False)
        weft("mv", "team/m", "team/n")
        config.write_text(config.read_text() + f"remove = [{NOBODY}]\n[[grant]]\nprefix = 'team/n'\npublish = []\n")
        daemon.signal(signal.SIGHUP)
        wait_until(lambda: "configuration reloaded" in daemon.said(), seconds_max=30)
        assert 'one of the grant of publish for "team/n" in weft.conf' in weft("tag", "team/n@1", "v", may=False)
        weft("rm", "--force", "team/n@1")
        weft("undelete", "team/n@1")


def test_a_protected_tag(open_dir):
    """Its owner and root change it; other users who may publish and remove do not, on any way."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    programs = programs_for_everybody(open_dir)
    store = Store(open_dir / "store", group="nogroup")
    store.path.chmod(0o755)
    for name in ("a", "b"):
        (open_dir / name).write_bytes(name.encode())
    other = 54_321

    def weft(user, *words, may=True):
        done = run([programs / "weft", "--store", store.path, *words], check=False, user=user, group=NOBODY,
                   extra_groups=[])
        assert (done.returncode == 0) == may, (words, done.stdout, done.stderr)
        assert may or "it is protected; expected" in done.stderr and done.stderr.count("\n") == 1, done.stderr

    rights = [word for who in (NOBODY, other) for right in ("publish", "remove") for word in (f"--control-{right}", str(who))]
    with Daemon(store, *rights):
        store.publish(open_dir / "a", name="m")
        weft(other, "tag", "m@1", "prod")
        weft(NOBODY, "tag", "--protect", "m@prod")
        assert store.json("tag", "m")["tags"][0]["owner"] == pwd.getpwuid(NOBODY).pw_name
        for words in (["tag", "--unprotect", "m@prod"], ["tag", "--delete", "m", "prod"], ["rm", "--force", "m@1"],
                      ["rm", "--force", "--all", "m"], ["mv", "m", "n"],
                      ["import", open_dir / "b", "--name", "m", "--tag", "prod"]):
            weft(other, *words, may=False)
        weft(other, "import", open_dir / "b", "--name", "m")
        weft(other, "tag", "m@2", "prod", may=False)
        weft(NOBODY, "tag", "m@2", "prod")
        weft(0, "tag", "m@1", "prod")
    with Daemon(store, *rights):  # the journal has the owner
        weft(other, "tag", "m@2", "prod", may=False)
        weft(0, "tag", "--unprotect", "m@prod")
        weft(other, "tag", "m@2", "prod")
        weft(other, "mv", "m", "n")
    store.assert_sound()


def test_interrupted_import(daemon, store, tmp_path):
    """Ctrl-C while the daemon reads: the store is as it was, and the exit status says so."""
    model = write_model(tmp_path / "model", random_tensors(64, 4 * MIB, seed="big"))
    before = store.state()
    client = subprocess.Popen([WEFT, "--store", store.path, "import", model, "--name", "m"], env=environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: any((store.path / "tmp").iterdir()) or client.poll() is not None, seconds_max=60)
    client.send_signal(signal.SIGINT)
    out, err = client.communicate(timeout=60)
    if client.returncode == 0:
        pytest.skip("the import was quicker than the signal")
    assert (client.returncode, out) == (128 + signal.SIGINT, "")
    assert err == "weft: interrupted, the store is as it was\n"
    assert store.state() == before
    wait_until(lambda: not any((store.path / "tmp").iterdir()), seconds_max=60)
    store.publish(model, name="m")
    store.assert_sound()


def test_a_client_that_is_killed_leaves_nothing(daemon, store, tmp_path):
    model = write_model(tmp_path / "model", random_tensors(64, 4 * MIB, seed="big"))
    client = subprocess.Popen([WEFT, "--store", store.path, "import", model, "--name", "m"], env=environment(),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: any((store.path / "tmp").iterdir()) or client.poll() is not None, seconds_max=60)
    client.kill()
    client.wait()
    wait_until(lambda: not any((store.path / "tmp").iterdir()), seconds_max=60)
    assert daemon.alive()
    store.publish(model, name="n")
    store.assert_sound()


def test_many_at_once(daemon, store, tmp_path):
    """Twenty clients publish at the same time, half of them into one model: none is lost."""
    clients = []
    for i in range(20):
        model = write_model(tmp_path / f"model{i}", random_tensors(4, 64 << 10, seed=f"m{i}"))
        name = "one" if i % 2 else f"other{i}"
        clients.append(subprocess.Popen([WEFT, "--store", store.path, "import", model, "--name", name],
                                        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    for client in clients:
        assert client.wait(60) == 0, client.stderr.read()
        client.stdout.close(), client.stderr.close()
    assert {model["model"]: model["versions"] for model in store.json("ls")["models"]}["one"] == 10
    store.assert_sound()


def test_status(daemon, store, small_model):
    store.publish(small_model, name="m")
    status = daemon.status()
    assert status["pid"] == daemon.pid
    assert status["registry"]["kind"] == "local"
    assert f"pid: {daemon.pid}" in store.weft("status", "--all").stdout
    assert store.json("peers") == {"peers": [], "absent": [], "stale": False, "trouble": ""}
    daemon.stop()
    assert store.json("status")["daemon"] is None
    assert "daemon    none" in store.weft("status", "--all").stdout
    refused = store.weft("peers", check=False)
    assert refused.returncode == 1 and "no daemon runs" in refused.stderr


def test_health_of_one_machine(daemon, store, small_model):
    """With weftd and without it: the verdict is the exit status."""
    store.publish(small_model, name="m")
    for stop in (False, True):
        if stop:
            daemon.stop()
        done = store.weft("health", "--json", check=False)
        report = json.loads(done.stdout)
        assert done.returncode == ["well", "warning", "trouble"].index(report["verdict"])
        assert not report["facts"]["clustered"] and report["facts"]["lost"] == 0
        assert [node["self"] for node in report["facts"]["nodes"]] == [True]
        assert report["facts"]["nodes"][0]["disk_bytes"] > 0 and report["facts"]["nodes"][0]["reserve_bytes"] > 0
        assert {one["what"] for one in report["findings"]} <= {"disk-space"}
    assert store.json("status")["cluster_health"] is None


def test_metrics(store, small_model):
    with Daemon(store, "--metrics-listen", "127.0.0.2:19464") as daemon:
        store.publish(small_model, name="m")
        store.weft("rm", "m@9", check=False)
        text = daemon.ask("metrics")["text"]
        samples = metrics(text)
        assert samples['weft_request_duration_seconds_count{request="import"}'] == 1
        assert samples['weft_request_duration_seconds_bucket{request="import",le="+Inf"}'] == 1
        assert samples['weft_requests_failed_total{request="rm"}'] == 1
        with urllib.request.urlopen("http://127.0.0.2:19464/metrics", timeout=30) as page:
            assert page.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert 'weft_request_duration_seconds_count{request="import"} 1' in page.read().decode()
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen("http://127.0.0.2:19464/", timeout=30)


def test_a_silent_client_of_the_metrics_keeps_no_other_waiting(store):
    with Daemon(store, "--metrics-listen", "127.0.0.1:19465"), socket.create_connection(("127.0.0.1", 19465)) as silent:
        silent.settimeout(0)
        for _ in range(3):
            with urllib.request.urlopen("http://127.0.0.1:19465/metrics", timeout=60) as page:
                assert "weft_" in page.read().decode()
            with pytest.raises(BlockingIOError):  # it is served beside the others, not sent away for them
                silent.recv(1)


# Makes connections to a daemon's socket as an attacker would, and keeps them until its input ends.
ATTACK = r"""
import os, resource, socket, sys
directory, count, fds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
here = os.open(directory, os.O_PATH)
null = os.open("/dev/null", os.O_RDONLY)
kept = []
for _ in range(count):
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(1)
    try:
        one.connect(f"/proc/self/fd/{here}/weftd.sock")
        socket.send_fds(one, [b"\x10\0\0\0{"], [null] * fds) if fds else one.sendall(b"\x10\0\0\0{")
    except OSError:
        pass
    kept.append(one)
print("made", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("count, fds", [(1024, 0), (900, 64)])
def test_a_user_keeps_nobody_from_the_daemon(open_dir, count, fds):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    store = Store(open_dir / "store")
    file = open_dir / "a.bin"
    file.write_bytes(b"a")
    with Daemon(store) as daemon:
        store.publish(file, name="m")
        words = ["/usr/bin/python3", "-c", ATTACK, str(store.path), str(count), str(fds)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=NOBODY, group=NOBODY,
                              extra_groups=[], env={}) as attacker:
            assert attacker.stdout.readline() == b"made\n"
            try:
                run([WEFT, "--store", store.path, "tag", "m@1", "x"], timeout=60)
                # The descriptors of messages that do not end are not kept, and connections only so many.
                wait_until(lambda: len(os.listdir(f"/proc/{daemon.pid}/fd")) < 250, seconds_max=30)
            finally:
                attacker.stdin.close()
        assert daemon.alive()


WISH = {"name": "m", "inherit": "", "add": False, "dataset": False, "take": 0,
        "durability": "local", "keep": 0, "parents": [], "tags": [], "default_message": "",
        "source": {"endpoint": "", "repository": "", "revision": "", "commit": "", "access": "", "listed_ns": 0, "urls": [],
                   "left_out": 0},
        "message": "", "metrics": [], "files": 2}


@pytest.mark.parametrize("body", [
    {}, {"name": "m"}, WISH | {"name": 5}, WISH | {"metrics": ["x"]}, WISH | {"files": 0}, WISH | {"name": "../m"},
    WISH | {"durability": "disk"}, WISH | {"source": WISH["source"] | {"commit": "main"}}])
def test_an_import_that_makes_no_sense_is_refused(daemon, store, body):
    assert daemon.ask("import", body)[0] == "invalid"
    assert store.json("ls")["models"] == []


def entry(path, where):
    return [path, where, 1, 0, False, "", "", ""]


@pytest.mark.parametrize("files", [
    [entry("../escape", "x"), entry("b", "y")], [entry("a", "x"), entry("a", "y")], [entry("a", "x"), entry("a/b", "y")],
    [entry("a", "x"), entry("b", "y"), entry("c", "z")], [], [["a", "x"]], "a", [entry("/a", "x"), entry("b", "y")]])
def test_files_that_no_version_can_have_are_refused(daemon, store, files):
    """A client of one's own makes may say what it likes."""
    with daemon.connect() as connection:
        send(connection, {"id": 1, "request": "import", "body": WISH})
        assert receive(connection)["body"] == {"files": 0}
        send(connection, {"id": 1, "more": True, "body": {"files": files}})
        assert receive(connection)["error"] == "invalid"
    assert store.json("ls")["models"] == []
    assert daemon.alive()


def asked(connection):
    """What comes next that is no progress."""
    while True:
        message = receive(connection)
        if "phase" not in message.get("body", {}):
            return message


def test_a_client_that_sends_no_file_or_no_regular_one(daemon, store):
    with daemon.connect() as connection:
        for number in range(2):
            send(connection, {"id": number, "request": "import", "body": WISH | {"files": 1}})
            assert asked(connection)["body"] == {"files": 0}
            send(connection, {"id": number, "more": True, "body": {"files": [entry("a", "x")]}})
            assert asked(connection)["body"] == {"open": 0}
            if number == 0:
                send(connection, {"id": 0, "more": True, "body": {"code": "not_found", "message": "it is gone"}})
                assert asked(connection) == {"id": 0, "error": "not_found", "message": "it is gone"}
            else:
                read, write = os.pipe()
                text = json.dumps({"id": 1, "more": True, "body": {}, "fds": 1}).encode()
                socket.send_fds(connection, [len(text).to_bytes(4, "little") + text], [read])
                os.close(read), os.close(write)
                assert asked(connection)["error"] == "changed"
    assert store.json("ls")["models"] == []
    assert daemon.alive()


def test_nonsense_does_not_harm_it(daemon, store, small_model):
    for data in (b"\xff\xff\xff\xff", b"\x02\0\0\0[]", os.urandom(4096)):
        with daemon.connect() as connection:
            connection.sendall(data)
            connection.settimeout(30)
            with pytest.raises(ConnectionError):
                while True:
                    receive(connection)
    store.publish(small_model, name="m")


def test_idle_costs_nothing(daemon, store, small_model):
    """No wake-ups: it waits. How much it costs is measured by scripts/bench cluster."""
    store.publish(small_model, name="m")

    def switches():
        total = 0
        for task in os.listdir(f"/proc/{daemon.pid}/task"):
            text = open(f"/proc/{daemon.pid}/task/{task}/status").read()
            total += int(text.split("voluntary_ctxt_switches:")[1].split()[0])
        return total

    wait_until(lambda: daemon.ask("status")["connections"] <= 1)
    time.sleep(0.5)
    before = switches()
    time.sleep(2)
    assert switches() - before <= 10
