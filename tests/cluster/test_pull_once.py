"""A cluster pulls a repository once, whichever nodes ask for it."""
import json
import signal
import subprocess

import pytest

from clusterlib import can_make_networks
from hub_double import Hub
from nodes import SECONDS_MAX
from weftlib import WEFT, environment, files_below, random_bytes, wait_until

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
MIB = 1 << 20
TOKEN = "hf_TheSecretOfThisTest"


@pytest.fixture
def hub():
    with Hub() as one:
        yield one


@pytest.fixture
def repository(tmp_path):
    area = tmp_path / "repository"
    area.mkdir()
    (area / "config.json").write_text("{}")
    for number in range(4):
        (area / f"{number}.bin").write_bytes(random_bytes(4 * MIB + number, seed=f"once {number}"))
    return area


def start(node, hub, *words, source="hf:org/bert", **extra):
    return subprocess.Popen([WEFT, "--store", node.store.path, "pull", source, *words], text=True,
                            env=environment(HF_ENDPOINT=hub.endpoint, HF_HOME="/nonexistent/hf", **extra),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process, seconds_max=SECONDS_MAX * 3):
    out, err = process.communicate(timeout=seconds_max)
    assert process.returncode == 0, err
    return out, err


def assert_has(node, repository, out, name="org/bert"):
    node.store.weft("prefetch", name)
    node.store.weft("export", name, out)
    assert files_below(out) == files_below(repository)


def test_nodes_that_pull_at_the_same_time_download_once(three, hub, repository, tmp_path):
    hub.add("org/bert", repository)
    hub.pace = 8 * MIB
    said = [ended(process) for process in [start(node, hub) for node in three]]
    assert sum(hub.sent.values()) == sum(len(data) for data in files_below(repository).values())
    assert sum("nothing received" in out for out, _ in said) == 2
    for number, node in enumerate(three):
        assert [one["version"] for one in node.store.json("log", "org/bert")["versions"]] == [1]
        assert_has(node, repository, tmp_path / f"out{number}")


def test_the_token_stays_in_the_pull(cluster, hub, repository, tmp_path):
    """Neither the registry, with all that it has ever held, nor a store or a log has it."""
    hub.add("org/gated", repository, gated=True, readers={TOKEN})
    hub.pace = 8 * MIB
    nodes = cluster.some(2, "--log-level", "debug")
    pulls = [start(node, hub, source="hf:org/gated", HF_TOKEN=TOKEN) for node in nodes]
    wait_until(lambda: hub.sent["storage"] > MIB, seconds_max=SECONDS_MAX)
    during = cluster.etcd.control("get", "", "--prefix", text=False).stdout
    said = [ended(process) for process in pulls]
    after = cluster.etcd.control("get", "", "--prefix", text=False).stdout
    assert sum("nothing received" in out for out, _ in said) == 1
    for out, err in said:
        assert "every user who can read the store" in err and TOKEN not in out + err
    assert b"org/gated" in after and TOKEN.encode() not in during + after
    for ends in (*(node.daemon for node in nodes), cluster.etcd):
        ends.kill()
    searched = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {nodes[0].daemon.log, nodes[1].daemon.log} <= set(searched)
    for place in (nodes[0].store.path, nodes[1].store.path, cluster.etcd.directory / "data"):
        assert any(path.is_relative_to(place) for path in searched), place
    assert [path for path in searched if TOKEN.encode() in path.read_bytes()] == []
    assert TOKEN in {one.token for one in hub.asked("hub")}
    assert hub.asked("storage") and {one.headers.get("authorization") for one in hub.asked("storage")} == {None}


def test_another_node_goes_on_when_a_pull_is_killed(three, hub, repository, tmp_path):
    hub.add("org/bert", repository)
    hub.pace = 2 * MIB
    with start(three[0], hub) as first:
        wait_until(lambda: sum(hub.sent.values()) > MIB, seconds_max=SECONDS_MAX)
        with start(three[1], hub) as second:
            assert "pulls the same" in second.stderr.readline()
            before = len(hub.asked("storage"))
            first.kill()
            hub.pace = None
            ended(second)
            assert len(hub.asked("storage")) > before
    assert_has(three[1], repository, tmp_path / "out")


def test_another_node_goes_on_when_the_daemon_of_a_pull_is_killed(three, hub, repository, tmp_path):
    """Its claim ends with its lease."""
    hub.add("org/bert", repository)
    hub.pace = MIB // 4
    with start(three[0], hub) as first:
        wait_until(lambda: sum(hub.sent.values()) > MIB // 2, seconds_max=SECONDS_MAX)
        with start(three[1], hub) as second:
            assert "pulls the same" in second.stderr.readline()
            three[0].daemon.kill()
            first.kill()
            hub.pace = None
            ended(second)
    assert_has(three[1], repository, tmp_path / "out")


def test_a_pull_that_is_stopped_is_named_and_the_wait_can_end(three, hub, repository):
    hub.add("org/bert", repository)
    hub.pace = MIB // 4
    with start(three[0], hub) as first:
        try:
            wait_until(lambda: sum(hub.sent.values()) > MIB // 2, seconds_max=SECONDS_MAX)
            first.send_signal(signal.SIGSTOP)
            limited = start(three[1], hub, "--wait", "1")
            _, err = limited.communicate(timeout=SECONDS_MAX)
            note, error = err.splitlines()
            assert limited.returncode == 1 and "--wait" in error and " since 20" in note and " since 20" in error
            with start(three[1], hub) as patient:
                assert "pulls the same" in patient.stderr.readline()
                assert "s so far" in patient.stderr.readline()
                patient.send_signal(signal.SIGINT)
                patient.communicate(timeout=SECONDS_MAX)
                assert patient.returncode != 0
            assert first.poll() is None
        finally:
            first.kill()


# Two repositories of the same files.


@pytest.fixture
def first_of_two(three, hub, repository):
    """The node that has pulled org/bert. The files of other/copy are the same."""
    (repository / "small.bin").write_bytes(b"small")  # the import of other/copy reads it
    for name in ("org/bert", "other/copy"):
        hub.add(name, repository)
    ended(start(three[0], hub))
    wait_until(lambda: all(node.knows("org/bert@1") for node in three), seconds_max=SECONDS_MAX)
    return three[0]


def copied(node, hub, *words):
    """What a pull of other/copy reports."""
    return json.loads(ended(start(node, hub, *words, "--json", source="hf:other/copy"))[0])


def test_files_that_another_node_has_do_not_come_from_the_hub(three, hub, repository, first_of_two, tmp_path):
    known = [len(data) for path, data in files_below(repository).items() if path.endswith(".bin")]
    asked = len(hub.asked("storage"))
    assert sum(three[1].asked().values()) == 0  # its manifest is on the first node only
    for words in (["--check"], []):
        report = copied(three[1], hub, *words)
        assert (report["known_files"], report["known_bytes"]) == (len(known), sum(known))
        assert report["received_bytes"] == report["bytes"] - sum(known)
    assert len(hub.asked("storage")) == asked
    assert three[1].fetched() < 4 * MIB  # no large file
    wait_until(lambda: all(node.knows("other/copy@1") for node in three), seconds_max=SECONDS_MAX)
    first_of_two.store.weft("rm", "org/bert@1", "--force")
    first_of_two.store.weft("gc")
    for node in three:
        assert_has(node, repository, tmp_path / f"out of {node.directory.name}", "other/copy")


@pytest.mark.parametrize("knows_manifest", [False, True], ids=["bare", "manifest"])
def test_files_that_no_node_gives_come_from_the_hub(three, hub, repository, first_of_two, tmp_path, knows_manifest):
    if knows_manifest:
        three[1].store.json("info", "org/bert")
    first_of_two.daemon.kill()
    for words in (["--check"], []):
        report = copied(three[1], hub, *words)
        assert report["known_files"] == 0 and report["received_bytes"] == report["bytes"]
    assert_has(three[1], repository, tmp_path / "out", "other/copy")
