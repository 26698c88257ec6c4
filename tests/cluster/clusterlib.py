"""A cluster in network name spaces: a switch, an etcd, nodes. Nothing of it reaches the machine's own network.

One name space holds a bridge, each node has its own with one end of a veth pair. All of it ends with the context, whatever
happens inside.
"""
import contextlib
import ctypes
import functools
import itertools
import json
import os
import pathlib
import signal
import subprocess

from weftlib import run, wait_until

ETCD = "/usr/bin/etcd"
ETCD_PORT, ETCD_PEER_PORT = 2379, 2380
PREFIX = "10.77.0."
HOSTS_MAX = 254
# The kernel keeps at most 1,024 addresses of neighbours that it has found by asking, for all name spaces together. Hosts of
# a larger network are told the addresses of all others: those do not count.
ASKING_HOSTS_MAX = 24
START_SECONDS_MAX = 60
counter = itertools.count(1)


def tcp_providers():
    """Those of libfabric that use connections over TCP, the best one first. Later versions than 1.17 have the code of net in
    tcp."""
    try:
        version = ctypes.CDLL("libfabric.so.1").fi_version()
    except OSError:
        return []
    return ["net", "tcp"] if version <= 1 << 16 | 17 else ["tcp"]


PROVIDERS = tcp_providers()
DATAGRAMS = "tcp;ofi_rxm"  # reliable ones over TCP


def hardware_address(number):
    """Of the host with this number."""
    return f"02:77:00:00:00:{number:02x}"


def ip(space, *commands):
    """Runs these commands of ip(8) in the name space, by one program."""
    run(["ip", "-n", space, "-batch", "-"], stdin=None, input="\n".join(commands))


class Cable:
    """What joins two devices."""

    def ends(self):
        """Both, each as its name space and its name. A packet goes out through the first."""
        raise NotImplementedError

    def shape(self, rate, burst="256k", latency="50ms"):
        """Bounds each direction, as tc-tbf(8) says it: "1gbit"."""
        for space, device in self.ends():
            run(["tc", "-n", space, "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", burst,
                 "latency", latency])

    def unshape(self):
        for space, device in self.ends():
            run(["tc", "-n", space, "qdisc", "del", "dev", device, "root"])

    def lose(self, permille):
        """Drops this many of 1,000 packets in each direction, at random. 0 ends it.

        Packets are dropped where they arrive: TCP is told at once of a packet that its own host drops, and of no other."""
        for space, device in self.ends():
            chain = f"netdev loss {device}"
            run(["nsenter", f"--net=/run/netns/{space}", "nft",
                 f"add table netdev loss; add chain {chain} {{ type filter hook ingress device {device} priority 0; }};"
                 f"flush chain {chain};" + (f"add rule {chain} numgen random mod 1000 < {permille} drop" if permille
                                            else f"delete chain {chain}")])


class Host(Cable):
    """A name space with one address on the switch."""

    def __init__(self, network, number):
        self.network, self.address = network, f"{PREFIX}{number}"
        self.space, self.port = f"{network.name}-{number}", f"p{number}"
        self.hardware_address, self.bridge = hardware_address(number), "br0"

    def up(self):
        run(["ip", "netns", "add", self.space])
        ip(self.network.switch,
           f"link add {self.port} type veth peer name eth0 address {self.hardware_address} netns {self.space}",
           f"link set {self.port} master {self.bridge} up")
        ip(self.space, f"addr add {self.address}/24 dev eth0", "link set lo up", "link set eth0 up")

    @property
    def inside(self):
        """Words before a command that is to run here. Mounts and files stay those of the machine."""
        return ["nsenter", f"--net=/run/netns/{self.space}"]

    def cut(self):
        """Pulls the cable: packets are lost, nobody is told."""
        run(["ip", "-n", self.network.switch, "link", "set", self.port, "nomaster"])

    def down(self):
        """The cable is pulled, and the host told."""
        run(["ip", "-n", self.network.switch, "link", "set", self.port, "down"])

    def vanish(self):
        """As without power: no connection of it is ended. What runs here has been killed, or is now; up() is its return."""
        run(["ip", "-n", self.network.switch, "link", "del", self.port])
        run(["ip", "netns", "del", self.space])

    def mend(self):
        run(["ip", "-n", self.network.switch, "link", "set", self.port, "master", self.bridge, "up"])

    def know_all(self):
        """From now on this host asks nobody where the others are, also those that come later."""
        ip(self.space, *(f"neigh replace {PREFIX}{number} lladdr {hardware_address(number)} dev eth0 nud permanent"
                         for number in range(1, HOSTS_MAX + 1)))

    def ends(self):
        return (self.space, "eth0"), (self.network.switch, self.port)


class Trunk(Cable):
    """The cable between the switch and a second one, where these hosts are from now on. A network has one at most."""

    def __init__(self, network, hosts):
        self.network = network
        for words in (["add", "br1", "type", "bridge"], ["set", "br1", "up"],
                      ["add", "between0", "type", "veth", "peer", "name", "between1"],
                      *(["set", f"between{end}", "master", f"br{end}", "up"] for end in (0, 1))):
            run(["ip", "-n", network.switch, "link", *words])
        for host in hosts:
            host.bridge = "br1"
            host.mend()

    def ends(self):
        return (self.network.switch, "between0"), (self.network.switch, "between1")


class Wire:
    """The bytes and packets that a host has sent and received since it was plugged in. Of a Trunk: those that have gone to
    the second switch, and come from there."""

    def __init__(self, cable):
        space, device = cable.ends()[0]
        link = json.loads(run(["ip", "-n", space, "-s", "-j", "link", "show", device]).stdout)[0]
        self.mtu = link["mtu"]
        stats = link["stats64"]
        self.sent, self.received = stats["tx"]["bytes"], stats["rx"]["bytes"]
        self.received_packets = stats["rx"]["packets"]


class Network:
    """The switch. `host()` plugs one more in."""

    def __init__(self):
        self.name = f"weft-{os.getpid()}-{next(counter)}"
        self.switch = f"{self.name}-switch"
        self.hosts = []

    def __enter__(self):
        try:
            run(["ip", "netns", "add", self.switch])
            ip(self.switch, "link add br0 type bridge", "link set br0 up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def next_address(self):
        """That the next host will have."""
        return f"{PREFIX}{len(self.hosts) + 1}"

    def host(self):
        host = Host(self, len(self.hosts) + 1)
        self.hosts.append(host)
        host.up()
        if len(self.hosts) == ASKING_HOSTS_MAX + 1:
            self.know_each_other()
        elif len(self.hosts) > ASKING_HOSTS_MAX:
            host.know_all()
        return host

    def know_each_other(self):
        """Hosts go on sending to one that is cut off, as through a router: nobody asks first who is there, which is how
        Linux learns soon that nobody is."""
        for host in self.hosts:
            host.know_all()

    def __exit__(self, *exception):
        with contextlib.ExitStack() as every:  # also when somebody interrupts one
            for space in [self.switch, *(host.space for host in self.hosts)]:
                every.callback(run, ["ip", "netns", "del", space], check=False)


class Etcd:
    """A one-node etcd on a host of its own, as a context."""

    def __init__(self, host, directory):
        self.host, self.directory, self.process = host, directory, None
        self.endpoint = f"http://{host.address}:{ETCD_PORT}"
        self.local = f"http://127.0.0.1:{ETCD_PORT}"
        self.options = ["--heartbeat-interval", "10", "--election-timeout", "100"]  # it has no rival to wait for
        self.words = []  # of etcdctl, whom etcd knows it as
        self.peer = f"http://127.0.0.1:{ETCD_PEER_PORT}"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.kill()

    def start(self):
        self.directory.mkdir(exist_ok=True)
        with (self.directory / "log").open("a") as log:
            self.process = subprocess.Popen(
                [*self.host.inside, ETCD, "--data-dir", str(self.directory / "data"), "--log-level", "error",
                 "--listen-client-urls", f"{self.endpoint},{self.local}",
                 "--advertise-client-urls", self.endpoint, "--listen-peer-urls", self.peer,
                 "--initial-advertise-peer-urls", self.peer, "--initial-cluster", f"default={self.peer}",
                 *map(str, self.options)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_until(self.healthy, seconds_max=START_SECONDS_MAX, pause=0.01)
        except BaseException:
            self.kill()
            raise

    def healthy(self):
        if self.process.poll() is not None:
            raise AssertionError((self.directory / "log").read_text())
        return self.listens() and self.control("endpoint", "health", check=False).returncode == 0

    def listens(self):
        """At both addresses: they open one after the other, and etcdctl that is refused tries again after a second."""
        lines = pathlib.Path(f"/proc/{self.process.pid}/net/tcp").read_text().splitlines()
        sockets = [line.split()[1:4] for line in lines]
        return sum(place.endswith(f":{ETCD_PORT:04X}") and state == "0A" for place, _, state in sockets) == 2

    def control(self, *words, check=True, **options):
        return run([*self.host.inside, "etcdctl", "--endpoints", self.local, *self.words, *words], check=check,
                   **options)

    def revision(self):
        return int(self.control("get", "x", "-w", "fields").stdout.split('"Revision" : ')[1].split()[0])

    def compact(self):
        self.control("compact", self.revision())

    def restore_snapshot(self):
        """It is lost, and comes back from a snapshot that was taken just before."""
        saved = self.directory / "snapshot"
        self.control("snapshot", "save", saved)
        self.kill()
        (self.directory / "data").rename(self.directory / "lost")
        run(["etcdctl", "snapshot", "restore", saved, "--data-dir", self.directory / "data", "--name", "default",
             "--initial-cluster", f"default={self.peer}", "--initial-advertise-peer-urls", self.peer])
        self.start()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        """As an administrator stops it: it answers what is under way, somehow."""
        self.process.terminate()
        self.process.wait()

    def stop_answering(self):
        self.process.send_signal(signal.SIGSTOP)

    def answer_again(self):
        self.process.send_signal(signal.SIGCONT)


@functools.cache
def can_make_networks():
    """Root, and name spaces that can be made here."""
    if os.geteuid() != 0 or not os.path.exists(ETCD):
        return False
    with contextlib.suppress(AssertionError, FileNotFoundError):
        with Network() as network:
            network.host()
            return True
    return False


__all__ = ["Etcd", "Host", "Network", "Trunk", "Wire", "can_make_networks"]
