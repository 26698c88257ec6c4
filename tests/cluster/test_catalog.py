"""One catalog for three nodes: real daemons, real etcd, real mounts."""
import json
import random
import subprocess
import threading
import time

from daemonlib import metrics
from threenodes import SECONDS_MAX
from weftlib import PATIENCE, WEFT, environment, random_tensors, wait_until, write_model


def test_a_publish_appears_on_every_node(nodes, small_model):
    """And tags, their moves, and removals."""
    first, *others = nodes
    for number, node in enumerate(nodes, 1):
        (small_model / "config.json").write_text(json.dumps({"number": number}))
        node.store.publish(small_model, name="org/small", tag="best")
        for other in nodes:
            other.sees("org/small", number)
            wait_until(lambda: (other.models() / "org/small/best").readlink().name == str(number),
                       seconds_max=SECONDS_MAX)
    first.store.weft("rm", "org/small@2")
    for other in others:
        wait_until(lambda: not (other.models() / "org/small/2").exists(), seconds_max=SECONDS_MAX)
        assert other.versions("org/small") == [1, 3]
    first.store.weft("tag", "--delete", "org/small", "best")
    for other in others:
        wait_until(lambda: not (other.models() / "org/small/best").is_symlink(), seconds_max=SECONDS_MAX)


def test_peers(nodes):
    for node in nodes:
        wait_until(lambda: len(node.store.json("peers")["peers"]) == 3, seconds_max=SECONDS_MAX)
        assert sorted(peer["name"] for peer in node.store.json("peers")["peers"]) == ["n0", "n1", "n2"]
        assert {peer["name"] for peer in json.loads((node.mount / ".weft/peers").read_text())["peers"]} == {"n0", "n1", "n2"}
        assert metrics((node.mount / ".weft/metrics").read_text())["weft_peers"] == 3
        assert json.loads((node.mount / ".weft/status").read_text())["daemon"]["registry"]["kind"] == "etcd"
    assert nodes[2].daemon.stop() == 0
    for node in nodes[:2]:
        wait_until(lambda: len(node.store.json("peers")["peers"]) == 2, seconds_max=3 * SECONDS_MAX)


def test_nodes_that_publish_one_model_at_once(nodes, tmp_path):
    """Every publish gets a number of its own, and none is lost."""
    clients = []
    for i in range(12):
        model = write_model(tmp_path / f"model{i}", random_tensors(2, 4096, seed=f"at once {i}"))
        clients.append(subprocess.Popen([WEFT, "--store", nodes[i % 3].store.path, "import", model, "--name", "m"],
                                        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    for client in clients:
        out, err = client.communicate(timeout=60)
        assert client.returncode == 0, err
    for node in nodes:
        wait_until(lambda: node.versions("m") == list(range(1, 13)), seconds_max=SECONDS_MAX)


def test_a_daemon_killed_while_it_publishes(nodes, tmp_path):
    """The version is everywhere or nowhere, and where it was published it is whole."""
    rng = random.Random(7)
    first, second, _ = nodes
    for i in range(8):
        model = write_model(tmp_path / f"model{i}", random_tensors(4, 256 << 10, seed=f"killed {i}"))
        client = subprocess.Popen([WEFT, "--store", first.store.path, "import", model, "--name", "m"],
                                  env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(rng.uniform(0, 0.3))
        first.daemon.kill()
        _, err = client.communicate(timeout=60)
        assert client.returncode in (0, 1)
        first.daemon.start()
        wait_until(first.connected, seconds_max=SECONDS_MAX)
        wait_until(lambda: second.store.json("ls") == first.store.json("ls"), seconds_max=SECONDS_MAX)
        if client.returncode == 0:
            latest = (first.models() / "m/latest").readlink().name
            assert (first.models() / "m" / latest / "model.safetensors").read_bytes() == \
                (model / "model.safetensors").read_bytes()
    first.daemon.stop()
    first.store.assert_sound()


def test_without_etcd(nodes, etcd, small_model, tmp_path):
    """Reads go on, publishing fails cleanly and says why, and what is missed comes when it is back."""
    first, second, _ = nodes
    first.store.publish(small_model, name="m")
    second.sees("m", 1)
    before = first.store.state()
    etcd.kill()
    begin = time.monotonic()
    refused = first.store.weft("import", small_model, "--name", "n", check=False)
    assert time.monotonic() - begin < SECONDS_MAX
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1, refused.stderr
    assert etcd.endpoint.split("//")[1] in refused.stderr
    for words in (["rm", "m@1"], ["tag", "m@1", "x"]):
        assert first.store.weft(*words, check=False).returncode == 1
    assert first.store.state() == before
    assert (first.models() / "m/1/model.safetensors").read_bytes() == (small_model / "model.safetensors").read_bytes()
    assert (second.models() / "m").is_dir()
    wait_until(lambda: not first.connected() and first.registry()["trouble"], seconds_max=SECONDS_MAX)
    etcd.start()
    wait_until(lambda: all(node.connected() for node in nodes), seconds_max=3 * SECONDS_MAX)
    second.store.publish(small_model, name="n")
    first.sees("n", 1)


def test_etcd_stopped_while_nodes_publish(nodes, etcd, tmp_path):
    """Whatever a publish was answered: what is said to be published is, and what shows is whole where it came from."""
    rng = random.Random(13)
    said = {}
    for i in range(6):
        clients = {}
        for k, node in enumerate(nodes):
            name = f"m{i}-{k}"
            model = write_model(tmp_path / name, random_tensors(2, 4096, seed=name))
            clients[name] = (node, model, start(node, "import", model, "--name", name))
        time.sleep(rng.uniform(0, 0.15))
        etcd.stop()
        etcd.start()
        for name, (node, model, client) in clients.items():
            _, why = client.communicate(timeout=60)
            assert client.returncode in (0, 1) and why.count("\n") == client.returncode, why
            said[name] = (node, model, client.returncode == 0)
        for node in nodes:
            wait_until(node.connected, seconds_max=SECONDS_MAX)
    for node in nodes[1:]:
        wait_until(lambda: node.store.json("ls") == nodes[0].store.json("ls"), seconds_max=SECONDS_MAX)
    shown = {one["model"] for one in nodes[0].store.json("ls")["models"]}
    assert {name for name, (_, _, done) in said.items() if done} <= shown
    for name in shown:
        node, model, _ = said[name]
        assert (node.models() / name / "1/model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()
    for node in nodes:
        node.daemon.stop()
        node.store.assert_sound()


def test_a_partition_and_its_end(nodes, small_model):
    first, second, third = nodes
    first.store.publish(small_model, name="before")
    third.sees("before", 1)
    third.host.cut()
    first.store.publish(small_model, name="meanwhile")
    second.sees("meanwhile", 1)
    assert (third.models() / "before").is_dir() and not (third.models() / "meanwhile").exists()
    begin = time.monotonic()
    refused = third.store.weft("import", small_model, "--name", "alone", check=False)
    assert refused.returncode == 1 and time.monotonic() - begin < SECONDS_MAX
    third.host.mend()
    third.sees("meanwhile", 1, seconds=3 * SECONDS_MAX)
    assert not (first.models() / "alone").exists()


def test_etcd_compacted_while_a_node_is_away(nodes, etcd, small_model):
    first, second, third = nodes
    first.store.publish(small_model, name="gone")
    third.sees("gone", 1)
    third.daemon.stop()
    first.store.weft("rm", "gone@1")
    for i in range(5):
        (small_model / "config.json").write_text(str(i))
        first.store.publish(small_model, name="m")
    etcd.compact()
    third.daemon.start()
    third.sees("m", 5, seconds=3 * SECONDS_MAX)
    wait_until(lambda: not (third.models() / "gone").exists(), seconds_max=SECONDS_MAX)
    assert third.store.json("ls") == first.store.json("ls")


def test_a_library_may_not_write_to_a_clusters_store(nodes, small_model):
    first = nodes[0]
    first.store.publish(small_model, name="m")
    assert first.daemon.stop() == 0
    refused = first.store.weft("import", small_model, "--name", "n", check=False)
    assert refused.returncode == 1 and "cluster" in refused.stderr
    assert first.store.json("ls")["models"][0]["model"] == "m"


RACES = 1000 if PATIENCE == 1 else 100  # programs of a sanitizer take a second and more for each


def start(node, *words):
    return subprocess.Popen([WEFT, "--store", node.store.path, *words], env=environment(), stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def race(first, second, base, own, i, pause):
    """Either node derives from what the first has published, and the other removes it meanwhile."""
    (base / "config.json").write_text(str(i))
    first.store.publish(base, name="base")
    spec = f"base@{i + 1}"
    first.store.weft("stage-out", spec)
    second.sees("base", i + 1)
    deriver, remover = (first, second) if i % 2 else (second, first)
    deriving = start(deriver, "import", own / "model.safetensors", "--name", f"d{i % 10}", "--inherit", spec, "--add")
    time.sleep(pause)
    removing = start(remover, "rm", spec)
    _, said = deriving.communicate(timeout=60)
    _, why = removing.communicate(timeout=60)
    assert deriving.returncode == 0 or said.count("\n") == 1, said
    assert removing.returncode == 0, why
    return "kept" if deriving.returncode == 0 else "refused"


def test_removals_race_inheriting_publishes(nodes, tmp_path):
    """One node removes a base while another publishes what inherits from it: every version that survives is whole, at
    the nodes, and for a third who has none of its bytes."""
    first, second, third = nodes
    base = write_model(tmp_path / "base", random_tensors(2, 4096, seed="base"))
    stop = threading.Event()
    rng = random.Random(11)
    done = []

    def collect():
        while not stop.is_set():
            first.store.weft("gc", check=False)
            second.store.weft("gc", check=False)

    collector = threading.Thread(target=collect)
    collector.start()
    try:
        for i in range(RACES):
            own = write_model(tmp_path / "own", random_tensors(1, 64, seed=f"own {i}"))
            done.append(race(first, second, base, own, i, rng.uniform(0, 0.06)))
    finally:
        stop.set()
        collector.join()
    for node in (first, second):
        node.store.weft("stage-out")
        node.store.weft("gc")
    wait_until(lambda: third.store.json("ls") == first.store.json("ls"), seconds_max=SECONDS_MAX)
    kept = [f"d{k}@{number}" for k in range(10) for number in third.versions(f"d{k}")]
    assert len(kept) == done.count("kept")
    assert done[0::2].count("kept") > 0 and done[1::2].count("kept") > 0
    for spec in kept:
        third.store.weft("prefetch", spec)
    for node in nodes:
        node.daemon.stop()
        node.store.assert_sound()
