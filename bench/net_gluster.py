"""A glusterfs of one brick between two hosts: its server and its client by volume files of their own, without glusterd."""

import contextlib
import os
import shutil
import subprocess

from measure import run
from net_nodes import FILE, answers, cat, wait_until, warm

PORT = 24007

SERVER = """
volume brick
  type storage/posix
  option directory {brick}
end-volume
volume locks
  type features/locks
  subvolumes brick
end-volume
volume threads
  type performance/io-threads
  subvolumes locks
end-volume
volume server
  type protocol/server
  option transport-type tcp
  option transport.socket.bind-address {address}
  option transport.socket.listen-port {port}
  option auth.addr.threads.allow *
  subvolumes threads
end-volume
"""
CLIENT = """
volume remote
  type protocol/client
  option transport-type tcp
  option remote-host {address}
  option remote-port {port}
  option remote-subvolume threads
end-volume
volume ahead
  type performance/read-ahead
  option page-count 16
  subvolumes remote
end-volume
"""


class NotHere(Exception):
    """glusterfs cannot be run here: the reason."""


class Gluster:
    """`model`, written through a mount once, then read through a new one each time. A context."""

    def __init__(self, holder, reader, directory, model):
        self.holder, self.reader, self.directory, self.model = holder, reader, directory, model
        self.mount = directory / "gluster"
        self.server = None

    def __enter__(self):
        for program in ("glusterfsd", "glusterfs"):
            if shutil.which(program) is None:
                raise NotHere(f"no {program}: Debian's glusterfs-server and glusterfs-client")
        words = {"brick": self.directory / "brick", "address": self.holder.address, "port": PORT}
        words["brick"].mkdir()
        self.mount.mkdir()
        for name, text in (("server", SERVER), ("client", CLIENT)):
            (self.directory / f"{name}.vol").write_text(text.format(**words))
        files = ["-f", self.directory / "server.vol", "-l", self.directory / "server.log"]
        self.server = subprocess.Popen([*self.holder.inside, "glusterfsd", "-N", *files], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        try:
            wait_until(self.dials, seconds_max=10, pause=0.05)
            with self.mounted():
                shutil.copy(self.model / FILE, self.mount / FILE)
        except (AssertionError, OSError, subprocess.CalledProcessError) as failure:
            self.__exit__()
            raise NotHere(f"{failure}: {self.said()}") from failure
        return self

    def __exit__(self, *exception):
        self.server.kill()
        self.server.wait()

    def dials(self):
        return answers(self.holder, PORT)

    def said(self):
        """The last error of the server or the client, on one line."""
        lines = [line for name in ("server", "client") if (self.directory / f"{name}.log").exists()
                 for line in (self.directory / f"{name}.log").read_text().splitlines() if " E " in line]
        return lines[-1].replace("|", " ") if lines else "it says nothing"

    @contextlib.contextmanager
    def mounted(self):
        run(*self.reader.inside, "glusterfs", "-f", self.directory / "client.vol", "-l", self.directory / "client.log",
            self.mount, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: self.mount.is_mount() and os.access(self.mount, os.R_OK), seconds_max=20, pause=0.05)
            yield
        finally:
            run("umount", self.mount)

    def read(self):
        """Seconds of reading the whole file, cold at the reader, in the holder's memory."""
        with self.mounted():
            warm(self.directory / "brick" / FILE)
            return cat(self.mount / FILE)
