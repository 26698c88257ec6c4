"""Nodes that wait for a pull of another node hold its bytes before the publish: each copies them from a node before it in
line, and the hub sends them once."""
import json
import signal

import pytest
from test_pull_once import assert_has, ended, hub, start  # noqa: F401  (hub: a fixture)

from clusterlib import can_make_networks
from nodes import SECONDS_MAX
from users import ONE
from weftlib import random_tensors, run, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
MIB = 1 << 20
TENSORS, TENSOR = 24, 2 * MIB
SIZE = TENSORS * TENSOR
FILE = "model.safetensors"
PIECE = 8 * MIB  # of a file that is received: weft/cluster/pulled.h
COPIED = "weft_pull_copied_bytes_total"
ADOPTED = "weft_pull_adopted_bytes_total"
RATIO_MAX = 1.05
# Sends one request to the weftd of the store in the current directory, and prints the answer after all events.
ASKS = """
import json, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect("weftd.sock")
text = sys.argv[1].encode()
connection.sendall(len(text).to_bytes(4, "little") + text)
messages = connection.makefile("rb")
said = {}
while not said.get("answer") and "error" not in said:
    said = json.loads(messages.read(int.from_bytes(messages.read(4), "little")))
print(json.dumps(said))
"""


@pytest.fixture
def source(tmp_path):
    return write_model(tmp_path / "source", random_tensors(TENSORS, TENSOR, seed="line"))


def line_up(nodes, hub):
    """The pulls of the nodes, each of which has its place before the next one starts."""
    pulls = []
    for node in nodes:
        pulls.append(start(node, hub))
        if node is nodes[0]:
            wait_until(lambda: sum(hub.sent.values()) > MIB, seconds_max=SECONDS_MAX)
        else:
            assert "pulls the same" in pulls[-1].stderr.readline()
    return pulls


def figure(node, name):
    return node.figures().get(name, 0)


def wait_copied(nodes, count):
    wait_until(lambda: all(figure(node, COPIED) >= count for node in nodes), seconds_max=3 * SECONDS_MAX)


def received_here(node, source):
    """Bytes of the large file in the area of the node's pull, each of which is the source's."""
    area, = (node.directory / "store/pulls").iterdir()
    notes = [note.read_bytes() for note in (area / "notes").iterdir()]  # before the bytes, which still come
    content, whole = (area / "files" / FILE).read_bytes(), (source / FILE).read_bytes()
    assert len(content) == len(whole)
    count = 0
    for note in notes:
        counts = memoryview(note).cast("I")
        if len(counts) != -(-len(whole) // PIECE):
            continue  # of a small file
        for piece, got in enumerate(counts):
            begin = piece * PIECE
            assert content[begin:begin + got] == whole[begin:begin + got]
            count += got
    return count


def kill(node, process):
    node.daemon.kill()
    process.kill()
    process.communicate()


def test_all_nodes_that_wait_hold_the_bytes_before_the_publish(cluster, hub, source, tmp_path):  # noqa: F811
    nodes = cluster.some(4)
    hub.add("org/bert", source)
    hub.pace = MIB
    pulls = line_up(nodes, hub)
    wait_copied(nodes[1:], SIZE // 2)
    assert not any(node.knows("org/bert@1") for node in nodes)
    for node in nodes[1:]:
        assert received_here(node, source) >= SIZE // 4
    for process in pulls:
        ended(process)
    ratio = sum(hub.sent.values()) / sum(path.stat().st_size for path in source.iterdir())
    print(f"four nodes: the hub sent {ratio:.3f} × the repository")
    assert ratio <= RATIO_MAX
    for node in nodes[1:]:
        assert figure(node, "weft_pulls_followed_total") == 1
        assert figure(node, ADOPTED) >= SIZE // 4
        assert not list((node.directory / "store/pulls").iterdir())
    assert_has(nodes[3], source, tmp_path / "out")
    assert nodes[3].fetched() + figure(nodes[3], ADOPTED) <= 1.1 * SIZE
    assert nodes[3].store.weft("fsck").returncode == 0


def test_a_line_outlives_the_death_of_a_node_in_it_and_of_the_one_that_downloads(cluster, hub, source, tmp_path):  # noqa: F811
    """The second and third copy from the first, and the fourth from the second until that one's lease ends."""
    nodes = cluster.some(4)
    hub.add("org/bert", source)
    hub.pace = MIB // 4
    pulls = line_up(nodes, hub)
    wait_copied(nodes[1:], MIB)
    kill(nodes[1], pulls[1])
    wait_copied(nodes[2:], sum(hub.sent.values()) + MIB)
    assert not nodes[3].knows("org/bert@1")
    kill(nodes[0], pulls[0])
    hub.pace = None
    said = [ended(process)[0] for process in pulls[2:]]
    assert "nothing received" in said[1]
    lost = 2 * MIB * 8  # bytes of the connections of the killed pull that no node had copied
    assert sum(hub.sent.values()) <= SIZE + lost
    for node in nodes[2:]:
        assert_has(node, source, tmp_path / f"out of {node.directory.name}")


def test_a_node_that_stops_waiting_leaves_the_line(cluster, hub, source):  # noqa: F811
    nodes = cluster.some(3)
    hub.add("org/bert", source)
    hub.pace = MIB // 4
    pulls = line_up(nodes, hub)
    pulls[1].send_signal(signal.SIGINT)
    pulls[1].communicate(timeout=SECONDS_MAX)
    wait_copied([nodes[2]], sum(hub.sent.values()))
    hub.pace = None
    said = [ended(pulls[number])[0] for number in (0, 2)]
    assert "nothing received" in said[1] and sum(hub.sent.values()) <= RATIO_MAX * SIZE + MIB


def test_a_user_does_not_take_the_files_of_another_users_pull(cluster, hub, source):  # noqa: F811
    node, other = cluster.some(2, "--control-publish", ONE)
    hub.add("org/bert", source)
    hub.pace = 8 * MIB
    with start(node, hub) as pull:
        wait_until(lambda: sum(hub.sent.values()) > SIZE // 2, seconds_max=SECONDS_MAX)
        pull.kill()
    cluster.publish(other, source, "org/bert")
    area, = (node.directory / "store/pulls").iterdir()
    node.store.path.chmod(0o755)

    def adopted_as(user):
        request = {"id": 1, "request": "adopt", "body": {"key": area.name, "spec": "org/bert@1"}}
        said = run(["/usr/bin/python3", "-c", ASKS, json.dumps(request)], user=user, group=user, extra_groups=[],
                   cwd=node.store.path)
        return json.loads(said.stdout)["body"]["bytes"]
    assert adopted_as(ONE) == 0
    assert (area / "files" / FILE).exists()
    assert adopted_as(0) > 0
    assert not (area / "files" / FILE).exists()
