"""The Python part of `scripts/demo swarm`: nodes that read one model at once from an origin that is held to a speed.

    demo_swarm.py DIRECTORY     works in this directory
"""
import contextlib
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
from measure import end_by_signals  # noqa: E402
from net_nodes import FILE, MIB, Cores, mounted, processes, run, shape, wait_idle  # noqa: E402
from net_starts import Case, reasons  # noqa: E402
from slow_origin import ORIGIN_SPEED, nodes_with_origin, publish_at_origin  # noqa: E402
from swarm_simulated import simulate  # noqa: E402
from weftlib import BUILD  # noqa: E402

CASE = Case(nodes=8, mbit=200, size=256 * MIB)
VICTIM = 3  # the index of the node that is killed at half
SIMULATED = [(8, 256), (80, 256), (80, 64), (8000, 64)]  # nodes, MiB: 8,000 nodes take minutes with 256 MiB
READ_SECONDS_MAX = 180
LOOK_SECONDS, END_SECONDS, LINE_SECONDS = 0.25, 0.01, 3  # between two looks at daemons, at readers; between two plain lines
BAR = 40  # characters
LOG_LINES = 5


class Steps:
    """The steps of the demo, as scripts/lib/show.sh prints them."""
    begin = None

    @classmethod
    def end(cls):
        if cls.begin is not None:
            print(f"   ({time.perf_counter() - cls.begin:.1f} s)", flush=True)
        cls.begin = None


def say(text):
    """Begins a step, and says how long the step before took."""
    Steps.end()
    print(f"\n-- {text}", flush=True)
    Steps.begin = time.perf_counter()


class Reading:
    """A node's read of the model: what its bar and its row of the table show."""

    def __init__(self, node, mount, cat):
        self.node, self.mount, self.cat = node, mount, cat
        self.name, self.file = node.directory.name, mount.version("model", 1) / FILE
        self.before = {source: node.fetched(source) for source in ("peer", "origin")}
        self.bytes = dict.fromkeys(self.before, 0)
        self.begin, self.seconds, self.killed, self.failures = 0, None, False, []

    def start(self):
        self.begin = time.perf_counter()
        self.cat.start([self.file])

    def look(self):
        """Asks the daemon for its counts. They stay as they were if no daemon answers."""
        with contextlib.suppress(OSError):
            self.bytes = {source: self.node.fetched(source) - had for source, had in self.before.items()}

    def arrived(self):
        return sum(self.bytes.values())

    def is_over(self):
        if self.seconds is None and self.cat.process.poll() is not None:
            self.end()
        return self.seconds is not None

    def end(self):
        self.seconds = time.perf_counter() - self.begin
        self.look()
        self.failures = self.cat.failures()

    def kill(self):
        """kill -9 of everything that the node runs."""
        self.look()
        self.node.daemon.kill()
        self.mount.kill()
        self.cat.kill()
        self.seconds, self.killed = time.perf_counter() - self.begin, True

    def share(self):
        return min(1, self.arrived() / CASE.size)

    def bar(self):
        peer, full = round(BAR * min(1, self.bytes["peer"] / CASE.size)), round(BAR * self.share())
        drawn = "#" * peer + "o" * (full - peer) + "." * (BAR - full)
        return f"{self.name}  [{drawn}] {self.share():4.0%}  {self.state()}"

    def state(self):
        if self.killed:
            return f"killed after {self.seconds:.1f} s"
        if self.failures:
            return f"failed after {self.seconds:.1f} s: {reasons(self.failures)}"
        return f"{self.seconds:.1f} s" if self.seconds is not None else ""

    def cells(self):
        row = f"{self.bytes['peer'] / MIB:14.1f} {self.bytes['origin'] / MIB:12.1f}"
        return f"{self.name:<6} {self.seconds:8.2f} {row}" + ("   " + self.state() if self.killed or self.failures else "")


class Bars:
    """A bar for each node, redrawn in place on a terminal. Elsewhere a line with all nodes every few seconds."""

    def __init__(self, readings):
        self.readings, self.begin, self.next_line, self.drawn = readings, time.perf_counter(), 0, False
        self.on_terminal = sys.stdout.isatty()
        if self.on_terminal:
            print("# from partners, o from the origin")
        else:
            print("seconds  " + "  ".join(reading.name for reading in readings), flush=True)

    def show(self, last=False):
        if self.on_terminal:
            up = f"\033[{len(self.readings)}A" if self.drawn else ""
            print(up + "".join(f"\r{reading.bar()}\033[K\n" for reading in self.readings), end="", flush=True)
            self.drawn = True
        elif last or self.seconds() >= self.next_line:
            cells = ("killed" if reading.killed else f"{reading.share():.0%}" for reading in self.readings)
            print(f"{self.seconds():7.1f}  " + "  ".join(f"{cell:>5}" for cell in cells), flush=True)
            self.next_line += LINE_SECONDS

    def seconds(self):
        return time.perf_counter() - self.begin


def kill_at_half(victim):
    if not victim.is_over() and victim.arrived() >= CASE.size / 2:
        victim.kill()


def watch(readings, victim=None):
    """Starts all reads, and returns when all have ended."""
    bars, next_look = Bars(readings), 0
    for reading in readings:
        reading.start()
    while not all([reading.is_over() for reading in readings]):  # each is asked, so that its seconds are right
        if bars.seconds() >= next_look:
            next_look = bars.seconds() + LOOK_SECONDS
            for reading in readings:
                if not reading.is_over():
                    reading.look()
            if victim:
                kill_at_half(victim)
            bars.show()
        if bars.seconds() > READ_SECONDS_MAX:
            raise RuntimeError(f"the reads have not ended after {READ_SECONDS_MAX} s")
        time.sleep(END_SECONDS)
    bars.show(last=True)


@contextlib.contextmanager
def mount_of(node):
    """A mount with default options. Its server is killed before the unmount, as slow_origin.py does."""
    with mounted(node) as mount:
        try:
            yield mount
        finally:
            mount.kill()


@contextlib.contextmanager
def prepared(where):
    """(nodes, SlowOrigin, directory of the model) with the model at the origin alone."""
    with nodes_with_origin(where, CASE.nodes) as (nodes, origin):
        source = CASE.model(where)
        try:
            publish_at_origin(nodes, origin, source)
            shape(nodes, CASE.mbit)
            yield nodes, origin, source
        except (AssertionError, OSError, RuntimeError):
            print_logs(nodes)
            raise


def read(nodes, cats, origin, source, victim=None):
    """(Reading of each node, bytes that the origin gave, share of the cores that were busy). The nodes have nothing of the
    model before."""
    cores = Cores()
    for node in nodes:
        wait_idle(node)
        node.store.weft("evict", "--all")
    with contextlib.ExitStack() as stack:
        mounts = [stack.enter_context(mount_of(node)) for node in nodes]
        for cat in cats:
            stack.callback(cat.kill)
        readings = [Reading(*parts) for parts in zip(nodes, mounts, cats)]
        before = origin.sent()
        with cores.measured():
            watch(readings, readings[victim] if victim is not None else None)
        gave = origin.sent() - before
        good = [reading for reading in readings if not reading.killed and not reading.failures]
        for reading in good:
            run(["cmp", reading.file, source / FILE])
    if good and gave < CASE.size:
        raise RuntimeError(f"the origin gave {gave} bytes, fewer than the model has: a node had them")
    return readings, gave, cores.busy[0]


def print_table(readings, gave, busy, alone):
    print("\nnode    seconds  from partners  from origin   (MiB)")
    for reading in readings:
        print(reading.cells())
    counted = sum(reading.bytes["origin"] for reading in readings)
    print(f"\nThe origin gave {gave / CASE.size:.2f} copies of the model ({gave / MIB:.0f} MiB). By the nodes' counts, "
          f"{counted / CASE.size:.2f}.")
    ended = [reading.seconds for reading in readings if not reading.killed and not reading.failures]
    if ended:
        print(f"One node alone: {alone:.2f} s. The last of {len(ended)} at once: {max(ended):.2f} s, "
              f"{max(ended) / alone:.2f} times as long. The machine was busy {busy:.0%}.")
    print(f"cmp found no difference between the source and the files of these {len(ended)} nodes.", flush=True)


def print_logs(nodes):
    for node in nodes:
        print(f"\nThe log of {node.directory.name} ends with:")
        print("\n".join(node.daemon.said().splitlines()[-LOG_LINES:]), flush=True)


def print_logs_of_failed(readings):
    """Of nodes whose reader has failed, or whose daemon has ended by itself."""
    print_logs([reading.node for reading in readings
                if not reading.killed and (reading.failures or not reading.node.daemon.alive())])


def print_simulated():
    say(f"The simulator, with {CASE.mbit} Mbit/s for the source and for each node, and no node killed:")
    print(f"{'nodes':>6}  {'model':>8}  {'one alone':>9}  {'last node':>9}  {'÷ alone':>7}  {'copies':>6}", flush=True)
    for nodes, size in SIMULATED:
        found = simulate(BUILD, nodes=nodes, size=size * MIB, link=CASE.mbit, seed=1)
        last = f"{found['last'] * found['alone']:7.2f} s"
        if found["unfinished"]:
            last = f"{found['unfinished']:.0f} unfinished"
        print(f"{nodes:6,}  {size:4} MiB  {found['alone']:7.2f} s  {last:>9}  {found['last']:7.2f}  {found['copies']:6.2f}",
              flush=True)


def show(where):
    """Returns whether every node that was not killed has read the model."""
    say(f"{CASE.nodes} nodes in network namespaces, with links of {CASE.mbit} Mbit/s each way. One origin, held to "
        f"{ORIGIN_SPEED // 10**6} MB/s,\n   is the only holder of a model of {CASE.size // MIB} MiB of random bytes.")
    with prepared(where) as (nodes, origin, source), CASE.programs(where) as cats:
        say("One node alone reads the model:")
        (one,), gave, busy = read(nodes[:1], cats[:1], origin, source)
        print_logs_of_failed([one])
        print(f"{one.state()}. The origin gave {gave / CASE.size:.2f} copies. The machine was busy {busy:.0%}.")
        say(f"All nodes read it at once. {nodes[VICTIM].directory.name} is killed (kill -9 of its weftd, mount and reader) "
            "when it has half:")
        readings, gave, busy = read(nodes, cats, origin, source, VICTIM)
        print_table(readings, gave, busy, one.seconds)
        print_logs_of_failed(readings)
    print_simulated()
    Steps.end()
    return not one.failures and not any(reading.failures for reading in readings)


def end_children():
    """Kills the programs whose start a signal interrupted: no context ends them."""
    for pid, (parent, _) in processes().items():
        if parent == os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def main():
    end_by_signals()
    begin = time.perf_counter()
    try:
        complete = show(pathlib.Path(sys.argv[1]))
    except (AssertionError, OSError, RuntimeError) as failure:
        raise SystemExit(f"demo swarm: {failure}") from failure
    finally:
        end_children()
    print(f"\nDone, in {time.perf_counter() - begin:.0f} s.")
    sys.exit(0 if complete else "demo swarm: a read has failed")


if __name__ == "__main__":
    main()
