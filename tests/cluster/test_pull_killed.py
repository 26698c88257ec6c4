"""A pull that is killed at random moments, and what the hub sends again.

A killed pull leaves its bytes in its own store. If the same node goes on, the hub sends each byte once, but for those that no
note names yet: at most 1 MiB of each connection and kill. They stay below 5 % of a repository that is large for the number of
kills, as the one of the first test is. If another node takes over, it starts from its own store, and the hub sends it what
the killed pull has: the second test prints how much that is, and asserts that each node receives each byte once.
"""
import pathlib
import random
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


def written(process):
    """Bytes, so far."""
    lines = pathlib.Path(f"/proc/{process.pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


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


def test_other_nodes_take_over_a_killed_pull(three, hub, tmp_path):
    """The node that downloads is killed each time, while the others wait. It then waits too."""
    source, size = repository(tmp_path / "repository", KILLS), KILLS * FILE
    hub.add("org/bert", source)
    rng = random.Random(60)
    pulls, moment = {node: start(node, hub) for node in three}, 0
    for _ in range(KILLS):
        moment += rng.uniform(0.2, 1) * size / KILLS
        wait_sent(hub, moment)
        node = max(pulls, key=lambda one: written(pulls[one]))
        kill(pulls[node])
        pulls[node] = start(node, hub)
    hub.pace = None
    said = [ended(process)[0] for process in pulls.values()]
    ratio = sent(hub) / size
    print(f"{KILLS} kills, another node takes over: the hub sent {ratio:.3f} × the repository ({size // MIB} MiB)")
    assert sum("nothing received" in out for out in said) == len(three) - 1
    assert_has(three[1], source, tmp_path / "out")
    assert sent(hub) <= len(three) * size + KILLS * LOST_MAX
