"""Programs that read files of a model, several at once. A read that fails is counted and does not end the bench."""

import concurrent.futures
import contextlib
import dataclasses
import os
import subprocess
import sys
import threading
import time

from read_set import Loader, ending

SECONDS_MAX = 1800  # a program that takes longer hangs: it is killed, and its read has failed


class Cat:
    """`cat` of files, one after the other. It goes on after a file that it cannot read."""

    def __init__(self, _warm_up):
        self.process = None

    def prepare(self):
        """There is nothing to prepare."""

    wait_ready = prepare

    def start(self, paths):
        self.run(["cat", *paths], subprocess.DEVNULL)

    def run(self, words, stdout):
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True,
                                        env=os.environ | {"LC_ALL": "C"})

    def failures(self):
        """The reason of each failed read, after the program has ended."""
        said = self.process.communicate()[1]
        if self.process.returncode < 0:
            return [ending(self.process.returncode)]
        return [line.rsplit(": ", 1)[-1] for line in said.splitlines()]

    def pids(self):
        """Processes that run between two reads."""
        return []

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class ReadsOfMib(Cat):
    """The first MiB of the first file, then all files as Cat does, and 0.5 s after the begin of that the last MiB of the first
    file. `first` and `last` are the seconds of these two reads, after the program has ended; None if a read failed."""
    SCRIPT = ('head -c 1048576 "$1" >/dev/null 2>&1 && echo first; '
              '(sleep 0.5; echo late; tail -c 1048576 "$1" >/dev/null 2>&1 && echo last) & exec cat "$@" >/dev/null')

    def __init__(self, warm_up):
        super().__init__(warm_up)
        self.begin, self.first, self.last = 0.0, None, None

    def start(self, paths):
        self.begin, self.first, self.last = time.perf_counter(), None, None
        self.run(["sh", "-c", self.SCRIPT, "sh", *paths], subprocess.PIPE)

    def failures(self):
        times = {line.strip(): time.perf_counter() for line in self.process.stdout}
        if "first" in times:
            self.first = times["first"] - self.begin
        if "last" in times:
            self.last = times["last"] - times["late"]
        return super().failures()


class LoadFile:
    """safetensors' load_file in a Python that has torch loaded before, and the sum of every tensor. `warm_up` is a local file.
    The loaders of all nodes share the cores of one machine, so each adds up with one thread: threads of one loader that wait
    for each other spin while the other loaders have the cores (eight loaders at once: 1 s of a core each, 0.02 s with one)."""
    THREADS = 1

    def __init__(self, warm_up):
        self.warm_up, self.loader, self.is_warm = warm_up, None, False

    def prepare(self):
        """Starts the Python, if none runs."""
        if self.loader is None:
            self.loader, self.is_warm = Loader(sys.executable, self.THREADS), False
            self.loader.start("load_file", self.warm_up)

    def wait_ready(self):
        """Waits until the Python has loaded torch."""
        if not self.is_warm:
            self.loader.wait()
            self.is_warm = True

    def start(self, paths):
        self.loader.start("load_file", *paths)

    def failures(self):
        """The reason of each failed read. A page of the mapping that does not arrive ends the program with SIGBUS."""
        try:
            self.loader.wait()
            return []
        except RuntimeError as failure:
            self.kill()  # the others still read, so a new Python starts later
            return [str(failure)]

    @property
    def process(self):
        return self.loader.process if self.loader else None

    def pids(self):
        return [self.process.pid]

    def kill(self):
        if self.loader:
            self.process.kill()
            self.loader.close()
            self.loader = None


@contextlib.contextmanager
def programs(kind, count, warm_up):
    """So many of Cat or LoadFile. They are killed at the end."""
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(kind(warm_up))
            stack.callback(made[-1].kill)
        yield made


def get_ready(readers):
    """Prepares all of them at the same time."""
    for reader in readers:
        reader.prepare()
    for reader in readers:
        reader.wait_ready()


@dataclasses.dataclass
class Ended:
    """A program's reads: when they began and ended, in seconds since the first program began, and the reason of each failed
    read."""
    begin: float
    end: float
    failures: list


def ended(reader, first, begin):
    failures = reader.failures()
    return Ended(begin, time.perf_counter() - first, failures)


def kill_all(readers):
    for reader in readers:
        if reader.process:
            reader.process.kill()


def beside(work):
    """A Future of work(), which runs in a thread. Nobody waits for the thread at the end of this program."""
    future = concurrent.futures.Future()

    def run():
        try:
            future.set_result(work())
        except BaseException as failure:  # pylint: disable=broad-except
            future.set_exception(failure)
    threading.Thread(target=run, daemon=True).start()
    return future


def read_each(readers, paths, every=0, meanwhile=lambda: None):
    """Starts each program with its own list of files, `every` seconds after the one before. Returns an Ended for each.
    `meanwhile` runs beside them, in a thread. After a failure or a signal the programs are killed, since the pool waits for
    their ends."""
    watchdog = threading.Timer(SECONDS_MAX, kill_all, [readers])
    watchdog.daemon = True
    watchdog.start()
    try:
        with concurrent.futures.ThreadPoolExecutor(len(readers)) as pool, contextlib.ExitStack() as unless_all_end:
            unless_all_end.callback(kill_all, readers)
            happens, waits = beside(meanwhile), []
            first = time.perf_counter()
            for number, (reader, files) in enumerate(zip(readers, paths)):
                time.sleep(max(0, first + number * every - time.perf_counter()))
                begin = time.perf_counter() - first
                reader.start(files)
                waits.append(pool.submit(ended, reader, first, begin))
            happens.result()
            reads = [wait.result() for wait in waits]
            unless_all_end.pop_all()
            return reads
    finally:
        watchdog.cancel()


def read_at_once(readers, paths):
    """Starts each program with its own list of files. Returns the seconds until the last one ends, and the reason of each
    failed read."""
    reads = read_each(readers, paths)
    return max(read.end for read in reads), [failure for read in reads for failure in read.failures]
