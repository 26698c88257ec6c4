"""Runs of the simulator of swarms (bench/swarm_sim.cc), and the numbers that it prints."""

import re
import statistics
import subprocess

SEEDS = range(1, 6)  # of simulated()
LINE = re.compile(
    r"nodes (?P<nodes>\d+) alone (?P<alone>\S+) s; last (?P<last>\S+) median (?P<median>\S+) \(of one alone\); "
    r"slow (?P<slow>[^;]+); first unit (?P<first>\S+) \(last (?P<first_last>[^)]+)\); copies (?P<copies>[^;]+); "
    r"core (?P<core>[^;]+); messages a unit (?P<messages>[^;]+); declined (?P<declined>[^;]+); "
    r"silent wants (?P<silent_wants>\d+); slow reads (?P<slow_reads>\d+); unread uploads (?P<unread_uploads>\d+); "
    r"left (?P<left>\d+); from holders (?P<from_holders>[^;]+); unfinished (?P<unfinished>\d+); digest \w+; "
    r"\d+ events in (?P<seconds>\S+) s, (?P<mib>\d+) MiB")


def words_of(options):
    """Words of a command line. True stands for an option without a value."""
    out = []
    for name, value in options.items():
        out += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return out


def simulate(build, **options):
    """Name -> number of what one run prints. `options` are those of swarm_sim."""
    command = [str(build / "bench/swarm_sim"), *words_of(options)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = LINE.search(done.stdout)
    if found is None:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return {name: float(text) for name, text in found.groupdict().items()}


def simulated(build, case, **options):
    """Name -> the median of what SEEDS print, with the nodes, the size and the links of a case of the net bench."""
    runs = [simulate(build, nodes=case.nodes, size=case.size, link=case.mbit, seed=seed, **options) for seed in SEEDS]
    if any(one["unfinished"] for one in runs):
        raise RuntimeError("a node of the simulator did not end")
    return {name: statistics.median(one[name] for one in runs) for name in runs[0]}
