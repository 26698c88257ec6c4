"""What commands do while the daemon of a node is away."""
import subprocess
import time

from threenodes import SECONDS_MAX
from weftlib import PATIENCE, WEFT, environment


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
        assert status.returncode == 1 and "weftd does not run here" in status.stderr
        assert str(node.store.path) in status.stdout
