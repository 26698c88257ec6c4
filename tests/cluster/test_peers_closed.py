"""Who says what no daemon of the cluster says is closed, within a second, and nobody else feels it."""
import sys

import pytest

from clusterlib import can_make_networks
from daemonlib import metrics
from nodes import CLOSED_SECONDS_MAX, resident
from strangers import HOSTILE_PEER, hostile, model_on, node_id, still_serves
from weftlib import PATIENCE, run, wait_until

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")


def exchange_now(node):
    """As exchange(), asked by the socket alone: quick enough to see how long something lasts."""
    return node.daemon.ask("status")["exchange"]


@pytest.mark.parametrize("what", ["garbled", "truncated", "again", "nonsense", "backwards"])
def test_an_open_session_ends_at_once_with_what_no_daemon_says(cluster, three, what):
    source = model_on(cluster, three[0], seed=what)
    victim, memory = three[0].exchange(), resident(three[0])
    closed = hostile(three[2], "close", what, cluster.key, victim["provider"], three[2].host.address, node_id(three[0]),
                     victim["address"])
    assert closed["answers"] == 0
    assert closed["seconds"] <= PATIENCE
    assert three[0].exchange()["refused"] > victim["refused"]
    still_serves(cluster, three[0], three[1], source, memory)


def test_who_greets_with_another_key_is_forgotten_within_a_second(cluster, three):
    source = model_on(cluster, three[0], seed="greeting")
    victim, memory = three[0].exchange(), resident(three[0])
    assert victim["half_open"] == 0
    run([*three[2].host.inside, HOSTILE_PEER, "greet", victim["provider"], three[2].host.address, victim["address"]])
    wait_until(lambda: exchange_now(three[0])["refusals"]["abandoned"] > victim["refusals"]["abandoned"],
               seconds_max=CLOSED_SECONDS_MAX, pause=0.01)
    assert exchange_now(three[0])["half_open"] == 0
    counts = metrics(three[0].daemon.ask("metrics")["text"])
    for reason in ("wrong-key", "abandoned"):
        assert counts[f'weft_peer_refused_total{{reason="{reason}"}}'] > victim["refusals"][reason]
    refusal = "peer talker does not hold this node's key of the cluster: it is refused"
    wait_until(lambda: refusal in three[0].daemon.said(), seconds_max=CLOSED_SECONDS_MAX)
    assert f"its hello came from {three[2].host.address}:" in three[0].daemon.said()
    still_serves(cluster, three[0], three[1], source, memory)


# How long a connection lasts, at most, that said what begins none.
TCP_CLOSED = """
import os, socket, struct, sys, time
host, port = sys.argv[1].rsplit(":", 1)
def header(version):
    return struct.pack(">BBHIQQQ", version, 9, 16, 1, 2, 3, 4)
longest = 0
for data in (os.urandom(4096), bytes(10), bytes(5000), header(255) + os.urandom(256), header(3) + os.urandom(256)):
    with socket.create_connection((host, int(port)), 5) as connection:
        connection.settimeout(20)
        begin = time.monotonic()
        try:
            connection.sendall(data)
            assert connection.recv(1 << 16) == b"", "an answer"
        except ConnectionError:
            pass
        longest = max(longest, time.monotonic() - begin)
print(longest)
"""


def test_a_connection_that_begins_with_nonsense_is_closed_within_a_second(three):
    address = three[0].exchange()["address"]
    assert float(run([*three[2].host.inside, sys.executable, "-c", TCP_CLOSED, address]).stdout) <= PATIENCE
    assert three[0].daemon.alive()
