"""A version that changes few elements of every tensor moves as differences from a version that the reader's node has."""
import numpy
import pytest

from clusterlib import can_make_networks
from nodes import SECONDS_MAX, Cluster
from strangers import impostor
from weftlib import wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
FILE = "model.safetensors"
TENSORS, TENSOR_BYTES = 6, 3 << 20
BYTES = TENSORS * TENSOR_BYTES
LARGE_BYTES = 40 << 20  # of a tensor of which a part changes


def weights(seed):
    """Tensors of bf16 by name, as weftlib writes them."""
    random = numpy.random.default_rng(seed)
    made = {}
    for number in range(TENSORS):
        values = random.normal(0, 0.03, TENSOR_BYTES // 2).astype(numpy.float32)
        made[f"layer.{number}.weight"] = (values.view(numpy.uint32) >> 16).astype(numpy.uint16)
    return made


def noise(seed):
    """As weights(), but of random bits: no coding of them pays, on a link of any speed."""
    random = numpy.random.default_rng(seed)
    return {name: random.integers(0, 1 << 16, values.size, numpy.uint16) for name, values in weights(seed).items()}


def step(before, seed, share=0.01):
    """As a training step: this share of the elements changes by one unit in the last place."""
    random = numpy.random.default_rng(seed)
    after = {}
    for name, values in before.items():
        changed = random.random(values.size) < share
        after[name] = values + (changed * random.choice([1, 0xFFFF], values.size)).astype(numpy.uint16)
    return after


def written(path, tensors):
    return write_model(path, {name: ("BF16", [values.size], values.tobytes()) for name, values in tensors.items()})


def sparse(node):
    return node.daemon.status()["sparse"]


def served(node):
    return node.exchange()["served_bytes"]


def reads_equal(node, source, number, name="model"):
    with node.mounted() as mount:
        assert (mount.version(name, number) / FILE).read_bytes() == (source / FILE).read_bytes()


def publish_steps(cluster, node, directory, count):
    """Versions 1 to `count`, each a step from the one before. Returns their sources, from number 1 on."""
    tensors = weights(1)
    sources = [None]
    for number in range(1, count + 1):
        sources.append(written(directory / f"step {number}", tensors))
        cluster.publish(node, sources[-1], "model")
        tensors = step(tensors, number)
    return sources


def test_a_step_moves_as_a_difference_and_a_relay_does_not_code_it_again(cluster, three, tmp_path):
    tensors = weights(1)
    cluster.publish(three[0], written(tmp_path / "1", tensors), "model")
    for node in three[1:]:
        node.store.weft("prefetch", "model@1")
    source = written(tmp_path / "2", step(tensors, 2))
    cluster.publish(three[0], source, "model")
    before = served(three[0])
    reads_equal(three[1], source, 2)
    now = sparse(three[1])
    assert now["version"] == "model@2" and now["base"] == "model@1"
    assert now["coded"] == now["asked"] == TENSORS * TENSOR_BYTES >> 20
    assert now["failed"] == now["plain"] == 0
    assert now["version_bytes"] == BYTES
    assert now["version_given_bytes"] < BYTES / 100
    assert 9000 < now["version_changed_ppm"] < 11000
    assert served(three[0]) - before < BYTES / 50
    assert sparse(three[0])["coded_here"] == now["coded"]
    three[1].holds("model@2")
    reads_equal(three[2], source, 2)
    assert sparse(three[2])["coded"] == now["coded"]
    assert sparse(three[0])["coded_here"] == now["coded"]
    assert sparse(three[1])["coded_here"] == 0
    for node in three:
        node.store.assert_sound()


def publish_steps(cluster, node, directory, count, name="model", **options):
    """Versions 1 to `count`, each a step from the one before; their sources, from 1 on."""
    tensors = weights(1)
    sources = [None]
    for number in range(1, count + 1):
        sources.append(written(directory / f"{name} {number}", tensors))
        cluster.publish(node, sources[-1], name, **options)
        tensors = step(tensors, number)
    return sources


def test_a_base_is_the_nearest_version_that_is_here_or_a_parent(cluster, three, tmp_path):
    sources = publish_steps(cluster, three[0], tmp_path, 4)
    taker = three[1]
    taker.store.weft("prefetch", "model@1")
    reads_equal(taker, sources[4], 4)
    assert sparse(taker)["base"] == "model@1"
    taker.store.weft("evict", "model@1")
    reads_equal(taker, sources[3], 3)
    assert sparse(taker)["base"] == "model@4"
    reads_equal(taker, sources[2], 2)
    assert sparse(taker)["base"] == "model@3"
    child = written(tmp_path / "child", step(weights(1), 9))
    cluster.publish(three[0], child, "other", parent="model@2")
    before = taker.exchange()["read_bytes"]
    reads_equal(taker, child, 1, name="other")
    assert sparse(taker)["version"] == "other@1" and sparse(taker)["base"] == "model@2"
    assert taker.exchange()["read_bytes"] - before < BYTES / 20
    assert sparse(taker)["failed"] == 0


def test_never_is_never(cluster, tmp_path):
    giver, taker = cluster.node(), cluster.node("--sparse", "never")
    sources = publish_steps(cluster, giver, tmp_path, 2)
    taker.store.weft("prefetch", "model@1")
    reads_equal(taker, sources[2], 2)
    assert sparse(taker)["asked"] == 0
    assert taker.fetched() >= 2 * BYTES


def test_unlike_content_comes_plain_and_says_how_much_changed(cluster, three, tmp_path):
    cluster.publish(three[0], written(tmp_path / "1", weights(1)), "model")
    three[1].store.weft("prefetch", "model@1")
    other = written(tmp_path / "2", noise(2))
    cluster.publish(three[0], other, "model")
    reads_equal(three[1], other, 2)
    now = sparse(three[1])
    assert now["plain"] == now["asked"] > 0 and now["failed"] == 0
    assert now["version_changed_ppm"] > 900_000


def test_a_lost_base_costs_bytes_and_nothing_else(cluster, three, tmp_path):
    sources = publish_steps(cluster, three[0], tmp_path, 3)
    taker = three[1]
    taker.store.weft("prefetch", "model@1")
    taker.store.weft("evict", "model@1")
    reads_equal(taker, sources[2], 2)
    assert sparse(taker)["asked"] == 0
    three[0].store.weft("rm", "model@2")
    for node in (three[0], taker):
        wait_until(lambda node=node: not node.knows("model@2"), seconds_max=SECONDS_MAX)
        node.store.weft("gc")
    reads_equal(taker, sources[3], 3)
    assert sparse(taker)["asked"] == 0
    for node in three[:2]:
        node.store.assert_sound()


def test_a_giver_without_the_base_gives_plain_bytes_and_another_with_it_is_found(cluster, three, tmp_path):
    first = written(tmp_path / "1", weights(1))
    cluster.publish(three[0], first, "model")
    three[2].store.weft("prefetch", "model@1")
    source = written(tmp_path / "2", step(weights(1), 2))
    cluster.publish(three[1], source, "model")  # which never had version 1
    reads_equal(three[0], source, 2)
    assert sparse(three[0])["plain"] == sparse(three[0])["asked"] > 0
    three[0].holds("model@2")
    with three[2].mounted() as mount:  # the first chunks: only then its daemon asks for other holders
        assert mount.at("model", 2, "tensors/layer.0.weight.npy").read_bytes()
    first = sparse(three[2])
    reads_equal(three[2], source, 2)
    now = sparse(three[2])
    assert now["coded"] - first["coded"] == now["asked"] - first["asked"] > 0 and now["failed"] == 0
    assert sparse(three[0])["coded_here"] > 0 and sparse(three[1])["coded_here"] == 0


def damage_packs(node):
    """Changes a byte in each 64 KiB of all packs."""
    for pack in (node.store.path / "packs").glob("*.pack"):
        mode = pack.stat().st_mode
        pack.chmod(0o600)
        with pack.open("r+b") as file:
            for at in range(1000, pack.stat().st_size, 65536):
                file.seek(at)
                byte = file.read(1)
                file.seek(at)
                file.write(bytes([byte[0] ^ 1]))
        pack.chmod(mode)


def partly_changed(values, seed, share=0.25):
    """The last part of it is new, and has nothing in common with what was there."""
    fresh = numpy.random.default_rng(seed).integers(0, 1 << 16, round(values.size * share), dtype=numpy.uint16)
    return numpy.concatenate([values[: values.size - fresh.size], fresh])


def publish_partly_changed(publish, directory):
    """Two versions of one large tensor; their sources."""
    before = numpy.random.default_rng(1).integers(0, 1 << 16, LARGE_BYTES // 2, dtype=numpy.uint16)
    sources = []
    for number, values in enumerate((before, partly_changed(before, 2)), 1):
        sources.append(written(directory / f"partly {number}", {"embed.weight": values}))
        publish(sources[-1])
    return sources


def test_chunks_that_did_not_change_are_not_asked_for(cluster, three, tmp_path):
    first, source = publish_partly_changed(lambda path: cluster.publish(three[0], path, "model"), tmp_path)
    taker = three[1]
    reads_equal(taker, first, 1)
    before = served(three[0])
    reads_equal(taker, source, 2)
    now = sparse(taker)
    assert 0.6 * LARGE_BYTES < now["version_same_bytes"] <= 0.75 * LARGE_BYTES
    assert served(three[0]) - before < 0.26 * LARGE_BYTES + (1 << 20)
    assert now["saved_bytes"] > 0.7 * LARGE_BYTES and now["failed"] == 0
    assert f'{now["base"]} {now["version"]}' == "model@1 model@2"
    reads_equal(three[2], source, 2)  # which has no base: all of it comes, from either
    for node in three:
        node.store.assert_sound()


def test_chunks_that_did_not_change_do_not_come_from_the_origin(tmp_path):
    with Cluster(tmp_path) as cluster:
        giver, taker = cluster.some(2)
        first, source = publish_partly_changed(lambda path: giver.store.publish(path, name="model", durability="origin"), tmp_path)
        wait_until(lambda: taker.knows("model@2"), seconds_max=SECONDS_MAX)
        reads_equal(taker, first, 1)
        before = taker.fetched("origin")
        reads_equal(taker, source, 2)
        assert taker.fetched("origin") - before < 0.3 * LARGE_BYTES
        taker.store.assert_sound()


def test_a_damaged_base_does_not_become_part_of_another_version(cluster, three, tmp_path):
    first, source = publish_partly_changed(lambda path: cluster.publish(three[0], path, "model"), tmp_path)
    taker = three[1]
    taker.store.weft("prefetch", "model@1")
    damage_packs(taker)
    reads_equal(taker, source, 2)
    assert sparse(taker)["version_same_bytes"] == 0
    wait_until(lambda: taker.store.weft("fsck", check=False).returncode == 0, seconds_max=SECONDS_MAX)
    reads_equal(taker, first, 1)


def test_a_damaged_base_is_found_repaired_and_nobody_reads_it(cluster, three, tmp_path):
    sources = publish_steps(cluster, three[0], tmp_path, 2)
    taker = three[1]
    taker.store.weft("prefetch", "model@1")
    damage_packs(taker)
    reads_equal(taker, sources[2], 2)
    assert sparse(taker)["failed"] > 0
    wait_until(lambda: taker.store.weft("fsck", check=False).returncode == 0, seconds_max=SECONDS_MAX)
    reads_equal(taker, sources[1], 1)


def test_a_giver_whose_base_is_damaged_is_asked_for_plain_bytes(cluster, three, tmp_path):
    first, second = (tmp_path / name for name in ("1", "2"))
    written(first, weights(1))
    cluster.publish(three[0], first, "model")
    for node in three[1:]:
        node.store.weft("prefetch", "model@1")
    damage_packs(three[1])
    written(second, step(weights(1), 2))
    cluster.publish(three[1], second, "model")
    reads_equal(three[2], second, 2)
    now = sparse(three[2])
    assert now["failed"] > 0
    three[2].store.assert_sound()


@pytest.mark.parametrize("fault", ["miscoded", "mistabled"])
def test_a_peer_that_codes_wrongly_gives_plain_bytes_from_then_on(cluster, three, tmp_path, fault):
    sources = publish_steps(cluster, three[0], tmp_path, 2)
    taker = three[1]
    taker.store.weft("prefetch", "model@1")
    taker.store.weft("info", "model@2")  # its manifest
    with impostor(cluster, three[0], fault):
        reads_equal(taker, sources[2], 2)
        now = sparse(taker)
        assert 0 < now["failed"] <= 16
        assert now["coded"] < BYTES >> 20
    taker.store.assert_sound()
