"""Nodes that fetch one version at once give it to each other: src/swarm/README.md."""
import concurrent.futures
import contextlib
import re
import signal
import sys

import pytest

from clusterlib import DATAGRAMS, PROVIDERS, Wire, can_make_networks
from daemonlib import metrics
from links import unplugged
from nodes import MODEL_FILE, SECONDS_MAX, SILENCE_SECONDS, Cluster
from readers import Reading
from swarmlib import (COPIES_MAX, GIVERS, MIB, MODEL_BYTES, NODES, SLOW_LINK, TENSOR_BYTES, TENSORS, all_fetch, copies,
                      directory_nodes, end, evict, fetch, fetching, has_share, introduces, of_version, reads_right, received,
                      shape, swarms, write_source)
from weftlib import run, wait_until

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
LARGE_TENSORS = 64  # of a version that takes long
# No read fails, and the node stays in its swarm. It leaves a swarm that gives nothing for half of the silence, and TCP
# may need as long again as the cut to notice that the link is back.
CUT_SECONDS_MAX = SILENCE_SECONDS / 5
# Maps a file, and prints its first MiB.
MAPS = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    sys.stdout.buffer.write(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)[:1 << 20])
"""
over_both_providers = pytest.mark.parametrize("swarm", [PROVIDERS[0], DATAGRAMS], indirect=True)


@pytest.fixture
def without_holder(tmp_path):
    """(nodes, source of model@1), over slow links. The version is at the origin alone, and its publisher is away."""
    with Cluster(tmp_path, origin=tmp_path / "origin", peers=True) as cluster:
        publisher, *others = cluster.some(NODES)
        source = write_source(tmp_path / "source")
        cluster.publish(publisher, source, "model")
        publisher.daemon.stop()
        wait_until(lambda: all(len(node.daemon.ask("peers")["peers"]) == len(others) for node in others),
                   seconds_max=SECONDS_MAX, pause=0.1)
        shape(others)
        yield others, source


def received_in_all(node):
    """Units of all versions that came by a swarm, since the daemon started."""
    samples = metrics(node.daemon.ask("metrics")["text"])
    return sum(samples[f'weft_swarm_units_received_total{{from="{giver}"}}'] for giver in GIVERS)


def is_done(node):
    return all(one["done"] for one in swarms(node)["fetched"])


def named(node):
    """Units that the node has named as the clerk of the origin."""
    return sum(one["sent"] for one in swarms(node)["named"])


def begun(nodes, model="model"):
    """`weft prefetch` of the version, beside, by node."""
    return {node: node.store.start("prefetch", f"{model}@1") for node in nodes}


@contextlib.contextmanager
def doomed(nodes):
    """Each node fetches the version, whatever comes of it."""
    processes = []
    try:
        processes += begun(nodes).values()
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@over_both_providers
def test_the_holder_sends_a_version_about_once(swarm):
    holder, others, source = swarm
    before = Wire(holder.host).sent
    all_fetch(others)
    assert copies(holder, before) <= COPIES_MAX
    for node in others:
        assert received(node) > 0 and node.daemon.status()["fetched"]["transfers"] == 0
    sent = [sum(one["sent"] for one in swarms(node)["sent"]) for node in others]
    assert sum(sent) > MODEL_BYTES // MIB  # they gave each other more than one version
    for node in others:
        reads_right(node, source)


def lines(node, manifest, part):
    """Of its log about the swarm of the version, with this part."""
    return [line for line in node.daemon.said().splitlines() if f"swarm of manifest {manifest}: " in line and part in line]


def test_status_and_metrics_and_the_log_tell_of_a_swarm(swarm):
    holder, others, _ = swarm
    all_fetch(others)
    for node in others:
        (version,) = swarms(node)["fetched"]
        assert version["version"] == "model@1" and 0 < version["here"] <= version["units"]
        samples = metrics(node.daemon.ask("metrics")["text"])
        assert received_in_all(node) >= of_version(version) > 0
        assert samples["weft_swarms"] == 1 and samples["weft_swarm_hungry"] == 0
        assert samples["weft_swarm_partners"] > 0 and samples["weft_swarm_units_held"] >= version["here"]
        line = rf"swarm     model@1: \d+ of {version['units']} units, \d+ partners?, \d+ received"
        assert re.search(line, node.store.weft("status", "--all").stdout)
        manifest, units = version["manifest"], version["units"]
        for part, line in [(" introduces ", r"\S+ introduces \d+ nodes to this one, source: \S+$"),
                           ("the first unit", rf"the first unit, \d+ of {units}, came from \S+$"),
                           ("lacks no unit", r"lacks no unit any more, has received \d+ and declined \d+$")]:
            said = lines(node, manifest, part)
            assert said and all(re.search(f": {line}", one) for one in said), part
    for giver in ("from_partners", "from_source"):
        assert any(one[giver] > 0 for node in others for one in swarms(node)["fetched"])
    assert metrics(holder.daemon.ask("metrics")["text"])["weft_swarm_units_sent_total"] > 0
    introduced = {node: swarms(node)["introduced"] for node in [holder, *others]}
    assert sum(map(len, introduced.values())) >= 1
    for node, versions in introduced.items():
        samples = metrics(node.daemon.ask("metrics")["text"])
        assert samples["weft_swarm_introduced"] == sum(one["members"] for one in versions)


@over_both_providers
def test_readers_in_order_share_a_version_too(swarm):
    holder, others, source = swarm
    before = Wire(holder.host).sent
    with concurrent.futures.ThreadPoolExecutor(len(others)) as pool:
        for done in [pool.submit(reads_right, node, source) for node in others]:
            done.result()
    assert copies(holder, before) <= COPIES_MAX


@pytest.mark.parametrize("share", [0.05, 0.5, 0.7])
@pytest.mark.parametrize("how", ["killed", "ended", "stopped"])
def test_a_receiver_that_ends_delays_nobody_for_ever(swarm, how, share):
    """Once it has this share of the version."""
    holder, (victim, *others), source = swarm
    before, lost = Wire(holder.host).sent, Wire(victim.host).received
    with doomed([victim]), Reading(others) as reading:
        reading.compare(source, "model")
        wait_until(lambda: has_share(victim, share), seconds_max=SECONDS_MAX, pause=0.02)
        assert not is_done(victim)
        if how == "killed":
            victim.daemon.kill()
        elif how == "ended":
            victim.daemon.signal(signal.SIGTERM)
        else:
            victim.daemon.signal(signal.SIGSTOP)
        try:
            assert reading.problems(SECONDS_MAX) == []
        finally:
            if how == "stopped":
                victim.daemon.signal(signal.SIGCONT)
    assert how != "ended" or victim.daemon.wait() == 0
    lost = (Wire(victim.host).received - lost) / MODEL_BYTES
    assert copies(holder, before) <= COPIES_MAX + lost


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_a_receiver_that_is_cut_off_for_a_while_ends_too(swarm, share):
    holder, (victim, *others), source = swarm
    before, lost = Wire(holder.host).sent, Wire(victim.host).received
    with Reading([victim, *others]) as reading:
        reading.compare(source, "model")
        wait_until(lambda: has_share(victim, share), seconds_max=SECONDS_MAX, pause=0.02)
        assert not is_done(victim)
        with unplugged(victim.host, victim.host.cut), contextlib.suppress(AssertionError):
            lost = Wire(victim.host).received - lost  # bytes that the others cannot get from the victim
            wait_until(lambda: all(read.is_over() for read in reading.reads[1:]), seconds_max=CUT_SECONDS_MAX, pause=0.02)
        assert reading.problems(SECONDS_MAX) == []
    assert copies(holder, before) <= COPIES_MAX + lost / MODEL_BYTES


@over_both_providers
def test_a_late_node_joins(swarm):
    holder, (late, *others), source = swarm
    with fetching(others):
        wait_until(lambda: received(others[0]) > 8, seconds_max=SECONDS_MAX, pause=0.02)
        before = Wire(holder.host).sent
        fetch(late)
    assert copies(holder, before) <= 1
    reads_right(late, source)


@pytest.mark.parametrize("program", [["head", "-c", MIB], [sys.executable, "-c", MAPS]], ids=["read", "page faults"])
def test_a_late_reader_gets_the_first_bytes_before_the_others_have_half(swarm, program, tmp_path):
    holder, (late, *others), _ = swarm
    source = write_source(tmp_path / "large", LARGE_TENSORS)
    holder.cluster.publish(holder, source, "large")
    shape([holder, *others], SLOW_LINK)  # half of the version takes longer than a reader takes to begin
    before = Wire(holder.host).sent
    with late.mounted() as mount, fetching(others, "large"):
        wait_until(lambda: received(others[0], "large") > 8, seconds_max=SECONDS_MAX, pause=0.02)
        first = run([*program, mount.version("large", 1) / MODEL_FILE], text=False).stdout
        assert not any(has_share(node, 0.5) for node in others)
        assert received(late, "large") > 0
    assert copies(holder, before, LARGE_TENSORS * TENSOR_BYTES) <= COPIES_MAX
    with (source / MODEL_FILE).open("rb") as file:
        assert first == file.read(MIB)


@pytest.mark.parametrize("count", [1, 2])
def test_directory_nodes_are_killed_while_all_read(swarm, count):
    """Of the two nodes that introduce others: the one that did, or both."""
    holder, others, source = swarm
    victims = directory_nodes(holder, others)[:count]
    kept = [node for node in others if node not in victims]
    before, lost = Wire(holder.host).sent, sum(Wire(node.host).received for node in victims)
    with doomed(victims), Reading(kept) as reading:
        reading.compare(source, "model")
        wait_until(lambda: all(received(node) > 2 for node in others), seconds_max=SECONDS_MAX, pause=0.02)
        assert introduces(victims[0]) and not any(map(is_done, kept))
        for victim in victims:
            victim.daemon.kill()
        assert reading.problems(SECONDS_MAX) == []
    lost = (sum(Wire(node.host).received for node in victims) - lost) / MODEL_BYTES
    assert copies(holder, before) <= COPIES_MAX + lost


@pytest.mark.parametrize("when", ["one node has everything", "each unit was sent once"])
def test_the_source_is_killed_when_the_others_have_everything(swarm, when):
    """One of them, or all of them together. The others then get the rest from them."""
    holder, others, source = swarm
    before = Wire(holder.host).sent
    fetches = begun(others)

    def has_come():
        if when == "one node has everything":
            return any(process.poll() is not None for process in fetches.values())
        return any(one["sent"] >= one["units"] for one in swarms(holder)["sent"])

    wait_until(has_come, seconds_max=SECONDS_MAX, pause=0.01)
    holder.daemon.kill()
    for process in fetches.values():
        code, said = end(process)
        assert code == 0, said
    assert copies(holder, before) <= COPIES_MAX
    for node in others:
        reads_right(node, source)


def test_a_version_is_removed_while_it_is_fetched(swarm):
    """Each fetch ends, with the bytes or an error, and the same bytes come as another version."""
    holder, others, source = swarm
    before = Wire(holder.host).sent
    fetches = begun(others)
    wait_until(lambda: received(others[0]) > 4, seconds_max=SECONDS_MAX, pause=0.02)
    holder.store.weft("rm", "--force", "model@1")
    for process in fetches.values():
        end(process)
    assert copies(holder, before) <= COPIES_MAX
    holder.cluster.publish(holder, source, "again")
    before = Wire(holder.host).sent
    all_fetch(others, "again")
    assert copies(holder, before) <= COPIES_MAX
    for node in others:
        assert node.daemon.alive()
        reads_right(node, source, "again")


def test_the_holder_sends_a_version_about_once_more_after_one_node_has_read_and_evicted_it(swarm):
    """The holder has sent each unit by then, and no node has any."""
    holder, others, source = swarm
    fetch(others[0])
    evict(others[0])
    before, units = Wire(holder.host).sent, received_in_all(others[0])
    with Reading(others) as reading:
        reading.compare(source, "model")
        assert reading.problems(SECONDS_MAX) == []
    assert copies(holder, before) <= COPIES_MAX
    assert received_in_all(others[0]) - units >= MODEL_BYTES / MIB


@pytest.mark.parametrize("sharing", [False, True])
def test_a_node_that_evicts_a_version_gets_it_by_the_swarm_again(swarm, sharing):
    """At once: from the holder if it alone has the bytes, or else also from other nodes."""
    holder, (late, *others), source = swarm
    all_fetch([late, *others] if sharing else [late])
    evict(late)
    before, units, came = Wire(holder.host).sent, received_in_all(late), late.fetched()
    reads_right(late, source)
    units, came = received_in_all(late) - units, late.fetched() - came
    assert units >= MODEL_BYTES / MIB
    assert came <= (units + 1) * MIB  # nothing came by another way
    assert copies(holder, before) <= (1 if sharing else COPIES_MAX)


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_a_node_rejoins_with_half_of_the_version(swarm, how):
    holder, (late, *others), source = swarm
    before, lost = Wire(holder.host).sent, Wire(late.host).received
    fetches = begun([late, *others])
    wait_until(lambda: has_share(late, 0.5), seconds_max=SECONDS_MAX, pause=0.02)
    if how == "killed":
        late.daemon.kill()
    else:
        late.daemon.stop()
    lost = Wire(late.host).received - lost  # bytes that the holder may have to send again
    end(fetches.pop(late))
    late.daemon.start()
    fetch(late)
    for process in fetches.values():
        code, said = end(process)
        assert code == 0, said
    assert copies(holder, before) <= COPIES_MAX + lost / MODEL_BYTES
    for node in [late, *others]:
        reads_right(node, source)


@pytest.mark.parametrize("what", ["cache", "disk"])
def test_a_full_receiver_reads_right_and_delays_nobody(swarm, tmp_path, what):
    holder, others, source = swarm
    with contextlib.ExitStack() as stack:
        if what == "cache":
            full = holder.cluster.node("--cache-max", "16M")
        else:
            small = tmp_path / "small"
            small.mkdir()
            run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", small])
            stack.callback(run, ["umount", "-l", small])
            full = holder.cluster.node(path=small)
        wait_until(lambda: full.knows("model@1"), seconds_max=SECONDS_MAX, pause=0.05)
        shape([full])
        before = Wire(holder.host).sent
        with fetching(others):
            reads_right(full, source)
        assert copies(holder, before) <= COPIES_MAX + 1  # the full node reads a copy of its own
        assert full.daemon.alive()
        for node in others:
            reads_right(node, source)


def test_a_version_without_a_holder_is_read_from_the_origin_about_once(without_holder):
    others, source = without_holder
    all_fetch(others)
    read = [node.fetched("origin") for node in others]
    assert MODEL_BYTES <= sum(read) <= COPIES_MAX * MODEL_BYTES
    assert all(node.fetched("peer") > 0 for node in others)
    assert sum(map(named, others)) > TENSORS
    assert sum(metrics(node.daemon.ask("metrics")["text"])["weft_swarm_units_named_total"] for node in others) > TENSORS
    for node in others:
        reads_right(node, source)
        node.store.assert_sound()


def test_a_clerk_of_the_origin_dies(without_holder):
    """The next clerk does not know which units the first one has named, and names each about once."""
    others, source = without_holder
    calls = [(node, node.store.start("prefetch", "model@1")) for node in others]
    wait_until(lambda: any(named(node) > 2 for node in others), seconds_max=SECONDS_MAX, pause=0.02)
    clerk = next(node for node in others if named(node) > 2)
    clerk.daemon.kill()
    for node, call in calls:
        _, said = call.communicate(timeout=SECONDS_MAX)
        assert node is clerk or call.returncode == 0, said
    others.remove(clerk)
    assert sum(node.fetched("origin") for node in others) <= 2 * COPIES_MAX * MODEL_BYTES
    for node in others:
        reads_right(node, source)
