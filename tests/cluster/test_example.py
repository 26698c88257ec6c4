"""The example of weftd.8 starts as it is written, beside an etcd with the names that it has there."""
import re
import signal
import subprocess

from clusterlib import ETCD_PORT, Etcd
from daemonlib import WEFTD
from test_etcd_auth import Authority
from threenodes import SECONDS_MAX
from weftlib import TOP, WEFT, environment, run, wait_until


def displays(page):
    """The literal texts of a manual page, without roff."""
    return re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed", (TOP / "man" / page).read_text(), flags=re.M | re.S)


class NamedEtcd(Etcd):
    """Answers by https, under names."""

    def __init__(self, host, directory, authority, names):
        super().__init__(host, directory)
        self.endpoint = f"https://{host.address}:{ETCD_PORT}"
        self.local = f"https://127.0.0.1:{ETCD_PORT}"
        certificate, key = authority.sign("server", host.address, names)
        self.options += ["--cert-file", certificate, "--key-file", key]
        self.words = ["--cacert", authority.certificate]


def test_weftd_8(network, tmp_path):
    conf, commands = displays("weftd.8")[:2]
    settings = dict(re.findall(r'^(\w+) = "(.*)"$', conf, flags=re.M))
    names = re.findall(r"https://(\w+):", conf)
    commands = [line.removeprefix("# ") for line in commands.splitlines()]
    assert commands[-1] == "systemctl enable --now weftd"
    authority = Authority(tmp_path / "authority")
    host = network.host()
    run(["ip", "-n", host.space, "addr", "add", settings["listen"].split(":")[0] + "/32", "dev", "lo"])
    # A root directory with what the site has: the settings, the name of etcd, its authority, the shared file system.
    etc, var_lib, mnt = (tmp_path / name for name in ("etc", "var-lib", "mnt"))
    run(["cp", "-a", "/etc", etc])
    (etc / "weft").mkdir(exist_ok=True)
    (etc / "weft/weft.conf").write_text(conf)
    (etc / "weft/etcd-ca.pem").write_bytes(authority.certificate.read_bytes())
    var_lib.mkdir()
    (mnt / "lustre").mkdir(parents=True)
    with NamedEtcd(network.host(), tmp_path / "etcd", authority, names) as etcd:
        (etc / "hosts").write_text(f"127.0.0.1 localhost\n{etcd.host.address} {' '.join(names)}\n")
        script = ["set -e", f"mount --bind {etc} /etc", f"mount --bind {var_lib} /var/lib", f"mount --bind {mnt} /mnt",
                  *commands[:-1], "echo checked >&2", "exec weftd"]
        path = f"{WEFTD.parent}:{WEFT.parent}:{environment()['PATH']}"
        log = tmp_path / "log"
        with log.open("w") as out:
            process = subprocess.Popen([*host.inside, "unshare", "--mount", "bash", "-c", "\n".join(script)],
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment(PATH=path))
        try:
            wait_until(lambda: "serves /var/lib/weft" in log.read_text() or process.poll() is not None,
                       seconds_max=SECONDS_MAX)
            assert process.poll() is None, log.read_text()
            assert "\nweftd: " not in log.read_text()  # no mistakes
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS_MAX) == 0
        finally:
            process.kill()
            process.wait()
    assert (var_lib / "weft/weft-store").exists()
