"""scripts/etcd: a registry for a site that has none."""
import contextlib
import itertools
import os
import pathlib
import socket

import pytest

from clusterlib import ETCD
from daemonlib import Daemon
from nodes import SECONDS_MAX, cluster_key
from weftlib import Store, run, wait_until

pytestmark = pytest.mark.skipif(not os.path.exists(ETCD), reason="needs etcd")
SCRIPT = pathlib.Path(__file__).parents[2] / "scripts/etcd"


def free_port():
    """One that is free on loopback, as is the next, where etcd listens for others of its kind."""
    for port in itertools.count(23790, 2):
        with contextlib.suppress(OSError), socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", port + 1))
            return port


@pytest.fixture
def script(tmp_path):
    """Calls it for a directory; what it started has ended when the test has."""
    directory = tmp_path / "etcd"

    def call(command, *words):
        return run([SCRIPT, command, directory, *words], check=False)
    call.directory = directory
    yield call
    if directory.is_dir():
        call("stop")
    assert call("status").returncode == 1


def lists(store):
    return "m" in [model["model"] for model in store.json("ls")["models"]]


def test_an_etcd_of_one_node(script, tmp_path, small_model):
    """What is published with the settings that it prints is still there when it was stopped and started again."""
    listen = f"127.0.0.1:{free_port()}"
    started = script("start", "--listen", listen)
    assert started.returncode == 0, started.stderr
    config = tmp_path / "weft.conf"
    config.write_text(started.stdout.split("in weft.conf:\n")[1])
    assert listen in config.read_text()
    assert script.directory.stat().st_mode & 0o777 == 0o700
    again = script("start", "--listen", f"127.0.0.1:{free_port()}")
    assert again.returncode == 1 and "runs already" in again.stderr
    running = script("status")
    assert running.returncode == 0 and f"etcd answers at http://{listen}, process " in running.stdout

    settings = ["--provider", "none", "--key-file", cluster_key(tmp_path / "key")]
    store = Store(tmp_path / "store")
    with Daemon(store, *settings, config=config) as daemon:
        assert daemon.status()["registry"]["endpoint"] == f"http://{listen}"
        store.publish(small_model, name="m")
    assert script("stop").returncode == 0
    assert script("status").returncode == script("stop").returncode == 1
    assert script("start", "--listen", listen).returncode == 0
    other = Store(tmp_path / "other")
    with Daemon(other, *settings, config=config):
        wait_until(lambda: lists(other), seconds_max=SECONDS_MAX)


def test_what_cannot_be_started_is_said(script):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = script("start", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert refused.returncode == 1 and str(script.directory / "log") in refused.stderr
    assert script("start", "--listen", "127.0.0.1").returncode == 1
    assert script("begin").returncode == 2
