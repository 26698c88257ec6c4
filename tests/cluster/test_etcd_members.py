"""An etcd of three members, of which one is no good: nodes go to another, and hear all."""
import contextlib

import pytest

from clusterlib import ETCD_PEER_PORT, Etcd, can_make_networks
from threenodes import SECONDS_MAX, Node
from weftlib import random_tensors, run, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")


class Member(Etcd):
    """Of several, which name their peers by the switch's addresses."""

    def __init__(self, host, directory, hosts):
        super().__init__(host, directory)
        self.peer = f"http://{host.address}:{ETCD_PEER_PORT}"
        self.others = [other for other in hosts if other is not host]
        everybody = ",".join(f"{other.space}=http://{other.address}:{ETCD_PEER_PORT}" for other in hosts)
        self.options = ["--name", host.space, "--initial-cluster", everybody]

    def healthy(self):
        """Also before the others are there: it is not waited for."""
        return self.process.poll() is None

    def serves(self):
        return self.control("endpoint", "health", check=False).returncode == 0

    def leave_alone(self):
        """Its peers do not reach it, nor it them; nodes do."""
        for other in self.others:
            run(["ip", "-n", self.host.space, "route", "add", "blackhole", f"{other.address}/32"])


@pytest.fixture
def members(network, tmp_path):
    hosts = [network.host() for _ in range(3)]
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(Member(host, tmp_path / host.space, hosts)) for host in hosts]
        for member in made:
            wait_until(member.serves, seconds_max=3 * SECONDS_MAX, pause=0.1)
        yield made


@pytest.fixture
def pair(network, members, tmp_path):
    """One that begins with the first member, and one that knows the others alone."""
    class Endpoints:
        def __init__(self, these):
            self.endpoint = these[0].endpoint
            self.more = [word for member in these[1:] for word in ("--etcd-endpoints", member.endpoint)]
    with contextlib.ExitStack() as stack:
        made = []
        for name, some in (("one", members), ("two", members[1:])):
            endpoints = Endpoints(some)
            made.append(Node(network.host(), endpoints, tmp_path, name, *endpoints.more))
            stack.enter_context(made[-1].daemon)
        for node in made:
            wait_until(node.connected, seconds_max=3 * SECONDS_MAX)
        yield made


def hears(one, two, model, name):
    two.store.publish(model, name=name)
    wait_until(lambda: f"{name}@1" in one.store.weft("ls", name, "--names", check=False).stdout.split(),
               seconds_max=SECONDS_MAX, pause=0.1)


@pytest.mark.parametrize("harm", [Etcd.stop_answering, Member.leave_alone])
def test_the_member_that_is_watched_is_no_good_any_more(pair, members, tmp_path, harm):
    one, two = pair
    model = write_model(tmp_path / "model", random_tensors(2, 4096, seed="members"))
    hears(one, two, model, "before")
    watched = members[0]
    assert one.registry()["endpoint"] == watched.endpoint
    harm(watched)
    hears(one, two, model, "after")
    wait_until(lambda: one.connected() and one.registry()["endpoint"] != watched.endpoint, seconds_max=SECONDS_MAX)
    one.store.publish(model, name="again")
    hears(two, one, model, "last")
