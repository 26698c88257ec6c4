"""What commands do while the daemon of a node is away."""
import json
import subprocess
import time

from threenodes import SECONDS_MAX, Node
from weftlib import PATIENCE, WEFT, environment, wait_until


def test_a_publish_waits_for_a_daemon_that_restarts(nodes, small_model):
    node = nodes[0]
    assert node.daemon.stop() == 0
    waiting = subprocess.Popen([WEFT, "--store", node.store.path, "import", small_model, "--name", "m"],
                               env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    assert waiting.poll() is None
    node.daemon.start()
    out, err = waiting.communicate(timeout=SECONDS_MAX)
    assert waiting.returncode == 0 and "m@1" in out, err
    nodes[1].sees("m", 1)


def test_without_a_daemon_a_publish_says_so_and_status_fails(nodes, small_model):
    node = nodes[0]
    assert node.store.weft("status", check=False).returncode == 0
    node.daemon.kill()
    begin = time.monotonic()
    failed = node.store.weft("import", small_model, "--name", "m", check=False)
    assert 9 < time.monotonic() - begin < 15 * PATIENCE
    assert failed.returncode == 1 and "weftd does not run here" in failed.stderr, failed.stderr
    for words in (["status"], ["status", "--json"]):
        status = node.store.weft(*words, check=False)
        assert status.returncode == 1 and "weftd does not run here" in status.stdout
        assert str(node.store.path) in status.stdout


def complete(node):
    """Whether the node's list of models says that nothing is missing; with the remark for people."""
    return says_complete(node, "ls")


def says_complete(node, *words):
    done = node.store.weft(*words, "--json")
    answer = json.loads(done.stdout)["complete"]
    assert answer == (done.stderr == ""), done.stderr
    return answer


def test_a_node_says_that_it_is_catching_up(network, etcd, tmp_path, small_model):
    one, late = (Node(network.host(), etcd, tmp_path, name) for name in ("n0", "n1"))
    with one.daemon, late.daemon:
        wait_until(lambda: complete(one) and complete(late), seconds_max=SECONDS_MAX)
        late.daemon.stop()
        one.store.publish(small_model, name="m")
        etcd.stop_answering()
        late.daemon.start()
        assert not complete(late)
        assert "catching up" in late.store.weft("ls").stderr
        assert "catching up" in late.store.weft("log", "m", check=False).stderr
        etcd.answer_again()
        wait_until(lambda: complete(late), seconds_max=SECONDS_MAX)
        assert [model["model"] for model in late.store.json("ls")["models"]] == ["m"]
        assert says_complete(late, "log", "m")
        late.daemon.stop()
        assert not complete(late)
        assert not says_complete(late, "log", "m")
