"""A cluster from nothing: weft cluster init on one host, weft cluster join on others, as an ordinary user."""
import base64
import contextlib
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from test_etcd_auth import Authority, TlsEtcd
from users import ONE
from weftlib import PATIENCE, WEFT, assert_refused, environment, random_tensors, run, wait_until, write_model

PORT, JOIN_PORT = 4711, 4712
FOUR_SECONDS_MAX = 60 * PATIENCE  # from init to four nodes
SECONDS_MAX = 20 * PATIENCE


# Sends a request by HTTPS and prints the status and the answer.
ASKS = """
import http.client, ssl, sys
asks = http.client.HTTPSConnection(sys.argv[1], context=ssl._create_unverified_context(), timeout=60)
asks.request(sys.argv[2], sys.argv[3], sys.stdin.buffer.read() or (b"" if sys.argv[2] == "POST" else None))
answer = asks.getresponse()
print(answer.status)
print(answer.read().decode())
"""
# Listens at a port and answers nobody.
SILENT = """
import socket, sys, time
listens = socket.create_server(("", int(sys.argv[1])))
print(flush=True)
time.sleep(600)
"""


class Site:
    """A machine with a directory for its node. Nothing of it runs as root."""

    def __init__(self, host, area, name):
        self.host, self.name = host, name
        self.home = area / name
        self.home.mkdir()
        os.chown(self.home, ONE, ONE)
        self.directory = self.home / "node"
        self.store = self.directory / "store"

    def shell(self, *words):
        return [*self.host.inside, "setpriv", f"--reuid={ONE}", f"--regid={ONE}", "--clear-groups", *map(str, words)]

    def words(self, *words):
        return self.shell(WEFT, *words)

    def weft(self, *words, **options):
        return run(self.words(*words), env=environment(HOME=str(self.home)), **options)

    def cluster(self, command, *words, **options):
        named = ["--name", self.name] if command in ("init", "join") else []
        return self.weft("cluster", command, *words, "--dir", self.directory, *named, **options)

    def init(self, *words):
        """The token."""
        return self.cluster("init", *words).stdout.split()[-1]

    def join(self, token, *words, **options):
        return self.cluster("join", token, *words, **options)

    def model(self):
        source = write_model(self.home / f"source-{self.name}", random_tensors(2, 4096, seed=self.name))
        for entry in [source, *source.rglob("*")]:
            os.chown(entry, ONE, ONE)
        return source

    def publish(self, model):
        self.weft("import", self.model(), "--name", model, "--store", self.store)

    def names(self):
        return self.weft("ls", "--names", "--store", self.store).stdout.split()

    def peers(self):
        return sorted(peer["name"] for peer in
                      json.loads(self.weft("peers", "--json", "--store", self.store).stdout)["peers"])

    def known(self):
        """The nodes that the cluster knows, absent ones too."""
        return sorted(node["name"] for node in
                      json.loads(self.weft("node", "list", "--json", "--store", self.store).stdout)["nodes"])

    def pids(self):
        return [int(path.read_text()) for path in sorted((self.directory / "run").glob("*.pid"))]

    def processes(self):
        """The ids of all processes in the node's directory, also of those that no file names."""
        def is_here(pid):
            with contextlib.suppress(OSError):
                return os.readlink(f"/proc/{pid}/cwd") == str(self.directory)
            return False
        return {int(pid) for pid in os.listdir("/proc") if pid.isdigit() and is_here(pid)}

    def end(self):
        """Whatever a test has left: a script may just start another program."""
        while left := self.processes():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


@pytest.fixture
def sites(network):
    """Makes machines: sites() is one more. Other users cannot enter the directories of pytest."""
    made = []
    with tempfile.TemporaryDirectory(prefix="weft-cluster-", ignore_cleanup_errors=True) as area:
        os.chmod(area, 0o755)

        def site():
            made.append(Site(network.host(), pathlib.Path(area), f"n{len(made) + 1}"))
            return made[-1]
        try:
            yield site
        finally:
            for one in made:
                one.end()


def token_for(endpoint, key=bytes(32), expires=2_000_000_000, uses=1):
    """A token that nobody has made, in the layout of src/cluster_setup/token.h."""
    fields = key + os.urandom(16) + expires.to_bytes(8, "little") + uses.to_bytes(2, "little") + os.urandom(32)
    fields += endpoint.encode()
    fields += hashlib.sha256(fields).digest()[:4]
    return "weft1." + base64.urlsafe_b64encode(fields).decode().rstrip("=")


def nothing_is_left(site):
    return list(site.home.iterdir()) == []


def test_four_nodes_from_nothing(sites, capsys):
    """Each publishes, and all others list and read it; the time is printed."""
    first, *others = [sites() for _ in range(4)]
    began = time.monotonic()
    token = first.init("--uses", 3)
    for site in others:
        assert "reads and publishes" in site.join(token).stdout
    seconds = time.monotonic() - began
    with capsys.disabled():
        print(f"\ncluster of four nodes: {seconds:.1f} s from init to the last join")
    assert seconds < FOUR_SECONDS_MAX
    for site in [first, *others]:
        site.publish(f"org/{site.name}")
    for site in [first, *others]:
        wait_until(lambda site=site: len(site.names()) == 4, seconds_max=SECONDS_MAX)
        assert site.peers() == ["n1", "n2", "n3", "n4"]
        site.weft("prefetch", "org/n1", "--store", site.store)
        site.weft("export", "org/n1", site.home / "out", "--store", site.store)
        assert (site.home / "out/model.safetensors").read_bytes() == \
            (first.home / "source-n1/model.safetensors").read_bytes()


def test_listens_where_the_first_node_is(sites):
    first, other = sites(), sites()
    other.join(first.init())
    assert f'listen = "{other.host.address}:{PORT}"' in (other.directory / "etc/weft.conf").read_text()
    assert (other.directory / "etc/cluster.key").read_bytes() == (first.directory / "etc/cluster.key").read_bytes()
    for site in (first, other):
        for secret in ("cluster.key", "etcd-key.pem"):
            assert (site.directory / "etc" / secret).stat().st_mode & 0o777 == 0o600
    assert (first.directory / "etc/authority").stat().st_mode & 0o777 == 0o700


def test_starts_again(sites):
    """The scripts stop and start a node, also one that runs already."""
    first, other = sites(), sites()
    other.join(first.init())
    for site in (other, first):
        run([*site.host.inside, "setpriv", f"--reuid={ONE}", f"--regid={ONE}", "--clear-groups", site.directory / "stop"])
    assert all(not os.path.exists(f"/proc/{pid}/cwd") for site in (first, other) for pid in site.pids())
    for site in (first, other, other):
        run([*site.host.inside, "setpriv", f"--reuid={ONE}", f"--regid={ONE}", "--clear-groups",
             site.directory / "start"])
    wait_until(lambda: "n1" in other.weft("peers", "--store", other.store, check=False).stdout, seconds_max=SECONDS_MAX)
    other.publish("org/m")


def test_token_is_used_once(sites):
    first, second, third = sites(), sites(), sites()
    token = first.init()
    second.join(token)
    assert_refused(third.join(token, check=False), "the token was used once already", "weft cluster token")
    assert nothing_is_left(third)
    third.join(first.cluster("token", "-q").stdout.split()[-1])
    assert third.peers() == ["n1", "n2", "n3"]


def test_two_machines_with_one_token(sites):
    """At once: one of them gets in, whoever is first."""
    first, *others = [sites() for _ in range(3)]
    token = first.init()
    started = [subprocess.Popen(site.words("cluster", "join", token, "--dir", site.directory, "--name", site.name),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment()) for site in others]
    said = [process.communicate()[1] for process in started]
    assert sorted(process.returncode for process in started) == [0, 1], said
    assert "was used once already" in "".join(said)


def test_token_expires(sites):
    first, other = sites(), sites()
    token = first.init("--valid", "1s")
    time.sleep(2)
    assert_refused(other.join(token, check=False), "the token has expired")
    assert nothing_is_left(other)


def test_token_that_was_cut_off(sites):
    other = sites()
    token = token_for("10.77.0.1:4712")
    for bad in (token[:-3], token[:20], token.replace("weft1.", "weft2."), "weft1.", "x" * 5000):
        done = other.join(bad, check=False)
        assert_refused(done, "was cut off or mistyped")
        assert bad not in done.stderr or len(bad) < 10
    assert nothing_is_left(other)


def test_token_of_another_cluster(sites):
    """The cluster was made anew at the same address: the key that the token names is gone."""
    first, other = sites(), sites()
    old = first.init()
    first.cluster("leave")
    first.directory.joinpath("store").rename(first.home / "old")
    first.init()
    assert_refused(other.join(old, check=False), "got one with another key")
    assert nothing_is_left(other)


def test_token_that_the_node_did_not_make(sites):
    """It names the right key, and its secret is a guess."""
    first, other = sites(), sites()
    token = first.init()
    raw = base64.urlsafe_b64decode(token[6:] + "=" * (-len(token[6:]) % 4))
    forged = token_for(f"{first.host.address}:{JOIN_PORT}", key=raw[:32])
    assert_refused(other.join(forged, check=False), "the token is not of this cluster")
    assert nothing_is_left(other)
    other.join(token)


def test_nobody_is_there(sites):
    other = sites()
    sites()  # an address where nobody listens
    assert_refused(other.join(token_for("10.77.0.2:4712"), check=False), "10.77.0.2:4712", "connect")
    assert_refused(other.join(token_for("no-such-host.invalid:4712"), check=False), "no-such-host.invalid",
                   "has no address")
    assert nothing_is_left(other)


def ask(site, body, method="POST", path="/join"):
    """What a machine says to the first node, on a connection that anybody can make: (status, answer)."""
    done = run([*site.host.inside, sys.executable, "-c", ASKS, f"{site.host.address}:{JOIN_PORT}", method, path],
               stdin=None, input=body)
    status, answer = done.stdout.split("\n", 1)
    return int(status), answer


def test_a_client_of_an_old_tls(sites):
    """Both sides of a join are weft: they speak TLS 1.3."""
    site = sites()
    site.init()
    asks = ("import socket, ssl, sys; made = ssl._create_unverified_context(); "
            "made.maximum_version = getattr(ssl.TLSVersion, sys.argv[2]); "
            "made.wrap_socket(socket.create_connection((sys.argv[1], int(sys.argv[3])), timeout=60))")
    for version, accepted in (("TLSv1_2", False), ("TLSv1_3", True)):
        done = run([*site.host.inside, sys.executable, "-c", asks, site.host.address, version, JOIN_PORT], check=False)
        assert (done.returncode == 0) == accepted, done.stderr


def test_clock_of_another_day(sites):
    """The first node refuses before it counts the use of the token."""
    first, other = sites(), sites()
    token = first.init()
    for offset in (-86_400, 86_400):
        request = {"protocol": 1, "token": token, "name": "n9", "host": "10.77.0.9", "peer_port": 0, "request": "",
                   "time_s": int(time.time()) + offset}
        status, answer = ask(first, json.dumps(request))
        assert status == 403
        assert "the clock of the machine that joins is 86" in answer and "set the clock" in answer
        assert ("behind" if offset < 0 else "ahead of") in answer
    other.join(token)


def test_garbage_for_the_first_node(sites):
    first, other = sites(), sites()
    token = first.init()
    good = {"protocol": 1, "token": token, "name": "n9", "host": "10.77.0.9", "peer_port": 0, "request": "",
            "time_s": int(time.time())}
    for body in ("", "{", "[]", "null", json.dumps({}), "\0" * 100, json.dumps({**good, "token": "x" * 5000}),
                 json.dumps({**good, "name": "x" * 5000}), json.dumps({**good, "request": "-----BEGIN"}),
                 json.dumps({**good, "host": "a,DNS:b"})):
        status, answer = ask(first, body)
        assert 400 <= status < 500, (status, answer)
        assert "PRIVATE" not in answer
    assert ask(first, "", method="GET")[0] == 404
    assert json.loads(ask(first, json.dumps({**good, "protocol": 9}))[1])["error"].startswith("expected weft")
    other.join(token)


def test_no_secret_in_the_list_of_processes(sites):
    other = sites()
    silent = sites()
    with subprocess.Popen([*silent.host.inside, sys.executable, "-c", SILENT, "4712"], stdout=subprocess.PIPE) as server:
        try:
            server.stdout.readline()
            token = token_for(f"{silent.host.address}:4712")
            with subprocess.Popen(other.words("cluster", "join", token, "--dir", other.directory), env=environment(),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as joins:
                line = pathlib.Path(f"/proc/{joins.pid}/cmdline")
                wait_until(lambda: b"xxxx" in line.read_bytes(), seconds_max=SECONDS_MAX, pause=0.01)
                assert token.encode() not in line.read_bytes()
                joins.send_signal(signal.SIGINT)
                assert joins.wait(60) != 0
        finally:
            server.kill()


def test_token_by_standard_input(sites):
    first, other = sites(), sites()
    line = first.cluster("init").stdout
    assert "reads and publishes" in other.join("-", stdin=None, input=line).stdout


def test_init_over_a_node(sites):
    first, other = sites(), sites()
    first.init()
    config = (first.directory / "etc/weft.conf").read_text()
    assert_refused(first.cluster("init", check=False), "set up for a cluster already", "weft cluster leave")
    assert_refused(first.join(token_for("10.77.0.2:4712"), check=False), "set up for a cluster already")
    assert (first.directory / "etc/weft.conf").read_text() == config
    etc = other.directory / "etc"
    etc.mkdir(parents=True)
    (etc / "weft.conf").write_text("mine\n")
    (etc / "cluster.key").write_text("mine\n")
    for directory in (other.directory, etc):
        os.chown(directory, ONE, ONE)
    assert_refused(other.cluster("init", check=False), "would overwrite", etc / "weft.conf", etc / "cluster.key")
    assert sorted(os.listdir(etc)) == ["cluster.key", "weft.conf"]
    assert (etc / "weft.conf").read_text() == "mine\n"


def test_a_store_with_versions_is_no_new_node(sites):
    site = sites()
    site.directory.mkdir()
    os.chown(site.directory, ONE, ONE)
    site.publish("org/mine")
    assert_refused(site.cluster("init", check=False), "has versions", site.store)
    assert site.names() == ["org/mine@1"] or site.names() == ["org/mine"]


def test_a_port_is_taken(sites):
    site = sites()
    with subprocess.Popen([*site.host.inside, sys.executable, "-c", SILENT, "4713"], stdout=subprocess.PIPE) as server:
        try:
            server.stdout.readline()
            assert_refused(site.cluster("init", check=False), "another program has port 4713")
        finally:
            server.kill()
    assert nothing_is_left(site)
    site.init()


def test_two_inits_at_once(sites):
    site = sites()
    started = [subprocess.Popen(site.words("cluster", "init", "--dir", site.directory), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
               for _ in range(4)]
    said = [process.communicate() for process in started]
    assert sorted(process.returncode for process in started) == [0, 1, 1, 1], said
    for process, (_, errors) in zip(started, said):
        if process.returncode != 0:
            assert "sets this node up" in errors or "set up for a cluster already" in errors, errors
    assert site.peers() == [os.uname().nodename]


@pytest.mark.parametrize("reached", ["etc/cluster.setup", "etc/weft.conf", "run/etcd.pid", "run/weftd.pid",
                                     "store/weftd.sock"])
def test_init_is_killed(sites, reached):
    """At this point; the next one begins anew, and nothing of the killed one is in its way."""
    site = sites()
    with subprocess.Popen(site.words("cluster", "init", "--dir", site.directory), stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()) as process:
        wait_until(lambda: (site.directory / reached).exists() or process.poll() is not None, seconds_max=SECONDS_MAX,
                   pause=0.001)
        process.kill()
    if "state finished" not in (site.directory / "etc/cluster.setup").read_text():
        site.init()
    site.publish("org/m")
    wait_until(lambda: site.processes() == set(site.pids()), seconds_max=SECONDS_MAX)


def test_no_program_without_its_id(sites):
    """Each moment at which a start may be killed: the stop that follows finds whatever runs."""
    site = sites()
    site.init()
    run(site.shell("sh", site.directory / "stop"))
    assert site.processes() == set()
    for pause in (0, 0.005, 0.02, 0.05):
        with subprocess.Popen(site.shell("sh", site.directory / "start"), stdin=subprocess.DEVNULL) as started:
            time.sleep(pause)
            started.kill()
        run(site.shell("sh", site.directory / "stop"))
        assert site.processes() == set(), pause


def test_leave(sites):
    first, second, third = sites(), sites(), sites()
    token = first.init("--uses", 2)
    second.join(token)
    third.join(token)
    assert_refused(first.cluster("leave", check=False), "2 other nodes need this node")
    assert "has left the cluster" in second.cluster("leave").stdout
    assert os.listdir(second.directory) == ["store"]
    wait_until(lambda: first.peers() == ["n1", "n3"], seconds_max=60 * PATIENCE)
    assert first.known() == ["n1", "n3"]
    third.publish("org/m")
    assert_refused(third.cluster("leave", check=False), "no origin", "--force")
    third.cluster("leave", "--force")
    assert_refused(third.cluster("leave", check=False), "cluster.setup")
    wait_until(lambda: first.peers() == ["n1"], seconds_max=60 * PATIENCE)
    assert first.known() == ["n1"]
    first.cluster("leave")
    assert os.listdir(first.directory) == ["store"]


def test_a_node_that_left_joins_again(sites):
    first, other = sites(), sites()
    other.join(first.init())
    other.cluster("leave")
    other.join(first.cluster("token").stdout.split()[-1])
    other.publish("org/m")


def test_etcd_of_the_site(sites, etcd):
    first, other = sites(), sites()
    token = first.init("--etcd", etcd.endpoint, "--etcd-prefix", "/site", "--cluster", "main")
    other.join(token)
    other.publish("org/m")
    wait_until(lambda: first.names() != [], seconds_max=SECONDS_MAX)
    assert not (first.directory / "etcd").exists()
    assert "/site/main/meta" in etcd.control("get", "--prefix", "/site", "--keys-only").stdout


def test_etcd_of_the_site_with_certificates(sites, network, tmp_path):
    """The first node hands on its own certificate; one with a wrong authority makes nothing."""
    authority, other_authority = Authority(tmp_path / "authority"), Authority(tmp_path / "wrong")
    with TlsEtcd(network.host(), tmp_path / "etcd", authority) as etcd:
        first, other = sites(), sites()
        files = [authority.certificate, other_authority.certificate, *authority.sign("node")]
        right, wrong, certificate, key = [first.home.parent / f"{number}.pem" for number in range(4)]
        for path, copy in zip(files, (right, wrong, certificate, key)):
            copy.write_bytes(path.read_bytes())
        words = ["--etcd", etcd.endpoint, "--etcd-cert", certificate, "--etcd-key", key, "--etcd-ca"]
        assert_refused(first.cluster("init", *words, wrong, check=False), etcd.endpoint)
        assert nothing_is_left(first)
        other.join(first.init(*words, right))
        other.publish("org/m")
        assert (other.directory / "etc/etcd-key.pem").read_bytes() == key.read_bytes()


def test_dry_run_of_the_system(sites):
    """Files and commands of a node under systemd; the run changes nothing."""
    site = sites()
    text = site.weft("cluster", "init", "--dry-run", "--origin", "/lustre").stdout
    for line in ("file /etc/weft/weft.conf (mode 0644)", "file /etc/weft/cluster.key (mode 0600)",
                 "    (32 bytes, secret)", "file /etc/weft/authority/ca.key (mode 0600)", "store /var/lib/weft",
                 "data /var/lib/weft/etcd", "file /etc/systemd/system/weft-etcd.service (mode 0644)",
                 f'    listen = "{site.host.address}:{PORT}"', '    origin = "/lustre"', "run systemctl daemon-reload",
                 "run systemctl enable --now weft-etcd.service weftd.service"):
        assert line in text.splitlines(), line
    text = site.weft("cluster", "join", token_for("10.77.0.1:4712"), "--dry-run").stdout
    assert "run systemctl enable --now weftd.service" in text.splitlines()
    assert "etcd.yaml" not in text and "authority/" not in text
    assert site.cluster("init", "--dry-run").stdout.splitlines()[0] == f"directory {site.directory} (mode 0700)"
    assert nothing_is_left(site)
    assert_refused(site.weft("cluster", "init", check=False), "expected root", "--dir DIR")


def test_settings_that_weftd_takes(sites):
    """weftd --check finds no mistake in what init and join write."""
    first, other = sites(), sites()
    other.join(first.init())
    for site in (first, other):
        done = run([*site.host.inside, "setpriv", f"--reuid={ONE}", f"--regid={ONE}", "--clear-groups",
                    WEFT.parent / "weftd", "--check", "--config", site.directory / "etc/weft.conf"], check=False)
        assert (done.returncode, done.stderr) == (0, "")


def etcd_members(site):
    """How many members vote, and how many do not yet."""
    words = [flag for name in ("cacert=etcd-ca", "cert=etcd-cert", "key=etcd-key") for flag in
             [f"--{name.split('=')[0]}", site.directory / "etc" / f"{name.split('=')[1]}.pem"]]
    listed = json.loads(run([*site.host.inside, "etcdctl", "--endpoints", f"https://{site.host.address}:4713", *words,
                             "member", "list", "-w", "json"]).stdout)["members"]
    return sum(not one.get("isLearner") for one in listed), sum(bool(one.get("isLearner")) for one in listed)


def test_etcd_of_three_members(sites):
    """The first three nodes have one each. Names go on without any one of them."""
    first, *others = [sites() for _ in range(4)]
    token = first.init("--members", 3, "--uses", 3)
    for number, site in enumerate(others, 2):
        site.join(token)
        assert etcd_members(first) == (min(number, 3), 0)
    assert not (others[2].directory / "etcd").exists()
    assert "etcd.yaml" in os.listdir(others[0].directory / "etc")
    last = others[2]
    os.kill(int((first.directory / "run/etcd.pid").read_text()), signal.SIGKILL)
    model = last.model()
    wait_until(lambda: last.weft("import", model, "--name", "org/m", "--store", last.store, check=False).returncode == 0,
               seconds_max=SECONDS_MAX)
    wait_until(lambda: others[1].names() != [], seconds_max=SECONDS_MAX)


def test_three_members_join_at_once(sites):
    """etcd takes one at a time, so they take turns."""
    first, *others = [sites() for _ in range(3)]
    token = first.init("--members", 3, "--uses", 2)
    started = [subprocess.Popen(site.words("cluster", "join", token, "--dir", site.directory, "--name", site.name),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment()) for site in others]
    said = [process.communicate() for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    assert etcd_members(first) == (3, 0)


def test_a_member_leaves(sites):
    """etcd then has two members, and the next node takes the place."""
    first, *others = [sites() for _ in range(4)]
    token = first.init("--members", 3, "--uses", 3)
    others[0].join(token)
    others[1].join(token)
    others[0].cluster("leave")
    assert etcd_members(first) == (2, 0)
    others[2].join(token)
    assert etcd_members(first) == (3, 0)
    others[2].publish("org/m")
