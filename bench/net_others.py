"""Other ways to have a file of another host: sshfs, rclone over sftp, scp, glusterfs. One sshd, or one brick, inside the
holder's name space."""

import contextlib
import shutil
import subprocess

from measure import run, seconds
from net_gluster import Gluster, NotHere
from net_nodes import FILE, answers, cat, wait_until

PORT = "2222"


class Sshd:
    """An sshd on a host, for root by a key of its own. A context."""

    def __init__(self, host, directory):
        self.host, self.dir = host, directory / "sshd"

    def __enter__(self):
        self.dir.mkdir()
        for name in ("host", "user"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.dir / name)
        shutil.copy(self.dir / "user.pub", self.dir / "authorized")
        options = ["-o", "StrictModes=no", "-o", "UsePAM=no", "-o", "PermitRootLogin=yes", "-o", "PidFile=none",
                   "-o", f"AuthorizedKeysFile={self.dir}/authorized", "-o", "Subsystem=sftp internal-sftp"]
        subprocess.run(["mkdir", "-p", "/run/sshd"], check=True)
        self.process = subprocess.Popen([*self.host.inside, "/usr/sbin/sshd", "-D", "-f", "/dev/null", "-p", PORT, "-h",
                                         str(self.dir / "host"), *options], stderr=subprocess.DEVNULL)
        wait_until(self.dials, seconds_max=10, pause=0.05)
        return self

    def dials(self):
        return answers(self.host, PORT)

    def __exit__(self, *exception):
        self.process.terminate()
        self.process.wait()

    def ssh_options(self):
        return ["-o", f"Port={PORT}", "-o", f"IdentityFile={self.dir}/user", "-o", "StrictHostKeyChecking=no", "-o",
                "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]


@contextlib.contextmanager
def sshfs(sshd, reader, source, where):
    where.mkdir()
    run(*reader.inside, "sshfs", f"root@{sshd.host.address}:{source}", where, *sshd.ssh_options())
    try:
        yield where
    finally:
        run("umount", where)


@contextlib.contextmanager
def rclone(sshd, reader, source, where):
    where.mkdir()
    remote = f":sftp,host={sshd.host.address},port={PORT},user=root,key_file={sshd.dir}/user:{source}"
    process = subprocess.Popen([*reader.inside, "rclone", "--config", "/dev/null", "mount", remote, str(where),
                                "--read-only", "--vfs-cache-mode", "off"], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: (where / FILE).exists(), seconds_max=20, pause=0.05)
        yield where
    finally:
        run("umount", where)
        process.wait()


@contextlib.contextmanager
def open_session(sshd, reader, directory):
    """Options of ssh and scp by which they go through a connection that is there already."""
    control = ["-o", f"ControlPath={directory}/control"]
    where = f"root@{sshd.host.address}"
    subprocess.run([*reader.inside, "ssh", "-M", "-N", "-f", *control, *sshd.ssh_options(), where], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield [*sshd.ssh_options(), *control]
    finally:
        run("ssh", *control, "-O", "exit", where, stderr=subprocess.DEVNULL)


def scp(sshd, reader, source, target, options=None):
    """A function that copies, and returns its seconds."""
    def copy():
        target.unlink(missing_ok=True)
        return seconds(*reader.inside, "scp", "-q", *(options or sshd.ssh_options()), f"root@{sshd.host.address}:{source}",
                       target)
    return copy


def others(holder, reader, model, directory):
    """(name, function that reads the whole file cold and returns its seconds, processes of its server), one after the
    other."""
    where = directory / "others"
    where.mkdir()
    with Sshd(holder.host, where) as sshd:
        yield "scp of the native file", scp(sshd, reader.host, model / FILE, where / "copy"), [sshd.process.pid]
        for name, mounted in (("sshfs", sshfs), ("rclone mount over sftp", rclone)):
            if shutil.which(name.split()[0]) is None:
                continue

            def read(name=name, mounted=mounted):
                with mounted(sshd, reader.host, model, where / name.split()[0]) as mount:
                    took = cat(mount / FILE)
                (where / name.split()[0]).rmdir()
                return took
            yield name, read, [sshd.process.pid]
    try:
        with Gluster(holder.host, reader.host, where, model) as gluster:
            yield "glusterfs, one brick", gluster.read, [gluster.server.pid]
    except NotHere as reason:
        print(f"| peer: glusterfs | | did not run | {reason} | | | |", flush=True)
