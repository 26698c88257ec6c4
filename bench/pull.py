"""scripts/bench pull: what `weft pull` takes until a file is a version, against `curl -o` of the same file to the same disk.

An HTTP server in a network name space of its own has the file in memory, behind a link of so many Mbit/s. The two sides
take turns, each with a cold disk: without the bytes of the last run, and with nothing left to write."""

import argparse
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import measure
from measure import drop_caches, interval
from net_nodes import MIB, answers, run, wait_until, warm  # it knows where the next three are
from clusterlib import Network
from daemonlib import Daemon
from weftlib import Store

FILE = "model.bin"
PORT = 8000
RATIO_MAX, RATIO_MBIT = 1.05, 1000  # binding there
MEMORY_MAX = 256 * MIB
PAUSE = 0.01


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench pull")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"), help="where to work")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the file")
    parser.add_argument("--links", type=int, nargs="+", default=[1000, 10000], help="Mbit/s of the link")
    return parser.parse_args()


@dataclasses.dataclass
class Taken:
    """What one run took, of one process."""
    seconds: float = 0.0
    memory: int = 0   # VmHWM
    written: int = 0  # bytes sent to the disk


def field(path, name):
    """A number in a file of /proc whose lines are "NAME: NUMBER"; 0 if it is not there (any more)."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path(path).read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1])
    return 0


def memory_of(pid):
    return field(f"/proc/{pid}/status", "VmHWM") * 1024


def written_by(pid):
    return field(f"/proc/{pid}/io", "write_bytes")


def timed(*command):
    """Runs a command that must succeed. Its memory is that of the last look before its end."""
    taken = Taken()
    begin = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        taken.memory = max(taken.memory, memory_of(process.pid))
        time.sleep(PAUSE)
    taken.seconds = time.perf_counter() - begin
    taken.written = written_by(process.pid)  # it has ended, and nobody has asked how
    if process.wait() != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return taken


class Bench:
    def __init__(self, build, directory, args, server, client):
        self.weft, self.directory, self.client = build / "src/cli/weft", directory, client
        self.size, self.pairs = args.megabytes * MIB, args.pairs
        self.path = directory / "served" / FILE
        self.url = f"http://{server.address}:{PORT}/{FILE}"
        self.path.parent.mkdir()
        digest = hashlib.sha256()
        with self.path.open("wb") as file:
            for _ in range(args.megabytes):
                piece = os.urandom(MIB)
                digest.update(piece)
                file.write(piece)
        self.digest = digest.hexdigest()

    def make_cold(self):
        drop_caches()
        warm(self.path)

    def curl(self):
        target = self.directory / "curl"
        self.make_cold()
        taken = timed(*self.client.inside, "curl", "-sSf", "-o", target, self.url)
        target.unlink()
        return taken

    def pull(self, with_daemon):
        """(what weft took, what weftd took meanwhile)."""
        place = self.directory / "store"
        store = Store(place)
        daemon = Daemon(store) if with_daemon else contextlib.nullcontext()
        served = Taken()
        try:
            with daemon:
                self.make_cold()
                before = written_by(daemon.pid) if with_daemon else 0
                taken = timed(*self.client.inside, self.weft, "--store", place, "pull", self.url, "--sha256", self.digest,
                              "--name", "m")
                if with_daemon:
                    served = Taken(0.0, memory_of(daemon.pid), written_by(daemon.pid) - before)
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return taken, served

    def row(self, mbit, with_daemon):
        ours, theirs = [], []
        for number in range(self.pairs):
            for ours_now in ((True, False) if number % 2 else (False, True)):
                if ours_now:
                    ours.append(self.pull(with_daemon))
                else:
                    theirs.append(self.curl())
        ratios = [own.seconds / peer.seconds for (own, _), peer in zip(ours, theirs)]
        low, high = interval(ratios)
        ratio = statistics.median(ratios)
        memory = max(max(own.memory, daemon.memory) for own, daemon in ours)
        written = statistics.median((own.written + daemon.written) / self.size for own, daemon in ours)
        peer_written = statistics.median(peer.written / self.size for peer in theirs)
        goal = f"≤ {RATIO_MAX} | {met(ratio <= RATIO_MAX)}" if mbit == RATIO_MBIT else "|"
        print(f"| {mbit} Mbit/s, {'weftd' if with_daemon else 'no weftd'} "
              f"| {statistics.median(own.seconds for own, _ in ours):.3f} s "
              f"| {statistics.median(peer.seconds for peer in theirs):.3f} s | {ratio:.3f} ({low:.3f} to {high:.3f}) | {goal} "
              f"| {memory / MIB:.0f} MiB ({met(memory <= MEMORY_MAX)}) | {written:.3f} | {peer_written:.3f} | {self.pairs} |",
              flush=True)


def met(is_met):
    return "yes" if is_met else "NO"


def shape(hosts, mbit):
    """Bounds the link each way. A fast link needs a larger burst to reach its rate."""
    for host in hosts:
        host.shape(f"{mbit}mbit", burst=f"{max(2, mbit // 500)}m")


@contextlib.contextmanager
def serving(host, directory):
    server = subprocess.Popen([*host.inside, sys.executable, pathlib.Path(__file__).with_name("pull_server.py"), host.address,
                               str(PORT), directory])
    try:
        yield
    finally:
        server.kill()
        server.wait()


def main():
    args = parse()
    measure.end_by_signals()
    print(f"Taken on {measure.machine(args.dir)}; a file of {args.megabytes} MiB.\n")
    print("| link | weft pull | curl -o | weft ÷ curl: median (95 % interval) | goal | met | peak memory (≤ 256 MiB) "
          "| written ÷ file | of curl | pairs |\n|---|---|---|---|---|---|---|---|---|---|")
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weft-bench.", dir=args.dir)))
        network = stack.enter_context(Network())
        server, client = network.host(), network.host()
        bench = Bench(args.build.resolve(), directory, args, server, client)
        stack.enter_context(serving(server, bench.path.parent))
        wait_until(lambda: answers(server, PORT), pause=0.1)
        for mbit in args.links:
            shape((server, client), mbit)
            for with_daemon in (False, True):
                bench.row(mbit, with_daemon)


if __name__ == "__main__":
    main()
