"""What every bench shares: running commands, alternated pairs, medians with their interval, tables."""

import importlib
import math
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import tempfile
import time

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end(number, _frame):
    """A signal ends this program, and no other one interrupts what it does at its end."""
    for every in SIGNALS:
        signal.signal(every, signal.SIG_IGN)
    raise SystemExit(128 + number)


def end_by_signals():
    """From now on each of SIGNALS ends this program in order: contexts end what was started, and unmount what was mounted. A
    shell has what it starts in the background ignore Ctrl-C, so that is set too."""
    for number in SIGNALS:
        signal.signal(number, end)


def run(*command, **options):
    """Runs a command that must succeed; returns its standard output."""
    done = subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, text=True, **options)
    return done.stdout


def seconds(*command, **options):
    """Wall-clock seconds of a command that must succeed."""
    begin = time.perf_counter()
    run(*command, **options)
    return time.perf_counter() - begin


def settle():
    """Leaves no write-back of an earlier step to the next one."""
    os.sync()


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as f:
        f.write("3\n")


def touch_memory(size, directory):
    """The next `size` bytes of the page cache are the machine's own: a guest's host takes back what is free, and the first
    touch of it then costs ten times a later one. Whoever is timed next would pay for that, or not, as chance has it. It
    is the pages of a removed file that a file gets next; those of anonymous memory are elsewhere. Three times, and once
    more as long as that makes it faster: the host takes back meanwhile, most of all right after much was freed."""
    block = b"\1" * (1 << 20)
    before = math.inf
    time.sleep(0.5)
    for turn in range(8):
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            begin = time.perf_counter()
            for _ in range(size // len(block)):
                file.write(block)
            took = time.perf_counter() - begin
        if turn >= 2 and took > 0.8 * before:
            return
        before = took


def p99(values):
    return statistics.quantiles(values, n=100)[98] if len(values) > 1 else values[0]


def interval(values):
    """The median's interval from order statistics: at least 95 % for the sizes used here (binomial)."""
    ordered = sorted(values)
    n = len(ordered)
    low = 0
    tail = 0.0
    from math import comb

    for k in range(n // 2):
        tail += comb(n, k) / 2**n
        if tail > 0.025:
            break
        low = k
    return ordered[low], ordered[n - 1 - low]


class Pairs:
    """Ratios of two sides that were run in turn, so that the disk's moods hit both."""

    def __init__(self):
        self.ours, self.peers = [], []

    def add(self, ours, peer):
        self.ours.append(ours)
        self.peers.append(peer)

    @classmethod
    def alternate(cls, count, ours, peer, warm_up=0):
        """`count` pairs; each side is a function that returns its seconds, and goes first in every other pair."""
        pairs = cls()
        for number in range(count + warm_up):
            if number % 2:
                theirs, own = peer(), ours()
            else:
                own, theirs = ours(), peer()
            if number >= warm_up:
                pairs.add(own, theirs)
        return pairs

    def ratios(self):
        """Peer's seconds over ours: above 1, we are faster."""
        return [p / o for o, p in zip(self.ours, self.peers)]

    def row(self, name, goal=None):
        """A line of the table; without a goal it only tells."""
        ratios = self.ratios()
        low, high = interval(ratios)
        median = statistics.median(ratios)
        met = "| |" if goal is None else f"| ≥ {goal:.2f} | {'yes' if median >= goal else 'NO'}"
        return (f"| {name} | {statistics.median(self.ours):.3f} s | {statistics.median(self.peers):.3f} s "
                f"| {median:.2f} ({low:.2f} to {high:.2f}) {met} | {len(ratios)} |")


PAIR_HEAD = ("| what | weft | peer | peer ÷ weft: median (95 % interval) | goal | met | pairs |\n"
             "|---|---|---|---|---|---|---|")


def peak_memory(*command):
    """Runs a command; returns its largest RssAnon + RssShmem in bytes, sampled every 5 ms."""
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as f:
                fields = dict(line.split(":", 1) for line in f if line.startswith("Rss"))
            peak = max(peak, sum(int(fields[k].split()[0]) * 1024 for k in ("RssAnon", "RssShmem") if k in fields))
        except (FileNotFoundError, ProcessLookupError):
            pass
        time.sleep(0.005)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return peak


def processor_seconds(pid):
    """What a process and its threads used so far, in user and kernel mode."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def median_text(values, unit):
    """("median (low to high) unit", the median)."""
    low, high = interval(values)
    median = statistics.median(values)
    return f"{median:.1f} ({low:.1f} to {high:.1f}) {unit}", median


def libfuse():
    return run("fusermount3", "--version").split()[-1]


def machine(directory):
    fs = run("findmnt", "-no", "FSTYPE", "-T", directory).strip()
    with open("/proc/cpuinfo") as f:
        cpu = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "unknown CPU")
    return f"{os.cpu_count()} cores ({cpu}), Linux {platform.release().split('-')[0]}, {fs}"


def run_parts(program, args, parts):
    """run() of each module PROGRAM_PART, those of args.only or all, each in a new directory below args.dir."""
    end_by_signals()
    print(f"Taken on {machine(args.dir)}.")
    for part in args.only or parts:
        with tempfile.TemporaryDirectory(prefix="weft-bench.", dir=args.dir) as directory:
            importlib.import_module(f"{program}_{part}").run(args.build.resolve(), pathlib.Path(directory), args)
