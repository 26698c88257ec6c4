"""A pull that is killed at random moments, and what the hub sends again.

A killed pull leaves its bytes in its own store. If the same node goes on, the hub sends each byte once, but for those that no
note names yet: at most 1 MiB of each connection and kill. They stay below 5 % of a repository that is large for the number of
kills, as those of these tests are. If another node takes over, it has copied what the killed one had, a moment behind, and
copies the rest if the weftd of that node lives.
"""
import json
import os
import random
import signal
import socket

import pytest
from test_pull_once import assert_has, ended, start

from clusterlib import can_make_networks
from hub_double import Hub
from nodes import SECONDS_MAX
from weftlib import random_bytes, rounds, wait_until

pytestmark = [pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd"), pytest.mark.long]
MIB = 1 << 20
KILLS = rounds(2, 10)
CONNECTIONS = 8  # of a pull
PACE = 6 * MIB  # bytes a second of each connection, which a pull takes at once: little is in flight when it is killed
LOST_MAX = CONNECTIONS * 3 * MIB // 2  # bytes of a kill: those without a note, and those in flight
RATIO_MAX = 1.05
FILE = 64 * MIB
# If another node takes over, the bytes are lost too that it had not copied yet: there are fewer at a slower pace.
WAYS = ("pull", "weftd", "both")  # what is killed
KILLS_ELSEWHERE = rounds(len(WAYS), 10)
FILES_EACH = 4  # of a kill
PACE_ELSEWHERE = MIB


@pytest.fixture
def hub():
    with Hub() as one:
        one.pace = PACE
        for server in one.servers.values():  # what it has sent is soon with the pull
            server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 128 << 10)
        yield one


def repository(directory, files):
    directory.mkdir()
    (directory / "config.json").write_text("{}")
    for number in range(files):
        (directory / f"{number}.bin").write_bytes(random_bytes(FILE, seed=f"killed {number}"))
    return directory


def sent(hub):
    return sum(hub.sent.values())


def wait_sent(hub, count):
    wait_until(lambda: sent(hub) >= count, seconds_max=20 * SECONDS_MAX, pause=0.005)


def kill(process):
    assert process.poll() is None, process.communicate()
    process.kill()
    process.communicate()


def sockets(process):
    """The pull that receives from the hub has some for each connection, and one that waits has few."""
    directory = f"/proc/{process.pid}/fd"
    return sum(os.readlink(f"{directory}/{number}").startswith("socket:") for number in os.listdir(directory))


def test_the_node_of_a_killed_pull_goes_on(three, hub, tmp_path):
    source, size = repository(tmp_path / "repository", 3 * KILLS), 3 * KILLS * FILE
    hub.add("org/bert", source)
    rng = random.Random(59)
    for moment in sorted(rng.uniform(0.02, 0.95) for _ in range(KILLS)):
        process = start(three[0], hub)
        wait_sent(hub, moment * size)
        kill(process)
    hub.pace = None
    said = [ended(start(node, hub))[0] for node in three]
    ratio = sent(hub) / size
    print(f"{KILLS} kills, one node goes on: the hub sent {ratio:.3f} × the repository ({size // MIB} MiB)")
    assert "nothing received" in said[1] and "nothing received" in said[2]
    assert_has(three[1], source, tmp_path / "out")
    assert ratio <= RATIO_MAX


def strike(way, node, process):
    """Kills what the way says. The daemon is started again."""
    if way != "weftd":
        kill(process)
    if way != "pull":
        node.daemon.kill()
        node.daemon.start()


def test_other_nodes_take_over_a_killed_pull(three, hub, tmp_path):
    """The pull that downloads is killed each time, or its weftd, or both, while the others wait. It then waits too. A pull
    whose weftd is killed stops by itself: another node may go on."""
    source, size = repository(tmp_path / "repository", FILES_EACH * KILLS_ELSEWHERE), FILES_EACH * KILLS_ELSEWHERE * FILE
    hub.pace = PACE_ELSEWHERE
    hub.add("org/bert", source)
    rng = random.Random(60)
    pulls, moment = {node: start(node, hub) for node in three}, 0
    for number in range(KILLS_ELSEWHERE):
        moment += rng.uniform(0.2, 1) * size / KILLS_ELSEWHERE
        wait_sent(hub, moment)
        node = max(pulls, key=lambda one: sockets(pulls[one]))
        way = WAYS[number % len(WAYS)]
        strike(way, node, pulls[node])
        if way != "weftd":
            pulls[node] = start(node, hub)
    hub.pace = None
    said = [ended(process, 20 * SECONDS_MAX)[0] for process in pulls.values()]
    ratio = sent(hub) / size
    print(f"{KILLS_ELSEWHERE} kills, another node takes over: the hub sent {ratio:.3f} × the repository ({size // MIB} MiB)")
    assert sum("nothing received" in out for out in said) == len(three) - 1
    assert_has(three[1], source, tmp_path / "out")
    assert ratio <= RATIO_MAX


def test_a_follower_that_was_interrupted_goes_on_with_what_it_copied(three, hub, tmp_path):
    source, size = repository(tmp_path / "repository", 2), 2 * FILE
    hub.pace = PACE_ELSEWHERE
    hub.add("org/bert", source)
    first, second = start(three[0], hub), start(three[1], hub)
    wait_sent(hub, size / 2)
    second.send_signal(signal.SIGINT)
    second.communicate()
    assert second.returncode != 0 and not three[1].knows("org/bert")
    three[0].daemon.kill()
    kill(first)
    hub.pace = None
    report = json.loads(ended(start(three[1], hub, "--json"))[0])
    assert report["resumed_bytes"] >= size / 2 - 2 * LOST_MAX
    assert sent(hub) <= size + 2 * LOST_MAX
