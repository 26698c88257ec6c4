"""How a daemon begins and ends, and what it leaves when it is killed."""
import os
import random
import re
import signal
import subprocess
import time

import pytest

from daemonlib import WEFTD, Daemon
from weftlib import (WEFT, Mount, Store, environment, files_below, random_tensors, run, wait_until, write_model)

MIB = 1 << 20


def importing(store, model, name="m", **options):
    return subprocess.Popen([WEFT, "--store", store.path, "import", model, "--name", name], env=environment(),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def writes(store):
    return any((store.path / "tmp").iterdir())


def test_readiness_and_end(store):
    with Daemon(store) as daemon:
        assert (store.path / "weftd.sock").is_socket()
        daemon.signal(signal.SIGTERM)
        daemon.hears("STOPPING=1")
        assert daemon.wait() == 0
        assert not (store.path / "weftd.sock").exists()


def test_no_store_and_bad_settings_are_said(tmp_path):
    config = tmp_path / "weft.conf"
    for text, words in (("stor = '/x'", "weft.conf:1: unknown key stor"), ("store = [", "weft.conf:1: "),
                        ("store = 5.5", "weft.conf:1: store: expected a text"),
                        ("store = '/x'\n[control]\npublish = ['no-such-user']", "weft.conf:3: control.publish: no user"),
                        ("store = '/x'\ncold = 'warm'", "weft.conf:2: cold: expected one of auto, stream, fetch"),
                        ("store = '/x'\ncache_max = 'much'", "weft.conf:2: cache_max: expected bytes"),
                        ("metrics_listen = ':70000'\nstore='/x'", "weft.conf:1: metrics_listen: expected HOST:PORT"),
                        ("location = 'rack 7'\nstore='/x'",
                         "weft.conf:1: location: expected at most 64 printable ASCII characters without spaces, got"),
                        ("", "store: expected the directory of the store")):
        config.write_text(text)
        done = run([WEFTD, "--check", "--config", config], check=False)
        assert done.returncode == 1 and words in done.stderr, (text, done.stderr)
    done = run([WEFTD, "--store", tmp_path / "none"], check=False)
    assert done.returncode == 1 and "none" in done.stderr
    assert run([WEFTD, "--nothing"], check=False).returncode == 2


def test_a_check_finds_nothing_wrong(store, tmp_path):
    config = tmp_path / "weft.conf"
    config.write_text(f"store = '{store.path}'\nlog_file = '{tmp_path}/log'\n[control]\ngc = ['root', 12, '@0']\n")

    def said():
        done = run([WEFTD, "--check", "--config", config])
        return done.stdout + done.stderr

    assert said() == ""
    with Daemon(store):
        assert said() == ""
    assert not (tmp_path / "log").exists()


def test_a_check_finds_all_mistakes_at_once(tmp_path):
    """Those of the file, and those of everything that it names."""
    config, key, ca = (tmp_path / name for name in ("weft.conf", "key", "ca.pem"))
    key.write_bytes(bytes(32))
    key.chmod(0o644)
    ca.write_text("no certificate")
    config.write_text(f"""store = '{tmp_path}/none'
cold = 'warm'
listen = '192.0.2.1'
key_file = '{key}'
origin = '{tmp_path}/no-origin'
[etcd]
endpoints = ['http://127.0.0.1:1']
password_file = '{tmp_path}/no-password'
ca = '{ca}'
cert = '{tmp_path}/no-certificate'
key = '{ca}'
""")
    done = run([WEFTD, "--check", "--config", config], check=False)
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    for line, words in ((1, "store: .*none: no store here"), (2, "cold: expected one of auto, stream, fetch"),
                        (3, "listen: no interface of this machine has the address 192.0.2.1$"),
                        (4, "key_file: .*expected mode 0600 or 0400, got 0644"), (5, "origin: .*no-origin"),
                        (7, "etcd.endpoints: .*http://127.0.0.1:1"), (8, "etcd.password_file: .*no-password"),
                        (9, "etcd.ca: .*ca.pem: expected a PEM file"), (10, "etcd.cert: .*no-certificate"),
                        (11, "etcd.key: .*ca.pem: expected a PEM file")):
        assert any(re.match(rf"weftd: .*weft.conf:{line}: {words}", one) for one in lines), (line, words, lines)
    assert len(lines) == 10, lines


def test_flags_override_the_file(store, tmp_path):
    config = tmp_path / "weft.conf"
    config.write_text(f"store = '{tmp_path}/other'\nname = 'from-file'\ncold = 'stream'\n")
    with Daemon(store, "--name", "from-flag", config=config) as daemon:
        status = daemon.status()
        assert (status["name"], status["cold"]) == ("from-flag", "stream")


def test_only_one(store):
    """The second waits, says for whom, and takes over when the first has gone."""
    with Daemon(store) as first, Daemon(Alias(store), ready=False) as second:
        assert f"process {first.pid}" in second.hears("STATUS=")
        assert first.alive() and second.alive()
        assert first.stop() == 0
        second.wait_ready()


class Alias:
    """The same store, for a second daemon with a log of its own."""

    def __init__(self, store):
        self.path = store.path.parent / (store.path.name + "-again")
        self.path.symlink_to(store.path)


def test_one_that_starts_while_a_library_imports_waits_for_it(store, tmp_path):
    model = write_model(tmp_path / "model", random_tensors(64, 4 * MIB, seed="big"))
    client = importing(store, model)
    wait_until(lambda: writes(store) or client.poll() is not None, seconds_max=60)
    client.send_signal(signal.SIGSTOP)
    with Daemon(store, ready=False) as daemon:
        if client.poll() is None:
            assert "daemon.lock, which another process holds" in daemon.hears("STATUS=")
        client.send_signal(signal.SIGCONT)
        assert client.wait(60) == 0
        daemon.wait_ready()
        assert daemon.ask("status")["pid"] == daemon.pid
    client.stdout.close(), client.stderr.close()
    store.assert_sound()


def test_one_that_waits_can_be_ended(store, tmp_path):
    with Daemon(store), Daemon(Alias(store), ready=False) as second:
        second.hears("STATUS=")
        assert second.stop() == 1


def test_sigterm_lets_what_runs_end(store, tmp_path):
    model = write_model(tmp_path / "model", random_tensors(32, 4 * MIB, seed="big"))
    with Daemon(store) as daemon:
        client = importing(store, model)
        wait_until(lambda: writes(store) or client.poll() is not None, seconds_max=60)
        assert daemon.stop() == 0
        out, err = client.communicate(timeout=60)
        assert client.returncode == 0, err
        assert "m@1" in out
    store.assert_sound()


def test_sigterm_gives_up_what_does_not_end(store, tmp_path):
    model = write_model(tmp_path / "model", random_tensors(64, 4 * MIB, seed="big"))
    with Daemon(store, "--drain-seconds", "0") as daemon:
        client = importing(store, model)
        wait_until(lambda: writes(store) or client.poll() is not None, seconds_max=60)
        client.send_signal(signal.SIGSTOP)
        assert daemon.stop() == 0
        client.send_signal(signal.SIGCONT)
        out, err = client.communicate(timeout=60)
    if client.returncode != 0:
        assert out == "" and err.count("\n") == 1
        assert store.json("ls")["models"] == []
    assert not writes(store)
    store.assert_sound()


def test_sighup_reopens_the_log(store, tmp_path):
    log = tmp_path / "weftd.log"
    with Daemon(store, "--log-file", log) as daemon:
        wait_until(lambda: "serves" in log.read_text())
        log.rename(tmp_path / "weftd.log.1")
        daemon.signal(signal.SIGHUP)
        wait_until(lambda: log.exists() and "configuration reloaded" in log.read_text())
        assert daemon.stop() == 0
    assert "ended" in log.read_text()
    assert "reloaded" not in (tmp_path / "weftd.log.1").read_text()


def test_sighup_reloads(store, tmp_path):
    config = tmp_path / "weft.conf"
    config.write_text("cold = 'auto'\n")
    with Daemon(store, config=config) as daemon:
        name = daemon.status()["name"]
        assert daemon.status()["expect_others"] is False
        config.write_text("cold = 'fetch'\nname = 'other'\nlocation = 'rack7'\nexpect_others = true\n")
        daemon.signal(signal.SIGHUP)
        daemon.hears("RELOADING=1")
        daemon.wait_ready()
        assert daemon.status()["cold"] == "fetch" and daemon.status()["location"] == "rack7"
        assert daemon.status()["expect_others"] is True
        assert "name has changed; restart weftd to apply it" in daemon.said()
        assert daemon.status()["name"] == name  # by which it runs
        config.write_text("cold = 'warm'\n")
        daemon.signal(signal.SIGHUP)
        daemon.hears("RELOADING=1")
        daemon.wait_ready()
        assert daemon.status()["cold"] == "fetch"
        assert "configuration not reloaded" in daemon.said()


def test_sighup_adds_debug_lines(store, tmp_path):
    """Of the categories that log_level names, from the reload on."""
    config = tmp_path / "weft.conf"
    config.write_text("log_level = 'info'\n")
    with Daemon(store, config=config) as daemon:
        store.publish(write_model(tmp_path / "before", random_tensors(1, 4096, seed="before")), name="before")
        assert "debug: " not in daemon.said()
        config.write_text("log_level = 'info,store=debug'\n")
        daemon.signal(signal.SIGHUP)
        daemon.hears("RELOADING=1")
        daemon.wait_ready()
        store.publish(write_model(tmp_path / "after", random_tensors(1, 4096, seed="after")), name="after")
        assert re.search(r"debug: store: import \d+: publish of after: committed as version 1", daemon.said())
        assert "publish of before" not in daemon.said()


def test_killed_at_any_moment_of_an_import(store, tmp_path):
    """The version is there whole or not at all; the next daemon goes on; the client says what it does not know."""
    tensors = random_tensors(16, MIB, seed="killed")
    rng = random.Random(5)
    for i in range(12):
        model = write_model(tmp_path / f"model{i}", tensors | random_tensors(8, MIB, seed=f"own{i}", prefix=f"own{i}"))
        with Daemon(store) as daemon:
            client = importing(store, model)
            time.sleep(rng.uniform(0, 0.15))
            daemon.kill()
            _, err = client.communicate(timeout=60)
            assert client.returncode in (0, 1)
            if client.returncode:
                assert err.count("\n") == 1, err
        if client.returncode == 0:
            latest = store.json("log", "m")["versions"]
            assert latest, "what was said to be published is there"
        store.assert_sound()
    with Daemon(store):
        store.publish(model, name="m")
        with Mount(store, tmp_path / "mnt") as mount:
            assert files_below(mount.path / "models/m/latest/") == files_below(model)
        store.weft("gc")
    store.assert_sound()


def test_a_mount_goes_on_without_its_daemon(store, small_model, tmp_path):
    with Daemon(store) as daemon:
        store.publish(small_model, name="m")
        with Mount(store, tmp_path / "mnt") as mount:
            daemon.kill()
            assert files_below(mount.version("m", 1)) == files_below(small_model)
            daemon.start()
            store.publish(small_model, name="n")
            wait_until(lambda: mount.version("n", 1).exists(), seconds_max=20)


def test_without_a_daemon_the_library_writes_again(store, small_model):
    with Daemon(store) as daemon:
        daemon.kill()
        assert (store.path / "weftd.sock").exists()
        store.publish(small_model, name="m")
    store.assert_sound()
