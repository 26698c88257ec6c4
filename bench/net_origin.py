"""Part `origin` of the net bench: the same cold read through the origin alone, against through a peer."""

import contextlib

from measure import PAIR_HEAD, Pairs
from net_nodes import FILE, MIB, Account, Cluster, cat, cold_mount, publish, random_tensors, write_model


def run(_build, directory, args):
    model = write_model(directory / "model", random_tensors(16, args.megabytes // 16 * MIB, seed="origin"))
    reads, accounts = [], []
    with contextlib.ExitStack() as stack:
        for peers in (True, False):
            where = directory / ("peers" if peers else "origin-only")
            where.mkdir()
            cluster = stack.enter_context(Cluster(where, peers=peers))
            provider = ["--provider", args.provider] if peers else []
            one, two = (cluster.node(*provider) for _ in range(2))
            if peers:
                publish(cluster, one, model, "model")
            else:
                cluster.publish(one, model, "model")
            accounts.append(Account())

            def read(nodes=(one, two), account=accounts[-1]):
                with cold_mount(nodes[1], moves=args.megabytes * MIB) as mount, account.measured_mount(mount, *nodes):
                    return cat(mount.version("model", 1) / FILE)
            reads.append(read)
        pairs = Pairs.alternate(args.pairs, *reads, warm_up=1)
    print(PAIR_HEAD)
    print(pairs.row(f"{args.megabytes} MiB from a peer; peer: the same from the origin, a directory of this machine"))
    for name, account in zip(("from a peer", "from the origin"), accounts):
        print(f"- {name}: {account.text()}", flush=True)
