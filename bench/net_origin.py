"""Part `origin` of the net bench: the same cold reads through the origin alone, against through a peer."""

import contextlib
import os

from measure import PAIR_HEAD, Pairs
from net_nodes import FILE, MIB, Account, Cluster, cat, cold_mount, publish, random_tensors, write_model
from net_tensor import BLOCK, BYTES, read_seconds

LAYERS = 20  # one of them is 5 %


def whole(mount):
    return cat(mount.version("model", 1) / FILE)


def subset(mount):
    return cat(mount.tensors("model", 1) / "layer.7.weight.npy")


def tensors(mount):
    directory = mount.tensors("small", 1)
    os.listdir(directory)
    return sum(read_seconds(directory / f"layer.{i}.weight.npy") for i in range(BLOCK))


class Side:
    """Two nodes; the second reads what the first has published, from it or from the origin."""

    def __init__(self, directory, models, provider, stack):
        directory.mkdir()
        cluster = stack.enter_context(Cluster(directory, peers=provider is not None))
        words = ["--provider", provider] if provider else []
        self.nodes = [cluster.node(*words) for _ in range(2)]
        for name, model in models.items():
            (publish if provider else Cluster.publish)(cluster, self.nodes[0], model, name)

    def reads(self, way, moves):
        """A function that reads cold, and who took the CPU for it."""
        account = Account()

        def read():
            with cold_mount(self.nodes[1], moves=moves) as mount, account.measured_mount(mount, *self.nodes):
                return way(mount)
        return read, account


def run(_build, directory, args):
    each = args.megabytes // LAYERS * MIB
    models = {"model": write_model(directory / "model", random_tensors(LAYERS, each, seed="origin")),
              "small": write_model(directory / "small", random_tensors(BLOCK, BYTES, seed="small"))}
    rows = [(f"{LAYERS * each // MIB} MiB", whole, LAYERS * each), (f"5 % of it, {each // MIB} MiB by a view", subset, each),
            (f"{BLOCK} tensors of {BYTES} bytes by their views, one after the other", tensors, BLOCK * BYTES)]
    notes = []
    print("Default mount options, one file, links not shaped: at full speed, so no read takes long enough for a time-out.\n")
    print(PAIR_HEAD)
    with contextlib.ExitStack() as stack:
        sides = [Side(directory / "peers", models, args.provider, stack),
                 Side(directory / "origin-only", models, None, stack)]
        for name, way, moves in rows:
            (by_peer, peers), (by_origin, origins) = (side.reads(way, moves) for side in sides)
            pairs = Pairs.alternate(args.pairs, by_peer, by_origin, warm_up=1)
            print(pairs.row(f"{name} from a peer; peer: the same from the origin, a directory of this machine"), flush=True)
            notes += [f"{name} from a peer: {peers.text()}", f"{name} from the origin: {origins.text()}"]
    print("\n" + "\n".join(f"- {note}" for note in notes))
