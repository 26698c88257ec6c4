"""A node of a cluster: a host with a store, a daemon and a mount."""
from daemonlib import Daemon
from nodes import cluster_key
from weftlib import PATIENCE, Mount, Store, wait_until

SECONDS_MAX = 20 * PATIENCE  # the longest that anything may take that a user waits for


class Node:
    def __init__(self, host, etcd, area, name, *options):
        self.host, self.name = host, name
        self.store = Store(area / name)
        self.daemon = Daemon(self.store, "--etcd-endpoints", etcd.endpoint, "--name", name, "--drain-seconds", "5",
                             "--key-file", cluster_key(area / f"{name}.key"), "--provider", "none", *options,
                             wrapper=host.inside)
        self.mount = Mount(self.store, area / f"{name}-mnt")

    def models(self):
        return self.mount.path / "models"

    def sees(self, model, number, seconds=SECONDS_MAX):
        """Waits until the mount shows the version."""
        wait_until(lambda: (self.models() / model / str(number)).exists(), seconds_max=seconds)

    def versions(self, model):
        """Live numbers, ascending, as this node's store has them."""
        return sorted(one["version"] for one in self.store.json("log", model)["versions"] if not one["removed"])

    def registry(self):
        return self.daemon.status()["registry"]

    def connected(self):
        return self.registry()["connected"]
