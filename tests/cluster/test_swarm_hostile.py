"""Hostile members of a swarm, which hold the cluster's key, against real daemons: all other nodes get the right bytes,
the log names the node that gave wrong ones, and memory stays bounded."""
import contextlib
import threading

import pytest

from clusterlib import Wire, can_make_networks
from nodes import SECONDS_MAX, resident
from strangers import HOSTILE_PEER, heard, impostor, node_id, staying
from swarmlib import (COPIES_MAX, MIB, MODEL_BYTES, all_fetch, copies, evict, fetch, fetching, introduces, of_version,
                      ranked, reads_right, swarms)
from weftlib import PATIENCE, wait_until

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
WANTS_OPEN = 12  # of one node, for one version
REQUESTS = 10_000
ASKERS = 64  # nodes that the requests come from
NEWCOMERS = 500  # nodes that join at once
JOIN_BYTES_MAX = 8 << 10  # that a directory node sends to one of them
BAD_SETS = ("oversized", "undersized", "beyond")  # of units, in a request
REQUESTS_MEMORY_MAX = (16 << 20) * PATIENCE ** 2  # more than before, whatever is asked; a sanitizer keeps what is freed
VERSIONS_MAX = 1024  # that a directory node keeps members of

PARTNER_FAULTS = {  # of hostile_member.h: whether it offers units, and whether askers decline units
    "unit-none": (False, False),
    "unit-silent": (False, False),
    "unit-wrong": (True, False),
    "unit-short": (True, False),
    "unit-long": (True, False),
    "unit-unknown": (True, True),
    "unit-held": (True, True),
}
DIRECTORY_FAULTS = {  # of hostile_member.h: whether a node accepts the answer, and does not ask the next directory node
    "join-nobody": True,
    "join-silent": False,
    "join-strangers": True,
    "join-asker": True,
    "join-sources": True,
    "join-crowd": False,
}


def all_end_right(nodes, source):
    all_fetch(nodes)
    for node in nodes:
        assert node.daemon.alive()
        reads_right(node, source)
        node.store.assert_sound()


def named(node, liar):
    """Lines of its log that name the node with this id as the giver of wrong bytes."""
    return node.daemon.said().count(f": {liar} gave bytes with another digest")


@pytest.mark.parametrize("fault", PARTNER_FAULTS)
def test_a_partner_with_a_fault_gives_nothing_and_others_give_its_units(swarm, fault):
    holder, others, source = swarm
    *nodes, liar = ranked(holder, others)
    fetch(liar)  # it has all units
    ids, liar_id, before = [node_id(node) for node in nodes], node_id(liar), Wire(holder.host).sent
    with impostor(holder.cluster, liar, fault, directories=nodes[:1]) as program:
        all_end_right(nodes, source)
        asked = heard(program)
    assert copies(holder, before) <= COPIES_MAX + 1
    assert set(ids) <= set(asked["wants"])
    offers, declined = PARTNER_FAULTS[fault]
    assert (asked["offers"] > 0) == offers
    versions = [one for node in nodes for one in swarms(node)["fetched"]]
    assert all(of_version(one) > one["units"] / 2 for one in versions)  # they did not leave the swarm for the holder
    assert not declined or any(one["declined"] > 0 for one in versions)
    assert [named(node, liar_id) for node in nodes] == [int(fault == "unit-wrong")] * len(nodes)
    if fault == "unit-wrong":
        assert all(asked["wants"][one] <= 3 * WANTS_OPEN for one in ids)


@pytest.mark.parametrize("fault", DIRECTORY_FAULTS)
def test_a_directory_node_with_a_fault_costs_nobody_the_bytes(swarm, fault):
    holder, others, source = swarm
    liar, *nodes = ranked(holder, others)
    with impostor(holder.cluster, liar, fault) as program:
        all_end_right(nodes, source)
        assert heard(program)["joins"] >= len(nodes)
        assert introduces(nodes[0]) or DIRECTORY_FAULTS[fault]  # the next directory node


def test_a_node_that_announces_a_version_and_lacks_it_costs_nobody_the_bytes(swarm):
    """It is named as the source: the publisher is away, and the other holder comes after it."""
    holder, others, source = swarm
    *readers, first, second = ranked(holder, others)
    liar, honest = sorted((first, second), key=node_id)
    ids = {node_id(node) for node in readers}
    all_fetch([liar, honest])
    holder.daemon.stop()
    wait_until(lambda: all(len(node.daemon.ask("peers")["peers"]) == len(others) for node in others),
               seconds_max=SECONDS_MAX, pause=0.1)
    with impostor(holder.cluster, liar, "whole-lacking", readers) as program:
        served = honest.exchange()["served_bytes"]
        all_end_right(readers, source)
        assert ids & set(heard(program)["wants"])
        wait_until(lambda: honest.exchange()["served_bytes"] - served >= MODEL_BYTES, seconds_max=SECONDS_MAX,
                   pause=0.05)


@contextlib.contextmanager
def watched(node):
    """A list of one number: the most memory in bytes that its daemon took so far."""
    most, over = [resident(node)], threading.Event()

    def look():
        while not over.wait(0.02):
            most[0] = max(most[0], resident(node))
    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()


def asking(attacker, victim, what, count, holder):
    """A program on the attacker's host that has made many requests of the victim about the holder's version, and keeps
    their sessions."""
    exchange, cluster = victim.exchange(), victim.cluster
    return staying(attacker, HOSTILE_PEER, "ask", what, count, holder.store.path, cluster.key, exchange["provider"],
                   attacker.host.address, node_id(victim), exchange["address"])


@pytest.mark.parametrize("what", ["unknown", *BAD_SETS, "unclosed", "joins"])
def test_many_requests_cost_little_memory_and_keep_nobody_out(swarm, what):
    victim, (reader, attacker, *_), source = swarm
    fetch(reader)  # memory that the victim needs to serve a node is no growth
    evict(reader)
    memory, busy = resident(victim), victim.exchange()["busy"]
    with watched(victim) as most, asking(attacker, victim, what, REQUESTS, victim) as program:
        assert heard(program)["requests"] == REQUESTS
        wait_until(lambda: heard(program)["heard"] >= REQUESTS / 2, seconds_max=SECONDS_MAX, pause=0.05)
        if what == "unclosed":
            assert victim.exchange()["windows"] > 0
        else:  # most were not refused unseen
            assert victim.exchange()["busy"] - busy < REQUESTS / 2
        if what in BAD_SETS:
            wait_until(lambda: heard(program)["invalid"] >= REQUESTS / 10, seconds_max=SECONDS_MAX, pause=0.05)
        if what in ("unknown", *BAD_SETS):
            assert heard(program)["given"] == 0
        if what == "joins":
            assert 0 < len(swarms(victim)["introduced"]) <= VERSIONS_MAX
        all_end_right([reader], source)
    assert most[0] - memory < REQUESTS_MEMORY_MAX
    assert victim.daemon.alive()
    wait_until(lambda: victim.exchange()["windows"] == 0, seconds_max=SECONDS_MAX, pause=0.05)


def test_a_node_that_takes_units_again_and_again_and_gives_none_keeps_nobody_out(swarm):
    """It says that it is hungry and has none, however many it took. The source has sent each unit to it at first."""
    victim, (reader, attacker, *_), source = swarm
    fetch(reader)
    evict(reader)
    memory, before = resident(victim), Wire(victim.host).sent
    with watched(victim) as most, asking(attacker, victim, "takes", ASKERS * WANTS_OPEN, victim) as program:
        wait_until(lambda: heard(program)["given"] > 2 * MODEL_BYTES / MIB, seconds_max=SECONDS_MAX, pause=0.05)
        all_end_right([reader], source)
    assert copies(victim, before) <= COPIES_MAX + 1
    assert most[0] - memory < REQUESTS_MEMORY_MAX
    assert victim.daemon.alive()
    wait_until(lambda: victim.exchange()["windows"] == 0, seconds_max=SECONDS_MAX, pause=0.05)


def test_five_hundred_nodes_join_at_once_and_each_is_introduced(swarm):
    """None of them is a member of the cluster. One reader joins before them, and another one after them."""
    holder, others, source = swarm
    victim, early, late, attacker = ranked(holder, others)
    memory, before, answered = resident(victim), Wire(holder.host).sent, Wire(victim.host).sent
    joining = asking(attacker, victim, "newcomers", NEWCOMERS, holder)
    with fetching([early]), watched(victim) as most, joining as program:
        wait_until(lambda: sum(heard(program)[one] for one in ("answers", "busy")) == NEWCOMERS,
                   seconds_max=SECONDS_MAX, pause=0.05)
        answers, given = (heard(program)[one] for one in ("answers", "given"))
        assert answers > NEWCOMERS * 0.9
        assert given >= answers - 1  # all but one that came before all others
        assert max(one["members"] for one in swarms(victim)["introduced"]) >= answers
        assert Wire(victim.host).sent - answered <= NEWCOMERS * JOIN_BYTES_MAX
        all_end_right([late], source)
    assert copies(holder, before) <= COPIES_MAX + 1
    assert f"{node_id(late)} is introduced to" in victim.daemon.said()
    assert most[0] - memory < REQUESTS_MEMORY_MAX
    all_end_right([early], source)
