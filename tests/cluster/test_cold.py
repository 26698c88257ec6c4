"""Bytes that a node has not: they come from the origin, each once, verified, and nothing else is kept waiting."""
import contextlib
import errno
import json
import mmap
import os
import shutil
import signal
import subprocess
import threading
import time

import pytest

from clusterlib import can_make_networks
from daemonlib import metrics, receive, send
from nodes import SECONDS_MAX, Cluster, errno_of, fuse_directory
from uses import drop_caches
from weftlib import WEFT, Deadline, environment, random_tensors, run, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
FILE = "model.safetensors"


@pytest.fixture
def cluster(tmp_path):
    with Cluster(tmp_path) as made:
        yield made


@pytest.fixture
def pair(cluster):
    return cluster.some(2)


def model_at(path, tensors=None):
    return write_model(path, tensors or random_tensors(6, 3 << 20, seed=path.name))


def size_of(tensors):
    return sum(len(data) for _, _, data in tensors.values())


def bytes_of(directory):
    return sum(path.stat().st_size for path in directory.iterdir())


def test_what_one_node_publishes_another_loads(cluster, pair, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    one, two = pair
    source = model_at(tmp_path / "source")
    cluster.publish(one, source, "model")
    with two.mounted() as mount:
        loaded = safetensors.load_file(mount.version("model", 1) / FILE)
        expected = safetensors.load_file(source / FILE)
        assert loaded.keys() == expected.keys()
        assert all(loaded[name].tobytes() == expected[name].tobytes() for name in expected)
        assert (mount.version("model", 1) / FILE).read_bytes() == (source / FILE).read_bytes()
    assert two.fetched() <= bytes_of(source)


@pytest.mark.parametrize("policy", ["auto", "stream", "fetch"])
def test_every_policy_gives_the_same_bytes(cluster, pair, tmp_path, policy):
    one, two = pair
    source = model_at(tmp_path / "source")
    cluster.publish(one, source, "model")
    with two.mounted(f"cold={policy}") as mount:
        with open(mount.version("model", 1) / FILE, "rb") as file:
            file.seek(5 << 20)
            assert file.read(100_000) == (source / FILE).read_bytes()[5 << 20:(5 << 20) + 100_000]
        assert (mount.version("model", 1) / FILE).read_bytes() == (source / FILE).read_bytes()


def cached_bytes(path):
    """Of a file, in the machine's memory."""
    return int(run(["fincore", "--bytes", "--noheadings", "--output", "RES", path]).stdout)


def test_what_came_from_the_origin_is_in_memory_once(cluster, pair, tmp_path):
    """A node reads its own copy from then on: of the origin's nothing stays that others could need the memory for."""
    one, two = pair
    source = model_at(tmp_path / "source", random_tensors(4, 8 << 20, seed="once"))
    cluster.publish(one, source, "model")
    packs = list((cluster.origin / "packs").glob("*.pack"))
    for pack in packs:
        with pack.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if sum(map(cached_bytes, packs)) > 0:
        pytest.skip("no page of a file can be dropped here")
    with two.mounted("cold=fetch") as mount:
        assert (mount.version("model", 1) / FILE).read_bytes() == (source / FILE).read_bytes()
    assert sum(map(cached_bytes, packs)) < (source / FILE).stat().st_size / 4


def looks(node, mount):
    """What listings, stat and info say."""
    version = mount.version("model", 1)
    said = [run(words).stdout for words in (["ls", "-lR", version], ["stat", version / FILE])]
    said.append((mount.lineage("model", 1) / "info.json").read_text())
    for words in (["ls"], ["ls", "model@1", "--tensors"], ["info", "model"], ["log", "model"]):
        said.append(node.store.weft(*words).stdout)
    return said


@pytest.mark.parametrize("peers", [False, True], ids=["by the origin", "by peers"])
def test_after_the_first_look_nobody_is_asked(tmp_path, peers):
    """Nor is anybody needed: etcd and the other node have stopped when it is looked at once more."""
    with Cluster(tmp_path, peers=peers) as cluster:
        one, two = cluster.some(2)
        cluster.publish(one, model_at(tmp_path / "source"), "model")
        with two.mounted() as mount:
            said = looks(two, mount)
            before = two.messages()
            assert any('"resolve"' in name for name in before) and before["weft_fetched_manifests_total"] == 1
            assert looks(two, mount) == said
            assert two.messages() == before
            one.daemon.signal(signal.SIGSTOP)
            cluster.etcd.stop_answering()
            try:
                with Deadline(SECONDS_MAX):
                    assert looks(two, mount) == said
            finally:
                cluster.etcd.answer_again()
                one.daemon.signal(signal.SIGCONT)
            assert two.messages() == before
        assert two.fetched() == 0


def test_commands_look_into_versions_of_other_nodes(cluster, pair, tmp_path):
    """Once each; without a daemon they say what is missing, and du counts what is known."""
    one, two = pair
    for name in ("model", "other"):
        cluster.publish(one, model_at(tmp_path / name), name)
    two.daemon.kill()
    refused = two.store.weft("info", "model", check=False)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1 and "manifest" in refused.stderr
    known = two.store.json("du")
    assert known["unknown_versions"] == 2 and known["owned_bytes"] == known["shared_bytes"] == 0
    assert known["logical_bytes"] == one.store.json("du")["logical_bytes"]
    two.daemon.start()
    for words in (["ls", "model@1"], ["ls", "other@1", "--tensors"], ["info", "model"], ["diff", "model", "other"]):
        assert two.store.json(*words) == one.store.json(*words)
    own = {"assembled_bytes_max": None}  # each disk has its own bound
    assert two.store.json("du") | own == one.store.json("du") | own
    before = two.asked()
    assert sum(before.values()) == 2
    two.store.json("info", "other")
    two.store.json("du")
    assert two.asked() == before
    assert two.fetched() == 0


def test_a_model_may_inherit_from_a_version_that_nobody_looked_at(cluster, pair, tmp_path):
    one, two = pair
    tensors = random_tensors(6, 3 << 20, seed="base")
    cluster.publish(one, model_at(tmp_path / "base", tensors), "base")
    changed = {"layer.2.weight": random_tensors(6, 3 << 20, seed="changed")["layer.2.weight"]}
    part = model_at(tmp_path / "part", changed)
    two.store.weft("import", part, "--name", "derived", "--inherit", "base@1")
    more = write_model(tmp_path / "more", {"head.weight": random_tensors(1, 64, seed="more")["layer.0.weight"]})
    assert two.fetched() < 65536  # heads alone, no tensor
    two.store.weft("import", more / FILE, "--name", "more", "--inherit", "base@1", "--add")  # reads its config.json
    assert two.fetched() < 65536
    two.store.weft("stage-out", "derived@1")
    wait_until(lambda: one.knows("derived@1"), seconds_max=SECONDS_MAX)
    with one.mounted() as mount:
        whole = model_at(tmp_path / "whole", tensors | changed)
        assert (mount.version("derived", 1) / FILE).read_bytes() == (whole / FILE).read_bytes()
        info = json.loads((mount.lineage("derived", 1) / "info.json").read_text())
        assert [file["sha256"] for file in info["files"] if file["path"] == FILE] == [None]
        assert FILE not in (mount.lineage("derived", 1) / "SHA256SUMS").read_text()


def test_who_looks_at_once_waits_for_the_publisher(cluster, pair, tmp_path):
    """A version shows by name before it is at the origin."""
    one, two = pair
    source = model_at(tmp_path / "source")
    with two.mounted() as mount:
        for number in range(1, 6):
            (source / "config.json").write_text(str(number))
            one.store.publish(source, name="model")
            wait_until(lambda: (mount.path / f"models/model/{number}").exists(), seconds_max=SECONDS_MAX, pause=0.001)
            assert (mount.version("model", number) / "config.json").read_text() == str(number)


def test_a_view_moves_its_own_chunks_alone(cluster, pair, tmp_path):
    one, two = pair
    tensors = random_tensors(8, 4 << 20, seed="view")
    cluster.publish(one, model_at(tmp_path / "source", tensors), "model")
    with two.mounted() as mount:
        view = mount.tensors("model", 1) / "layer.3.weight.npy"
        assert view.read_bytes().endswith(tensors["layer.3.weight"][2])
        assert two.fetched() <= len(tensors["layer.3.weight"][2]) * 1.02 + 65536


def test_a_derived_model_moves_only_what_differs(cluster, pair, tmp_path):
    one, two = pair
    tensors = random_tensors(6, 3 << 20, seed="base")
    cluster.publish(one, model_at(tmp_path / "base", tensors), "base")
    two.store.weft("prefetch", "base")
    before = two.fetched()
    other = random_tensors(6, 3 << 20, seed="other")
    derived = model_at(tmp_path / "derived", tensors | {"layer.2.weight": other["layer.2.weight"]})
    cluster.publish(one, derived, "derived")
    with two.mounted() as mount:
        assert (mount.version("derived", 1) / FILE).read_bytes() == (derived / FILE).read_bytes()
    moved = two.fetched() - before
    assert 3 << 20 <= moved <= (3 << 20) + 65536


def test_files_that_begin_alike_are_kept_apart(cluster, pair, tmp_path):
    """Equal headers, equal sizes, equal tensors in part: what is fetched of one leaves the other as it is."""
    one, two = pair
    tensors = random_tensors(4, 3 << 20, seed="alike")
    for i in range(3):
        other = random_tensors(4, 3 << 20, seed=f"alike {i}")
        cluster.publish(one, model_at(tmp_path / f"m{i}", tensors | {"layer.1.weight": other["layer.1.weight"]}), f"m{i}")
    with two.mounted() as mount:
        for i in (0, 1, 2, 0, 1):
            assert (mount.version(f"m{i}", 1) / FILE).read_bytes() == (tmp_path / f"m{i}" / FILE).read_bytes()
    two.daemon.stop()
    two.store.assert_sound()


def counted(node):
    """Bytes by source, as `weft status` and .weft/status show them."""
    return {one["name"]: one["bytes"] for one in node.daemon.status()["fetched"]["sources"]}


def test_what_is_here_when_a_mount_asks_for_it_is_local(cluster, pair, tmp_path):
    """It came after the file was opened; what a mount finds there by itself it does not ask for."""
    one, two = pair
    source = model_at(tmp_path / "source")
    size = (source / FILE).stat().st_size
    cluster.publish(one, source, "model")
    with two.mounted("cold=stream") as mount:
        with open(mount.version("model", 1) / FILE, "rb") as file:
            two.store.weft("prefetch", "model")
            assert two.fetched("local") == 0
            assert file.read() == (source / FILE).read_bytes()
        assert 6 * 4096 <= two.fetched("local") <= size  # of each tensor what was asked for, and not the rest of it
        assert counted(two) == {"local": two.fetched("local"), "origin": bytes_of(source)}
        assert f"fetched local bytes: {counted(two)['local']}\n" in two.store.weft("status", "--all").stdout
        before = counted(two)
        assert (mount.version("model", 1) / FILE).read_bytes() == (source / FILE).read_bytes()
        assert counted(two) == before  # it found all by itself


def test_two_readers_of_one_file_cause_one_transfer(cluster, pair, tmp_path):
    one, two = pair
    source = model_at(tmp_path / "source", random_tensors(4, 16 << 20, seed="large"))
    cluster.publish(one, source, "model")
    with two.mounted() as mount:
        readers = [subprocess.Popen(["cmp", source / FILE, mount.version("model", 1) / FILE]) for _ in range(4)]
        assert [reader.wait(SECONDS_MAX) for reader in readers] == [0] * 4
    assert two.fetched() <= bytes_of(source)


def test_prefetch_brings_all_and_layers_a_part(cluster, pair, tmp_path):
    one, two = pair
    tensors = random_tensors(6, 3 << 20, seed="prefetch")
    cluster.publish(one, model_at(tmp_path / "source", tensors), "model")
    part = two.store.json("prefetch", "model", "--layers", "layer.[01]")
    assert part["moved_bytes"] < size_of(tensors) / 2
    assert two.store.json("prefetch", "model")["moved_bytes"] > 0
    assert two.store.json("prefetch", "model")["moved_bytes"] == 0
    two.daemon.kill()
    with two.mounted() as mount:
        assert (mount.version("model", 1) / FILE).read_bytes() == (tmp_path / "source" / FILE).read_bytes()


def test_evicted_bytes_come_back_and_pinned_ones_stay(cluster, pair, tmp_path):
    one, two = pair
    cluster.publish(one, model_at(tmp_path / "source"), "model")
    two.store.weft("prefetch", "model")
    two.store.weft("pin", "model")
    assert two.store.json("evict", "--all")["disk_bytes"] == 0
    two.store.weft("unpin", "model")
    assert two.store.json("evict", "--all")["disk_bytes"] > 0
    assert one.store.json("evict", "--all")["disk_bytes"] == 0  # it published them
    with two.mounted() as mount:
        assert (mount.version("model", 1) / FILE).read_bytes() == (tmp_path / "source" / FILE).read_bytes()
    at_once = two.store.json("evict", "--all")
    assert at_once["disk_bytes"] > 0 and at_once["busy_bytes"] == 0


def test_what_is_mapped_keeps_its_bytes_when_it_is_evicted(cluster, pair, tmp_path):
    """Also with the descriptor closed, the daemon started again, and the page cache dropped."""
    one, two = pair
    cluster.publish(one, model_at(tmp_path / "source"), "model")
    expected = (tmp_path / "source" / FILE).read_bytes()
    two.store.weft("prefetch", "model")
    with two.mounted() as mount:
        with open(mount.version("model", 1) / FILE, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        with mapped:
            assert mapped[:1 << 20] == expected[:1 << 20]
            assert two.store.json("evict", "--all")["disk_bytes"] > 0
            two.daemon.stop()
            two.daemon.start()
            drop_caches()
            assert mapped[:] == expected
        assert two.store.json("evict", "--all")["disk_bytes"] == 0
        assert (mount.version("model", 1) / FILE).read_bytes() == expected


def test_what_the_origin_has_may_be_evicted_where_it_was_published(cluster, tmp_path):
    """Of the version that is named alone, and within cache_max from then on."""
    one, two = cluster.node("--cache-max", "16M", "--cold", "stream"), cluster.node()
    for i, name in enumerate("abc"):  # nothing is shared, nor the header
        cluster.publish(one, model_at(tmp_path / name, random_tensors(3, (3 << 20) - 4096 * i, seed=name)), name)
    assert one.store.json("evict", "--all")["disk_bytes"] == 0
    given = one.store.json("stage-out", "a", "--evictable")
    assert given["packs"] > 0 and given["kept_packs"] == 0
    assert one.store.json("evict", "--all")["disk_bytes"] == given["disk_bytes"]
    one.store.assert_sound()
    one.store.weft("stage-out", "--evictable")
    wait_until(lambda: one.store.pack_bytes() <= 16 << 20, seconds_max=SECONDS_MAX)
    for node in (one, two):
        with node.mounted() as mount:
            for name in "abc":
                assert (mount.version(name, 1) / FILE).read_bytes() == (tmp_path / name / FILE).read_bytes()
    assert one.fetched() > 0
    one.store.publish(model_at(tmp_path / "d", random_tensors(3, 3 << 20, seed="c")), name="d")  # its own again
    one.daemon.stop()
    one.store.assert_sound()


def test_what_the_origin_lacks_is_never_made_evictable(cluster, tmp_path):
    one = cluster.node()
    cluster.publish(one, model_at(tmp_path / "a"), "a")
    for pack in (cluster.origin / "packs").glob("*.pack"):
        os.truncate(pack, pack.stat().st_size // 2)
    kept = one.store.json("stage-out", "--evictable")
    assert kept["packs"] == 0 and kept["kept_packs"] > 0
    assert one.store.json("evict", "--all")["disk_bytes"] == 0


def test_bytes_of_a_removed_version_are_found_at_the_origin_by_one_that_inherits_them(cluster, tmp_path):
    """Though its publisher has them not, and could not look there before the removal."""
    link = tmp_path / "link"
    link.symlink_to(cluster.origin)
    one, two = cluster.node(), cluster.node("--origin", link)
    tensors = random_tensors(4, 1 << 20, seed="base")
    cluster.publish(one, model_at(tmp_path / "base", tensors), "base")
    two.store.json("info", "base")
    link.unlink()
    changed = {"layer.2.weight": random_tensors(4, 1 << 20, seed="changed")["layer.2.weight"]}
    two.store.weft("import", model_at(tmp_path / "part", changed), "--name", "derived", "--inherit", "base@1")
    one.store.weft("rm", "base@1")
    wait_until(lambda: not two.knows("base@1"), seconds_max=SECONDS_MAX)
    link.symlink_to(cluster.origin)
    two.store.weft("stage-out", "derived@1")
    whole = model_at(tmp_path / "whole", tensors | changed)
    with one.mounted() as mount:
        assert (mount.version("derived", 1) / FILE).read_bytes() == (whole / FILE).read_bytes()


@pytest.mark.parametrize("waits", [False, True], ids=["behind", "waited for"])
def test_a_daemon_ends_while_its_origin_hangs(tmp_path, waits, monkeypatch):
    """In time, and what was published goes to the origin after the next start."""
    # A sanitizer that looks for leaks at the end waits for all threads, also for one that hangs.
    monkeypatch.setenv("ASAN_OPTIONS", os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
    real = tmp_path / "real"
    real.mkdir()
    where = tmp_path / "origin"
    with fuse_directory(real, where) as server, Cluster(tmp_path, where) as cluster:
        one, two = cluster.node("--drain-seconds", "1"), cluster.node()
        cluster.publish(one, model_at(tmp_path / "near"), "near")
        os.kill(server, signal.SIGSTOP)
        try:
            one.store.publish(model_at(tmp_path / "far"), name="far")
            waiting = subprocess.Popen([WEFT, "--store", one.store.path, "stage-out"], env=environment(),
                                       stderr=subprocess.DEVNULL) if waits else None
            wait_until(lambda: one.daemon.status()["write_behind"]["active"] == "far@1", seconds_max=SECONDS_MAX)
            late = one.store.weft("stage-out", "--timeout", "1s", check=False)
            assert late.returncode == 1 and "not all is at the origin after 1 s (versions that wait: 1" in late.stderr
            begin = time.monotonic()
            assert one.daemon.stop() == 0
            assert time.monotonic() - begin < SECONDS_MAX
            if waiting:
                assert waiting.wait(SECONDS_MAX) == 1
            one.daemon.start()  # nothing of the one before keeps the store
            assert one.daemon.status()["write_behind"]["waiting"] == 1
        finally:
            os.kill(server, signal.SIGCONT)
        one.store.weft("stage-out", "far@1")
        with two.mounted() as mount:
            assert (mount.version("far", 1) / FILE).read_bytes() == (tmp_path / "far" / FILE).read_bytes()
        one.daemon.stop()
        one.store.assert_sound()


def pack_blocks(node):
    """By name, which a pack keeps when it moves out of tmp/."""
    blocks = {}
    for directory, _, names in os.walk(node.store.path):  # passes over directories that went meanwhile
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                if name.endswith(".pack"):
                    blocks[name] = os.stat(os.path.join(directory, name)).st_blocks * 512
    return blocks


def cache_bytes(node):
    """Blocks of what a node that published nothing has, also of what is on its way. Packs come and go while they are
    counted: those that a second look finds again were all there at one moment, and none has become smaller."""
    first, second = pack_blocks(node), pack_blocks(node)
    return sum(blocks for name, blocks in first.items() if name in second)


def told_of_cache(node):
    """How much fetched bytes take, which status says too, and may take."""
    figures = metrics(node.daemon.ask("metrics")["text"])
    status = node.daemon.status()
    if status["cache_bytes"] != figures["weft_cache_bytes"]:
        return None
    return figures["weft_cache_bytes"], figures["weft_cache_limit_bytes"]


class Sampled:
    """As a context: the largest value that was seen inside."""

    def __init__(self, measure):
        self.measure, self.largest, self.stop = measure, 0, threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def run(self):
        while not self.stop.wait(0.005):
            self.largest = max(self.largest, self.measure())

    def __exit__(self, *exception):
        self.stop.set()
        self.thread.join()


def test_the_cache_keeps_its_bound(cluster, tmp_path):
    """Before bytes come, also when it is changed; what does not fit passes to its readers."""
    config = tmp_path / "weft.conf"
    config.write_text('cache_max = "64M"\ncold = "fetch"\n')
    one = cluster.node()
    two = cluster.node("--config", config)
    for i, name in enumerate("abc"):  # nothing is shared, nor the header
        cluster.publish(one, model_at(tmp_path / name, random_tensors(4, (8 << 20) - 4096 * i, seed=name)), name)
    cluster.publish(one, model_at(tmp_path / "large", random_tensors(6, 16 << 20, seed="large")), "large")
    with Sampled(lambda: cache_bytes(two)) as sampled, two.mounted() as mount:
        for name in "abca":
            assert (mount.version(name, 1) / FILE).read_bytes() == (tmp_path / name / FILE).read_bytes()
        assert (mount.version("large", 1) / FILE).read_bytes() == (tmp_path / "large" / FILE).read_bytes()
        assert two.store.weft("prefetch", "large", check=False).returncode != 0
        wait_until(lambda: told_of_cache(two) == (cache_bytes(two), 64 << 20), seconds_max=SECONDS_MAX)
        config.write_text('cache_max = "40M"\ncold = "stream"\n')
        assert sampled.largest <= 64 << 20
        two.daemon.signal(signal.SIGHUP)
        wait_until(lambda: cache_bytes(two) <= 40 << 20, seconds_max=SECONDS_MAX)
        wait_until(lambda: told_of_cache(two) == (cache_bytes(two), 40 << 20), seconds_max=SECONDS_MAX)
        time.sleep(2.5)  # within which a mount learns of it
        with open(mount.version("large", 1) / FILE, "rb") as file:
            file.seek(50 << 20)
            assert file.read(1 << 20) == (tmp_path / "large" / FILE).read_bytes()[50 << 20:51 << 20]


@pytest.mark.parametrize("damage", ["wrong", "short"])
def test_an_origin_that_returns_wrong_or_short_bytes(cluster, pair, tmp_path, damage):
    one, two = pair
    source = model_at(tmp_path / "source")
    cluster.publish(one, source, "model")
    for pack in (cluster.origin / "packs").glob("*.pack"):
        kept = pack.with_suffix(".kept")
        shutil.copy(pack, kept)
        if damage == "short":
            os.truncate(pack, pack.stat().st_size // 2)
        else:
            with open(pack, "r+b") as file:
                file.seek(pack.stat().st_size // 2)
                file.write(b"\xff" * 4096)
    with two.mounted() as mount:
        with Deadline(SECONDS_MAX):
            assert errno_of(mount.version("model", 1) / FILE) == errno.EIO
        for kept in (cluster.origin / "packs").glob("*.kept"):
            kept.rename(kept.with_suffix(".pack"))
        with Deadline(SECONDS_MAX):
            assert (mount.version("model", 1) / FILE).read_bytes() == (source / FILE).read_bytes()
    two.daemon.stop()
    two.store.assert_sound()


def test_a_stopped_origin_costs_a_bounded_wait_and_keeps_nobody_local_waiting(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    where = tmp_path / "origin"
    with fuse_directory(real, where) as server, Cluster(tmp_path, where) as cluster:
        one, two = cluster.some(2)
        cluster.publish(one, model_at(tmp_path / "near"), "near")
        cluster.publish(one, model_at(tmp_path / "far"), "far")
        two.store.weft("prefetch", "near")
        with two.mounted() as mount:
            os.listdir(mount.version("far", 1))
            os.kill(server, signal.SIGSTOP)
            try:
                outcome = []
                reader = threading.Thread(target=lambda: outcome.append(errno_of(mount.version("far", 1) / FILE)))
                start = time.monotonic()
                reader.start()
                for _ in range(20):
                    assert (mount.version("near", 1) / FILE).read_bytes() == (tmp_path / "near" / FILE).read_bytes()
                assert two.daemon.status()["pid"] == two.daemon.pid
                reader.join(2 * SECONDS_MAX)
                assert outcome == [errno.EIO]
                assert time.monotonic() - start < SECONDS_MAX
            finally:
                os.kill(server, signal.SIGCONT)
            wait_until(lambda: errno_of(mount.version("far", 1) / FILE) == 0, seconds_max=SECONDS_MAX, pause=0.2)
            assert (mount.version("far", 1) / FILE).read_bytes() == (tmp_path / "far" / FILE).read_bytes()


def test_a_slow_origin_is_read_and_keeps_nobody_local_waiting(tmp_path):
    """One that takes longer for a file than anybody waits for one that gives nothing; prefetch says how far it is."""
    real = tmp_path / "real"
    real.mkdir()
    where = tmp_path / "origin"
    with fuse_directory(real, where, f"--read-rate={10 << 20}"), Cluster(tmp_path, where) as cluster:
        one, two = cluster.some(2)
        cluster.publish(one, model_at(tmp_path / "near", random_tensors(2, 1 << 20, seed="near")), "near")
        far = model_at(tmp_path / "far", random_tensors(5, 16 << 20, seed="far"))
        cluster.publish(one, far, "far")
        two.store.weft("prefetch", "near")
        with two.mounted() as mount, two.daemon.connect() as connection:
            send(connection, {"id": 1, "request": "prefetch", "body": {"spec": "far@1", "layers": ""}})
            told = []
            while (message := receive(connection)).get("event"):
                told.append(message["body"])
                assert (mount.version("near", 1) / FILE).read_bytes() == (tmp_path / "near" / FILE).read_bytes()
            assert message.get("answer"), message
            assert {one["total"] for one in told} == {bytes_of(far)}
            done = [one["done"] for one in told]
            assert done == sorted(done) and any(0 < bytes_ < bytes_of(far) for bytes_ in done)
            assert f"fetching {FILE}" in [one["phase"] for one in told]
            assert (mount.version("far", 1) / FILE).read_bytes() == (far / FILE).read_bytes()


def test_a_daemon_killed_mid_read_is_found_again(cluster, pair, tmp_path):
    one, two = pair
    source = model_at(tmp_path / "source", random_tensors(8, 16 << 20, seed="large"))
    cluster.publish(one, source, "model")
    with two.mounted("cold=stream") as mount:
        reader = subprocess.Popen(["cmp", source / FILE, mount.version("model", 1) / FILE])
        wait_until(lambda: two.fetched() > 0, seconds_max=SECONDS_MAX)
        two.daemon.kill()
        two.daemon.start()
        assert reader.wait(SECONDS_MAX) == 0
    two.store.assert_sound()


def test_without_a_daemon_what_is_here_is_read_and_the_rest_is_eio(cluster, pair, tmp_path):
    one, two = pair
    cluster.publish(one, model_at(tmp_path / "near"), "near")
    cluster.publish(one, model_at(tmp_path / "far"), "far")
    two.store.weft("prefetch", "near")
    with two.mounted() as mount:
        os.listdir(mount.version("far", 1))
        two.daemon.kill()
        assert (mount.version("near", 1) / FILE).read_bytes() == (tmp_path / "near" / FILE).read_bytes()
        start = time.monotonic()
        for _ in range(5):
            assert errno_of(mount.version("far", 1) / FILE) == errno.EIO
        assert time.monotonic() - start < SECONDS_MAX  # five times the wait would be longer
        two.daemon.start()
        assert (mount.version("far", 1) / FILE).read_bytes() == (tmp_path / "far" / FILE).read_bytes()


@pytest.mark.parametrize("policy", ["auto", "stream", "fetch"])
def test_a_read_larger_than_the_free_space_leaves_a_part_of_the_disk_free(cluster, tmp_path, policy):
    """Its bytes pass to the program; a removal, gc and a pull of another file work afterwards."""
    one = cluster.node()
    source = model_at(tmp_path / "source", random_tensors(4, 16 << 20, seed="large"))
    small = tmp_path / "small"
    small.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", small])
    try:
        two = cluster.node(path=small)
        cluster.publish(one, source, "model")
        with two.mounted(f"cold={policy}") as mount:
            with Deadline(SECONDS_MAX):
                assert (mount.version("model", 1) / FILE).read_bytes() == (source / FILE).read_bytes()
            space = os.statvfs(small)
            assert space.f_bavail >= space.f_blocks // 20 - (1 << 20) // space.f_frsize
            assert two.daemon.alive()
            two.store.publish(model_at(tmp_path / "little", random_tensors(1, 64 << 10, seed="little")), name="little")
            two.store.weft("rm", "little@1")
            two.store.weft("gc")
            run(["mount", "-o", "remount,size=256m", small])
            with Deadline(SECONDS_MAX):
                assert (mount.version("model", 1) / FILE).read_bytes() == (source / FILE).read_bytes()
        two.daemon.stop()
        two.store.assert_sound()
    finally:
        run(["umount", "-l", small])


def test_a_node_that_lost_its_disk_reads_everything_from_the_origin(cluster, pair, tmp_path):
    one, _ = pair
    source = model_at(tmp_path / "source")
    cluster.publish(one, source, "model")
    one.daemon.kill()
    shutil.rmtree(one.store.path)
    new = cluster.node()
    wait_until(lambda: new.knows("model@1"), seconds_max=SECONDS_MAX, pause=0.05)
    with new.mounted() as mount:
        assert (mount.version("model", 1) / FILE).read_bytes() == (source / FILE).read_bytes()


@pytest.mark.parametrize("policy", ["stream", "fetch"])
def test_removal_on_one_node_and_a_read_on_another_never_give_half_a_file(cluster, pair, tmp_path, policy):
    one, two = pair
    with two.mounted(f"cold={policy}") as mount:
        for round_ in range(5):
            source = model_at(tmp_path / f"source{round_}")
            number = cluster.publish(one, source, "model").split("@")[1]
            reader = subprocess.Popen(["cat", mount.version("model", number) / FILE], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL)
            one.store.weft("rm", f"model@{number}")
            for node in pair:
                node.store.weft("gc")
            got = reader.stdout.read()
            whole = (source / FILE).read_bytes()
            assert (reader.wait(SECONDS_MAX), got) == (0, whole) or reader.returncode != 0 and whole.startswith(got)
    two.daemon.stop()
    two.store.assert_sound()


def test_pending_work_survives_a_restart(tmp_path):
    with Cluster(tmp_path) as cluster:
        one = cluster.node()
        source = model_at(tmp_path / "source")
        cluster.origin.rename(tmp_path / "away")
        one.store.publish(source, name="model")
        one.daemon.stop()
        (tmp_path / "away").rename(cluster.origin)
        one.daemon.start()
        one.store.weft("stage-out", "model@1")
        assert one.store.json("du", "--origin")["versions"] == 1


def test_bytes_never_go_where_the_origin_is_not_mounted(cluster, pair, tmp_path):
    """An empty directory in its place is refused, by one line; with the origin back everything gets there."""
    one, two = pair
    cluster.publish(one, model_at(tmp_path / "first"), "first")
    cluster.origin.rename(tmp_path / "real")
    cluster.origin.mkdir()
    source = model_at(tmp_path / "source")
    refused = one.store.weft("import", source, "--name", "model", "--durability", "origin", check=False)
    assert refused.returncode != 0
    assert "expected the origin" in refused.stderr and "got none" in refused.stderr
    assert list(cluster.origin.iterdir()) == []
    cluster.origin.rmdir()
    (tmp_path / "real").rename(cluster.origin)
    one.store.weft("stage-out")
    wait_until(lambda: two.knows("model@1"), seconds_max=SECONDS_MAX)
    with two.mounted() as mount:
        assert (mount.version("model", 1) / FILE).read_bytes() == (source / FILE).read_bytes()


def test_a_new_origin_gets_all_that_its_nodes_published(cluster, pair, tmp_path):
    one, two = pair
    source = model_at(tmp_path / "source")
    cluster.publish(one, source, "model")
    cluster.origin.rename(tmp_path / "lost")
    cluster.origin.mkdir()
    one.store.weft("stage-out", "--new-origin")
    two.store.weft("stage-out", "--new-origin")
    assert one.store.json("du", "--origin")["versions"] == 1
    with two.mounted() as mount:
        assert (mount.version("model", 1) / FILE).read_bytes() == (source / FILE).read_bytes()
    one.daemon.stop()
    one.store.assert_sound()


def test_a_new_origin_is_not_waited_for_with_bytes_that_only_the_one_of_before_has(cluster, pair, tmp_path):
    """Who waits is told which version lacks them; the others get there."""
    one, _ = pair
    cluster.publish(one, model_at(tmp_path / "gone", random_tensors(2, 1 << 20, seed="gone")), "gone")
    one.store.weft("stage-out", "--evictable", "gone@1")
    assert one.store.json("evict", "--all")["disk_bytes"] > 0
    one.store.publish(model_at(tmp_path / "kept", random_tensors(2, 1 << 20, seed="kept")), name="kept")
    one.store.weft("stage-out")
    cluster.origin.rename(tmp_path / "real")
    cluster.origin.mkdir()
    for arguments in (["--new-origin"], [], ["gone@1"]):
        refused = one.store.weft("stage-out", *arguments, check=False)
        assert refused.returncode != 0
        assert "gone@1: " in refused.stderr and "are neither here nor at the origin" in refused.stderr
    assert len(list((cluster.origin / "places").iterdir())) == 1
    one.store.weft("stage-out", "kept@1")


def versions_at(origin):
    return len(list((origin / "places").iterdir()))


@pytest.mark.parametrize("words, waits", [(["--durability", "origin"], True), (["--durability", "local"], False),
                                          ([], False)])
def test_an_import_waits_for_the_origin_when_told_to(cluster, pair, tmp_path, words, waits):
    one, _ = pair
    one.store.weft("import", model_at(tmp_path / "first"), "--name", "first", *words)
    if waits:
        assert versions_at(cluster.origin) == 1
    one.store.weft("stage-out")
    cluster.origin.rename(tmp_path / "real")
    cluster.origin.mkdir()  # it is not mounted: nothing gets there
    done = one.store.weft("import", model_at(tmp_path / "second"), "--name", "second", *words, check=False)
    assert (done.returncode != 0) == waits, done.stderr
    assert one.knows("second@1")
    cluster.origin.rmdir()
    (tmp_path / "real").rename(cluster.origin)
    one.store.weft("stage-out")
    assert versions_at(cluster.origin) == 2


def test_status_tells_what_has_gone_to_the_origin(cluster, pair, tmp_path):
    one, _ = pair
    tensors = random_tensors(6, 3 << 20, seed="behind")
    seen = []

    def saved(count):
        seen.append(one.daemon.status()["write_behind"])
        return seen[-1]["versions_saved"] == count

    one.store.publish(model_at(tmp_path / "first", tensors), name="first")
    wait_until(lambda: saved(1), seconds_max=SECONDS_MAX)
    written = [status["bytes_written"] for status in seen]
    assert written == sorted(written)
    assert size_of(tensors) <= written[-1] <= size_of(tensors) * 1.02 + 65536
    wait_until(lambda: one.daemon.status()["write_behind"]["active"] == "", seconds_max=SECONDS_MAX)
    assert seen[-1]["problem"] == ""
    other = random_tensors(6, 3 << 20, seed="other")
    one.store.publish(model_at(tmp_path / "second", tensors | {"layer.2.weight": other["layer.2.weight"]}), name="second")
    wait_until(lambda: saved(2), seconds_max=SECONDS_MAX)
    assert 3 << 20 <= seen[-1]["bytes_written"] - written[-1] <= (3 << 20) + 65536
    wait_until(lambda: one.daemon.status()["write_behind"]["waiting"] == 0, seconds_max=SECONDS_MAX)
