"""Runs of the simulator of swarms (bench/swarm_sim.cc), and the numbers that it prints."""

import re
import subprocess

LINE = re.compile(
    r"nodes (?P<nodes>\d+) alone (?P<alone>\S+) s; last (?P<last>\S+) median (?P<median>\S+) \(of one alone\); "
    r"slow (?P<slow>[^;]+); first unit (?P<first>\S+) \(last (?P<first_last>[^)]+)\); copies (?P<copies>[^;]+); "
    r"core (?P<core>[^;]+); messages a unit (?P<messages>[^;]+); declined (?P<declined>[^;]+); "
    r"unfinished (?P<unfinished>\d+); digest \w+; \d+ events in (?P<seconds>\S+) s, (?P<mib>\d+) MiB")


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
