"""Programs that read through the mounts of several nodes at once: which failed, and when each ended."""
import concurrent.futures
import contextlib
import os
import signal
import subprocess
import time

from nodes import MODEL_FILE
from weftlib import environment, wait_until

KILLED_SECONDS_MAX = 5  # within which a program is gone that no server keeps waiting


class Read:
    """A program that reads, in a process group of its own. Exit status 0 says that all bytes came and are right."""

    def __init__(self, node, words):
        self.node, self.ended, self.said = node, None, ""
        self.process = subprocess.Popen([str(word) for word in words], env=environment(), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        start_new_session=True)

    def is_over(self):
        if self.ended is None and self.process.poll() is not None:
            self.ended = time.monotonic()
            self.said = self.process.communicate()[0].strip()
        return self.ended is not None

    def problem(self):
        """None if it read everything."""
        if not self.is_over():
            return f"{self.node.directory.name}: has not ended"
        return f"{self.node.directory.name}: {self.said}" if self.process.returncode else None

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


class Reading:
    """A mount on each of these nodes, as a context; start() has a program read through each. None outlives it."""

    def __init__(self, nodes, options=None):
        self.nodes, self.mounts, self.reads = nodes, [node.mounted(options) for node in nodes], []

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for mount in self.mounts:
                stack.push(mount)
            with concurrent.futures.ThreadPoolExecutor() as pool:
                list(pool.map(lambda mount: mount.__enter__(), self.mounts))
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *exception):
        with self.stack:
            self.end()

    def start(self, command):
        """command(mount) is the words of the program."""
        self.reads = [Read(node, command(mount)) for node, mount in zip(self.nodes, self.mounts, strict=True)]

    def compare(self, source, model):
        """Starts `cmp` of the file of the model's first version with its source."""
        self.start(lambda mount: ["cmp", source / MODEL_FILE, mount.version(model, 1) / MODEL_FILE])

    def are_over(self):
        return all([read.is_over() for read in self.reads])

    def problems(self, seconds_max):
        """Waits until all have ended; a read that hangs is a problem, too."""
        with contextlib.suppress(AssertionError):
            wait_until(self.are_over, seconds_max=seconds_max, pause=0.02)
        return [problem for read in self.reads if (problem := read.problem())]

    def end(self):
        for read in self.reads:
            read.kill()
        try:
            wait_until(self.are_over, seconds_max=KILLED_SECONDS_MAX, pause=0.02)
        except AssertionError:  # Linux does not end a program whose request a server has and does not answer
            for mount in self.mounts:
                mount.kill()
            wait_until(self.are_over, seconds_max=KILLED_SECONDS_MAX, pause=0.02)
