"""Part `idle` of the net bench: what a weftd takes that has sessions open with two others and hears the registry, and has
nothing to do; with each provider."""

import time

from net_nodes import MIB, PROVIDERS, Cluster, publish, random_tensors, tree_seconds, write_model

NODES = 3
SECONDS = 15
CORE_PART_MAX = 0.01


def parts_of_a_core(directory, provider):
    """Of each node's daemon."""
    with Cluster(directory, peers=True) as cluster:
        nodes = [cluster.node("--provider", provider) for _ in range(NODES)]
        for i, node in enumerate(nodes):
            publish(cluster, node, write_model(directory / f"model{i}", random_tensors(4, MIB, seed=f"idle {i}")), f"m{i}")
        for node in nodes:
            for i in range(NODES):
                node.store.weft("prefetch", f"m{i}")
        time.sleep(2)  # what they have is told
        if any(node.exchange()["sessions"] < 2 or not node.daemon.status()["registry"]["connected"] for node in nodes):
            raise RuntimeError("expected sessions between all, and the registry's watch")
        before = [tree_seconds([node.daemon.pid]) for node in nodes]
        time.sleep(SECONDS)
        return [(tree_seconds([node.daemon.pid]) - used) / SECONDS for node, used in zip(nodes, before)]


def run(_build, directory, _args):
    print(f"| {NODES} nodes with sessions and the registry's watch, idle for {SECONDS} s | the busiest weftd, of one core "
          "| goal | met |\n|---|---|---|---|")
    for number, provider in enumerate(PROVIDERS):
        where = directory / str(number)
        where.mkdir()
        most = max(parts_of_a_core(where, provider))
        print(f"| {provider} | {most:.2%} | ≤ 1 % | {'yes' if most <= CORE_PART_MAX else 'NO'} |", flush=True)
