"""Machines for the commands of weft-cluster(7): each has its own network, /etc, /var/lib, /mnt, process ids and host name.

What they have of systemd is a `systemctl` that starts the programs of units and stops them, without confining them."""
import os
import pathlib
import re
import subprocess
import sys

from daemonlib import WEFTD
from weftlib import PATIENCE, TOP, WEFT, environment

SECONDS_MAX = 120 * PATIENCE
USERS = {"alice": 64001}
# Runs as the first process of a machine: it makes the machine's directories, and reaps whatever ends.
FIRST = """
set -eu
mount --make-rprivate /
hostname "$1"
mount -t tmpfs tmpfs /media
cp -a /etc /media/etc
mount --bind /media/etc /etc
for directory in /var/lib /mnt; do mount -t tmpfs -o mode=755 tmpfs $directory; done
rm -rf /etc/weft /etc/systemd/system
mkdir -p /etc/systemd/system /var/lib/weft /var/lib/units /mnt/lustre /mnt/backup
mount --bind "$2" /mnt/lustre
exec "$3" -c '
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("up", flush=True)
while True:
    signal.pause()'
"""
SYSTEMCTL = """#!{python}
import os, pathlib, re, signal, socket, subprocess, sys, time

UNITS, STATE = pathlib.Path("/etc/systemd/system"), pathlib.Path("/var/lib/units")


def runs(unit):
    try:
        return os.path.exists(f"/proc/{{int((STATE / unit).read_text())}}")
    except FileNotFoundError:
        return False


def send(unit, number):
    os.kill(int((STATE / unit).read_text()), number)


def start(unit):
    if runs(unit):
        return
    words = re.search("^ExecStart=(.*)$", (UNITS / unit).read_text(), flags=re.M)[1].split()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
        place = str(STATE / f"{{unit}}.ready")
        pathlib.Path(place).unlink(missing_ok=True)
        ready.bind(place)
        ready.settimeout(300)
        with open(STATE / f"{{unit}}.log", "a") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                                       start_new_session=True, env=os.environ | {{"NOTIFY_SOCKET": place}})
        (STATE / unit).write_text(str(process.pid))
        while b"READY=1" not in ready.recv(4096):
            pass


def stop(unit):
    if runs(unit):
        send(unit, signal.SIGTERM)
    while runs(unit):
        time.sleep(0.02)


command, *words = sys.argv[1:]
units = [word if "." in word else word + ".service" for word in words if not word.startswith("-")]
for unit in units:
    if command in ("disable", "stop", "restart"):
        stop(unit)
    if command in ("enable", "start", "restart"):
        start(unit)
    if command == "reload":
        send(unit, signal.SIGHUP)
"""


class Machine:
    """A machine that is on while the context lasts. `lustre` is a directory that all machines have as /mnt/lustre."""

    def __init__(self, host, name, area, lustre):
        self.host, self.name, self.area, self.lustre = host, name, area / name, lustre
        self.process = None

    def __enter__(self):
        self.area.mkdir(exist_ok=True)
        words = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", FIRST, "sh",
                 self.name, self.lustre, sys.executable]
        self.process = subprocess.Popen([*self.host.inside, *map(str, words)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "up\n"
        self.install()
        return self

    def __exit__(self, *exception):
        self.turn_off()

    def turn_off(self):
        """As without power."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def replace(self):
        """A new machine with its name and its address."""
        self.turn_off()
        self.__enter__()

    def first(self):
        """The id of its first process."""
        return pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0]

    def file(self, path):
        return pathlib.Path(f"/proc/{self.first()}/root{path}")

    def install(self):
        """What the packages install, and the users of the machine."""
        unit = (TOP / "daemon/systemd/weftd.service.in").read_text().replace("@WEFT_SBINDIR@", str(WEFTD.parent))
        self.file("/etc/systemd/system/weftd.service").write_text(unit)
        systemctl = self.area / "systemctl"
        systemctl.write_text(SYSTEMCTL.format(python=sys.executable))
        systemctl.chmod(0o755)
        with self.file("/etc/passwd").open("a") as passwd, self.file("/etc/group").open("a") as group:
            group.write("weft:x:64000:\n")
            for name, uid in USERS.items():
                passwd.write(f"{name}:x:{uid}:{uid}::/mnt:/bin/sh\n")
                group.write(f"{name}:x:{uid}:\n")
        os.chown(self.file("/var/lib/weft"), 0, 64000)
        self.file("/var/lib/weft").chmod(0o750)

    def run(self, command, user="root"):
        """(exit code, what it printed) of a shell's command."""
        become = [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        path = os.pathsep.join([str(self.area), str(WEFT.parent), os.environ["PATH"]])
        done = subprocess.run(["nsenter", "--mount", "--root", "--uts", "--pid", "--net", "--wdns=/mnt",
                               f"--target={self.first()}", *become, "sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=SECONDS_MAX,
                              env=environment(PATH=path, HOME="/root" if user == "root" else "/mnt"))
        return done.returncode, done.stdout
