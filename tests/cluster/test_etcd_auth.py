"""A real etcd that wants certificates of its own authority, or a user and a password."""
import contextlib
import json
import re
import sys
import time

import pytest

from clusterlib import ETCD_PORT, Etcd
from threenodes import SECONDS_MAX, Node
from weftlib import run, wait_until

USER, PASSWORD = "weft", "correct horse"
# Writes so many keys as root: etcdctl would log in for each.
WRITE_KEYS = """
import base64, http.client, json, sys
etcd = http.client.HTTPConnection(sys.argv[1])
def ask(what, body, **headers):
    etcd.request("POST", "/v3/" + what, json.dumps(body), headers)
    return json.load(etcd.getresponse())
token = ask("auth/authenticate", {"name": "root", "password": "root"})["token"]
for number in range(int(sys.argv[2])):
    text = base64.b64encode(b"%d" % number).decode()
    assert "header" in ask("kv/put", {"key": text, "value": text}, Authorization=token)
"""


class Authority:
    """One that signs certificates, in a directory of its own."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir()
        self.certificate = directory / "ca.pem"
        self.key = directory / "ca.key"
        run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", f"/CN={directory.name}", "-keyout", self.key, "-out", self.certificate])

    def sign(self, name, address=None, hosts=()):
        """(certificate, key)"""
        certificate, key, request = (self.directory / f"{name}.{kind}" for kind in ("pem", "key", "csr"))
        run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
             f"/CN={name}", "-keyout", key, "-out", request])
        extensions = self.directory / f"{name}.ext"
        extensions.write_text("extendedKeyUsage=serverAuth,clientAuth\n" +
                              (f"subjectAltName=IP:{address},IP:127.0.0.1" if address else "") +
                              "".join(f",DNS:{host}" for host in hosts) + "\n")
        run(["openssl", "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
             "-days", "2", "-extfile", extensions, "-out", certificate])
        return certificate, key


class TlsEtcd(Etcd):
    """Answers by https alone, and those alone whose certificate its authority has signed."""

    def __init__(self, host, directory, authority):
        super().__init__(host, directory)
        self.endpoint = f"https://{host.address}:{ETCD_PORT}"
        self.local = f"https://127.0.0.1:{ETCD_PORT}"
        self.authority = authority
        self.server = authority.sign("server", host.address)
        certificate, key = self.server
        self.options += ["--cert-file", certificate, "--key-file", key, "--client-cert-auth", "--trusted-ca-file",
                        authority.certificate]
        self.words = ["--cacert", authority.certificate, "--cert", certificate, "--key", key]


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "authority")


@pytest.fixture
def secured(network, tmp_path, authority):
    with TlsEtcd(network.host(), tmp_path / "etcd", authority) as running:
        yield running


@pytest.fixture
def guarded(etcd):
    """An etcd with users: root, and one that may use keys below /weft."""
    etcd.control("user", "add", "root:root")
    etcd.control("user", "grant-role", "root", "root")
    etcd.control("role", "add", "weft")
    etcd.control("role", "grant-permission", "weft", "--prefix=true", "readwrite", "/weft")
    etcd.control("user", "add", f"{USER}:{PASSWORD}")
    etcd.control("user", "grant-role", USER, "weft")
    etcd.control("auth", "enable")
    etcd.words = ["--user", "root:root"]
    return etcd


@contextlib.contextmanager
def node_of(network, etcd, area, name, *options):
    node = Node(network.host(), etcd, area, name, *options)
    with node.daemon, node.mount:
        yield node


def works(nodes, model):
    """What one publishes, the other lists."""
    for node in nodes:
        wait_until(node.connected, seconds_max=SECONDS_MAX)
    for number, node in enumerate(nodes, 1):
        (model / "config.json").write_text(json.dumps({"number": number}))
        node.store.publish(model, name="model")
        for other in nodes:
            other.sees("model", number)


def refuses(node, model, *words):
    """Everything ends in time; who asks is told which endpoint will not have us, and why."""
    wait_until(lambda: all(word in node.registry()["trouble"] for word in words), seconds_max=SECONDS_MAX)
    began = time.monotonic()
    failed = node.store.weft("import", model, "--name", "model", check=False)
    assert failed.returncode != 0
    assert time.monotonic() - began < SECONDS_MAX
    assert not node.connected()
    for word in words:
        assert word in failed.stderr, failed.stderr
    assert node.store.json("ls")["models"] == []
    assert node.daemon.stop() == 0


def tls(authority, name="client"):
    certificate, key = authority.sign(name)
    return ["--etcd-ca", authority.certificate, "--etcd-cert", certificate, "--etcd-key", key]


def test_certificates(network, secured, authority, tmp_path, small_model):
    with node_of(network, secured, tmp_path, "n0", *tls(authority, "first")) as one, \
            node_of(network, secured, tmp_path, "n1", *tls(authority, "second")) as two:
        works([one, two], small_model)


def test_an_etcd_that_another_authority_has_signed(network, secured, authority, tmp_path, small_model):
    certificate, key = authority.sign("client")
    other = Authority(tmp_path / "other")
    with node_of(network, secured, tmp_path, "n0", "--etcd-ca", other.certificate, "--etcd-cert", certificate,
                 "--etcd-key", key) as node:
        refuses(node, small_model, secured.endpoint, "certificate")


@pytest.mark.parametrize("has", ["none", "a stranger's"])
def test_a_certificate_that_etcd_does_not_know(network, secured, authority, tmp_path, small_model, has):
    options = ["--etcd-ca", authority.certificate]
    if has != "none":
        certificate, key = Authority(tmp_path / "other").sign("client")
        options += ["--etcd-cert", certificate, "--etcd-key", key]
    with node_of(network, secured, tmp_path, "n0", *options) as node:
        words = "etcd.cert and etcd.key name a client certificate" if has == "none" else "(etcd.cert)"
        refuses(node, small_model, secured.endpoint, "wants one", words)


def password_file(path, password):
    path.write_text(password + "\n")
    return path


def login(tmp_path, password=PASSWORD):
    return ["--etcd-user", USER, "--etcd-password-file", password_file(tmp_path / "password", password)]


def test_a_user(network, guarded, tmp_path, small_model):
    with node_of(network, guarded, tmp_path, "n0", *login(tmp_path)) as one, \
            node_of(network, guarded, tmp_path, "n1", *login(tmp_path)) as two:
        works([one, two], small_model)
        # etcd forgets who has logged in when it starts again.
        guarded.kill()
        for node in (one, two):
            wait_until(lambda: not node.connected(), seconds_max=SECONDS_MAX)
        guarded.start()
        (small_model / "config.json").write_text(json.dumps({"after": True}))
        for node in (one, two):
            wait_until(node.connected, seconds_max=SECONDS_MAX)
        one.store.publish(small_model, name="model")
        two.sees("model", 3)


def test_an_etcd_restored_from_a_snapshot(network, guarded, tmp_path, small_model):
    """Its index begins anew, far below the one that is part of the logins of before: requests with these get no answer."""
    with node_of(network, guarded, tmp_path, "n0", *login(tmp_path)) as one, \
            node_of(network, guarded, tmp_path, "n1", *login(tmp_path)) as two:
        works([one, two], small_model)
        run([*guarded.host.inside, sys.executable, "-c", WRITE_KEYS, f"127.0.0.1:{ETCD_PORT}", 200])
        for node in (one, two):  # they log in after these
            node.daemon.stop()
            node.daemon.start()
            wait_until(node.connected, seconds_max=SECONDS_MAX)
        guarded.restore_snapshot()
        for node in (one, two):
            wait_until(node.connected, seconds_max=SECONDS_MAX)
        (small_model / "config.json").write_text(json.dumps({"after": True}))
        one.store.publish(small_model, name="model")
        two.sees("model", 3)


def check_of(node, *options):
    """The lines of weftd --check."""
    return run([*node.host.inside, *node.daemon.words(), *options, "--check"], check=False).stderr.splitlines()


def test_a_check_tells_of_the_login_and_of_the_role(network, guarded, tmp_path):
    node = Node(network.host(), guarded, tmp_path, "n0", *login(tmp_path))
    assert check_of(node) == []
    assert [re.search("authentication failed.*expected that the etcd user weft can log in", line) is not None
            for line in check_of(node, *login(tmp_path, "wrong"))] == [True]
    login(tmp_path)
    guarded.control("role", "revoke-permission", "weft", "--prefix=true", "/weft")
    guarded.control("role", "grant-permission", "weft", "--prefix=true", "read", "/weft")
    assert [re.search("permission denied.*read and write the keys below /weft/default/", line) is not None
            for line in check_of(node)] == [True]
    with node.daemon:  # no check changes what the daemon finds
        assert node.store.json("ls")["models"] == []


def test_a_wrong_password(network, guarded, tmp_path, small_model):
    with node_of(network, guarded, tmp_path, "n0", *login(tmp_path, "wrong")) as node:
        refuses(node, small_model, guarded.endpoint, "authentication failed")


def test_no_user(network, guarded, tmp_path, small_model):
    with node_of(network, guarded, tmp_path, "n0") as node:
        refuses(node, small_model, guarded.endpoint, "user name is empty")
