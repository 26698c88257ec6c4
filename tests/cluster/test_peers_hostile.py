"""Peers that speak the protocol and mean no good, and strangers on the wire, against real daemons: what is asked for
comes right or ends with a clear errno, nothing is given to who holds no key, memory stays bounded, others are served."""
import contextlib
import errno
import subprocess
import sys
import time

import pytest

from clusterlib import can_make_networks
from nodes import MODEL_FILE as FILE
from nodes import SECONDS_MAX, comes_right_on, descriptors, resident
from strangers import (CROWD_MEMORY_MAX, DESCRIPTORS_SPARE, MEMORY_MAX, TENSOR_BYTES, hostile, impostor,
                       model_on, node_id, staying, still_serves)
from weftlib import run, wait_until

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")


def bytes_or_errno(node, source):
    """What one reader gets, in time: True for the file as it was published, False for EIO. Anything else fails."""
    begin = time.monotonic()
    with node.mounted() as mount:
        try:
            got = (mount.version("model", 1) / FILE).read_bytes()
        except OSError as failure:
            assert failure.errno == errno.EIO
            got = None
        assert time.monotonic() - begin < SECONDS_MAX
    assert got is None or got == (source / FILE).read_bytes()
    return got is not None


def test_an_impostor_without_fault_is_as_good_as_the_daemon(cluster, three):
    source = model_on(cluster, three[0], seed="none")
    with impostor(cluster, three[0], "none"):
        assert bytes_or_errno(three[1], source)
    three[1].store.assert_sound()


@pytest.mark.parametrize("fault", ["wrong", "short", "long", "much", "gone", "silent", "digests", "manifest"])
def test_a_peer_with_a_fault_costs_its_only_reader_an_errno(cluster, three, fault):
    source = model_on(cluster, three[0], seed=fault)
    memory = resident(three[1])
    with impostor(cluster, three[0], fault):
        assert not bytes_or_errno(three[1], source)
        assert three[1].daemon.alive()
        assert resident(three[1]) < memory + 2 * MEMORY_MAX
    three[1].store.assert_sound()
    comes_right_on(three[1], source)
    three[0].store.assert_sound()


@pytest.mark.parametrize("fault", ["wrong", "short", "long", "gone", "silent", "holders"])
def test_where_another_holder_tells_the_truth_the_bytes_come(cluster, three, fault):
    source = model_on(cluster, three[0], seed=fault)
    three[2].store.weft("prefetch", "model")
    with impostor(cluster, three[0], fault):
        comes_right_on(three[1], source)
    three[1].store.assert_sound()


def test_a_session_that_is_sent_again_gets_nothing_and_keeps_nobody_out(cluster, three):
    source = model_on(cluster, three[0], seed="replay")
    victim = three[0].exchange()
    memory = resident(three[0])
    sent = hostile(three[2], "replay", 20, three[0].store.path, cluster.key, victim["provider"], three[2].host.address,
                   node_id(three[0]), victim["address"])
    assert sent["messages"] == 21 * sent["frames"]
    now = three[0].exchange()
    asked = sent["answers"] + sent["answers_after"]
    assert now["refused"] - victim["refused"] >= sent["messages"] / 2  # a hello alone is no more than its second
    assert now["handshakes"] - victim["handshakes"] >= 2  # the session that was sent again was made anew
    assert now["answers"] - victim["answers"] <= asked + 20  # and those of others, who tell each other what they have
    still_serves(cluster, three[0], three[1], source, memory)


def test_what_strangers_send_is_refused_and_keeps_nobody_out(cluster, three):
    source = model_on(cluster, three[0], seed="noise")
    victim = three[0].exchange()
    memory = resident(three[0])
    sent = hostile(three[2], "noise", 500, victim["provider"], three[2].host.address, victim["address"])
    assert sent["messages"] == 5 * 500
    wait_until(lambda: three[0].exchange()["refused"] - victim["refused"] >= sent["messages"] / 2,
               seconds_max=SECONDS_MAX, pause=0.05)
    assert three[0].exchange()["half_open"] <= 64
    still_serves(cluster, three[0], three[1], source, memory)


@pytest.mark.parametrize("holds_key", [False, True], ids=["without", "with"])
def test_hellos_from_where_nobody_is_cost_few_connections(cluster, three, holds_key):
    """With the key: as who has overheard many daemons can say their hellos again."""
    source = model_on(cluster, three[0], seed=f"crowd{holds_key}")
    three[1].store.weft("prefetch", "model")  # it is known from then on
    three[1].store.weft("evict", "--all")
    victim, memory, before = three[0].exchange(), resident(three[0]), descriptors(three[0])
    sent = hostile(three[2], "crowd", 2000, cluster.key if holds_key else "", victim["provider"], three[2].host.address,
                   victim["address"])
    assert sent["messages"] == 2000
    assert descriptors(three[0]) <= before + (256 if holds_key else 8) + DESCRIPTORS_SPARE
    assert resident(three[0]) < memory + CROWD_MEMORY_MAX
    assert three[0].exchange()["refused"] - victim["refused"] >= 1000
    still_serves(cluster, three[0], three[1], source, memory)


# Each of these connects, sends a part of what nobody would send, and most of them stay.
TCP_NOISE = """
import os, random, socket, struct, sys, time
host, port = sys.argv[1].rsplit(":", 1)
rng, kept, sent = random.Random(7), [], 0
def header():  # as net begins a connection: version, type, length, numbers
    return struct.pack(">BBHIQQQ", rng.choice((0, 1, 2, 3, 4, 255)), rng.randrange(10), rng.choice((0, 1, 16, 256, 65535)),
                       rng.getrandbits(32), rng.getrandbits(64), rng.getrandbits(64), rng.getrandbits(64))
def message():  # as net begins a message: version, what, flags, more, size
    return struct.pack("<BBHBBBBQ", rng.randrange(6), rng.randrange(12), rng.getrandbits(16), rng.randrange(8), 0,
                       rng.choice((16, 24, 32, 255)), 0, rng.choice((0, 16, 4096, 1 << 20, 1 << 62, rng.getrandbits(64))))
for i in range(int(sys.argv[2])):
    with_header = header() + os.urandom(256)
    data = [b"", os.urandom(rng.randrange(1, 5000)), header()[:rng.randrange(32)], with_header,
            with_header + message() + os.urandom(rng.randrange(9000)), message() * 40][i % 6]
    connection = socket.create_connection((host, int(port)), 5)
    connection.settimeout(5)
    try:
        connection.sendall(data)
        sent += len(data)
    except OSError:
        pass
    if i % 3:
        kept.append(connection)
    else:
        connection.close()
    kept = kept[-100:]
print(sent)
time.sleep(0.5)
"""


def test_what_is_no_message_at_all_ends_its_connection_alone(cluster, three):
    source = model_on(cluster, three[0], seed="tcp")
    memory = resident(three[0])
    address = three[0].exchange()["address"]
    run([*three[2].host.inside, sys.executable, "-c", TCP_NOISE, address, 600])
    assert three[0].daemon.alive()
    still_serves(cluster, three[0], three[1], source, memory)


# As many connections as are asked for that stay: every other one says nothing, the others half of what net begins one
# with. Ends with its input.
TCP_SILENT = """
import resource, socket, struct, sys
host, port = sys.argv[1].rsplit(":", 1)
resource.setrlimit(resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE)[1:] * 2)
kept = [socket.create_connection((host, int(port)), 5) for _ in range(int(sys.argv[2]))]
for connection in kept[::2]:
    connection.sendall(struct.pack(">BBHIQ", 3, 1, 16, 1, 2))
print("ready", flush=True)
sys.stdin.read()
"""


def test_connections_that_stay_and_say_nothing_cost_little(cluster, three):
    source = model_on(cluster, three[0], seed="silent")
    memory, before = resident(three[0]), descriptors(three[0])
    with staying(three[2], sys.executable, "-c", TCP_SILENT, three[0].exchange()["address"], 2000):
        wait_until(lambda: descriptors(three[0]) >= before + 500, seconds_max=SECONDS_MAX, pause=0.05)  # that it took
        still_serves(cluster, three[0], three[1], source, memory)
    wait_until(lambda: descriptors(three[0]) < before + DESCRIPTORS_SPARE, seconds_max=SECONDS_MAX, pause=0.05)


# Keeps what is sent from here to a host: a file for each connection, in the order of its bytes. Ends with its input.
OVERHEAR = """
import pathlib, select, socket, struct, sys
host = socket.inet_aton(sys.argv[1])
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # also what goes out
wire.setsockopt(socket.SOL_SOCKET, 33, 128 << 20)  # SO_RCVBUFFORCE
wire.bind(("eth0", 3))
print("ready", flush=True)
begin, parts = {}, {}
while sys.stdin not in (ready := select.select([wire, sys.stdin], [], [])[0]) or wire in ready:
    frame = wire.recv(1 << 17)
    packet = frame[14:]
    tcp = packet[(packet[0] & 15) * 4:struct.unpack(">H", packet[2:4])[0]]
    if frame[12:14] != b"\\x08\\0" or packet[9] != 6 or packet[16:20] != host:
        continue
    ports, at = tcp[:4].hex(), struct.unpack(">I", tcp[4:8])[0]
    if tcp[13] & 2:  # SYN
        begin[ports], parts[ports] = at + 1, {}
    elif ports in begin and (data := tcp[(tcp[12] >> 4) * 4:]):
        parts[ports][(at - begin[ports]) % (1 << 32)] = data
for ports, known in parts.items():
    out = b""
    for at, data in sorted(known.items()):
        assert at <= len(out), "something was not heard"
        out += data[len(out) - at:]
    pathlib.Path(sys.argv[2], ports).write_bytes(out)
"""
# Sends files to an address some times over, each by a connection of its own, and hears what comes back. "changed": with
# a few bytes of messages changed, and some cut short. The headers of libfabric stay: changed ones can end a daemon inside
# libfabric 1.17 (weftd(8)).
SAY_AGAIN = """
import pathlib, random, socket, sys, time
host, port = sys.argv[1].rsplit(":", 1)
rng, kept, heard = random.Random(7), [], 0
LIBFABRIC = 64  # bytes of its headers before a frame, at most
def changed(said):
    data, begins = bytearray(said), [at for at in range(len(said)) if said.startswith(b"WFT1", at)]
    ends = [begin - LIBFABRIC for begin in begins[1:]] + [len(said)]
    ours = [range(begin, max(begin + 4, end)) for begin, end in zip(begins, ends)]
    for _ in range(rng.choice((1, 2, 8)) if ours else 0):
        frame = rng.choice(ours)
        data[rng.choice(frame[:40] if rng.random() < 0.7 else frame)] = rng.choice((*range(9), 16, 255, rng.randrange(256)))
    return data[:rng.randrange(len(data))] if rng.random() < 0.3 else data
def hear(connection):
    connection.setblocking(False)
    try:
        return len(connection.recv(1 << 24))
    except OSError:
        return 0
files = [path.read_bytes() for path in pathlib.Path(sys.argv[2]).iterdir()]
for said in [said for said in files if said] * int(sys.argv[3]):
    kept.append(socket.create_connection((host, int(port)), 5))
    kept[-1].settimeout(5)
    try:
        kept[-1].sendall(changed(said) if sys.argv[4:] == ["changed"] else said)
    except OSError:
        pass
    if len(kept) > 50:
        heard += hear(kept.pop(0))
time.sleep(2)
print(heard + sum(hear(connection) for connection in kept))
"""


# Says what was said, but for the end of one message in its middle, by many connections that stay. Ends with its input.
SAY_HALF = """
import pathlib, socket, sys
host, port = sys.argv[1].rsplit(":", 1)
files = [path.read_bytes() for path in pathlib.Path(sys.argv[2]).iterdir()]
halves = [said[:at + 20] for said in files for at in range(len(said)) if said.startswith(b"WFT1", at)]
assert halves
kept = []
for number in range(int(sys.argv[3])):
    kept.append(socket.create_connection((host, int(port)), 5))
    kept[-1].sendall(halves[number % len(halves)])
print("ready", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def overheard(node, other, directory):
    """What a node's daemon sends to another node's is in files of this directory afterwards."""
    directory.mkdir()
    listener = subprocess.Popen([*node.host.inside, sys.executable, "-c", OVERHEAR, other.host.address,
                                 directory],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert listener.stdout.readline() == b"ready\n"
        yield
        listener.stdin.close()
        assert listener.wait(SECONDS_MAX) == 0
    finally:
        listener.kill()
        listener.wait()
        listener.stdout.close()


@pytest.mark.parametrize("words", [["5"], ["300", "changed"]], ids=["again", "changed"])
def test_what_two_daemons_said_is_worth_nothing_to_who_says_it(cluster, three, tmp_path, words):
    address = three[0].exchange()["address"]
    with overheard(three[1], three[0], tmp_path / "heard"):
        source = model_on(cluster, three[0], seed="heard")
        three[1].store.weft("prefetch", "model")
    said = [path.read_bytes() for path in (tmp_path / "heard").iterdir()]
    assert any(one.count(b"WFT1") >= 3 for one in said)  # a handshake, and requests
    wait_until(lambda: three[0].exchange()["served_bytes"] >= TENSOR_BYTES, seconds_max=SECONDS_MAX, pause=0.05)
    before, memory = three[0].exchange(), resident(three[0])
    heard = int(run([*three[2].host.inside, sys.executable, "-c", SAY_AGAIN, address, tmp_path / "heard", *words]).stdout)
    assert heard < 64 << 10  # no bytes of the model
    wait_until(lambda: three[0].exchange()["refused"] > before["refused"], seconds_max=SECONDS_MAX, pause=0.05)
    assert three[0].exchange()["served_bytes"] == before["served_bytes"]
    still_serves(cluster, three[0], three[2], source, memory)
    three[1].store.weft("evict", "--all")
    assert bytes_or_errno(three[1], source)


def test_connections_that_end_in_the_middle_of_a_message_and_stay_cost_little(cluster, three, tmp_path):
    address = three[0].exchange()["address"]
    with overheard(three[1], three[0], tmp_path / "heard"):
        source = model_on(cluster, three[0], seed="half")
        three[1].store.weft("prefetch", "model")
    wait_until(lambda: three[0].exchange()["served_bytes"] >= TENSOR_BYTES, seconds_max=SECONDS_MAX, pause=0.05)
    served, memory, before = three[0].exchange()["served_bytes"], resident(three[0]), descriptors(three[0])
    with staying(three[2], sys.executable, "-c", SAY_HALF, address, tmp_path / "heard", 300):
        assert three[0].exchange()["served_bytes"] == served
        still_serves(cluster, three[0], three[2], source, memory)
    wait_until(lambda: descriptors(three[0]) < before + DESCRIPTORS_SPARE, seconds_max=SECONDS_MAX, pause=0.05)
