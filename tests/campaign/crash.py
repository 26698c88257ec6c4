"""Crash states: a load on a recorded disk, and the store on each state that the disk may have been left in by a power cut."""
import contextlib
import random
import subprocess

import disk_log
from disks import MKFS, REPAIR, RecordedDisk, Replay, mounted, run
from load import Load, Step
from oracle import Expected, Problem, outcomes
from totals import Outcome
from weft_store import Store, check_store, finish, places, run_program

STEPS = 24
STATES = 60  # of one recording


def make_load(seed):
    load = Load(f"crash {seed}", STEPS, beside=True)
    load.steps.insert(0, Step(["init"]))
    return load.steps


class Recording:
    """The log of one load, with what was answered by when."""

    def __init__(self, log, steps):
        self.log, self.steps = log, steps
        self.records = disk_log.parse(log)
        self.marks = disk_log.marks(log, self.records)
        self.first = next(position for position, text in self.marks if text.startswith("begin"))

    def progress(self, position):
        """(steps that were answered, steps that ran) when the disk saw record `position`."""
        answered, running = [], []
        for at, text in self.marks:
            word, number = text.split()[:2]
            if at >= position:
                break
            if word == "begin":
                running.append(int(number))
            elif word == "end":
                running.remove(int(number))
                answered.append(int(number))
        return answered, running

    def describe(self, position):
        """What ran when the disk stopped, in words."""
        running = [self.steps[number].verb for number in self.progress(position)[1]]
        return " beside ".join(running) or "nothing ran"

    def states(self, position):
        """The states of the oracle that a crash may leave, and whether the store must be there."""
        answered, running = self.progress(position)
        expected = Expected()
        for number in answered:
            expected = expected.after(*self.steps[number].effects)
        effects = [effect for number in running for effect in self.steps[number].effects]
        return outcomes(expected, effects), bool(answered)


def play(store, disk, steps):
    """Runs the load. Returns the Problems of commands that failed; a load stops at one."""
    beside = None
    for number, step in enumerate(steps):
        store.prepare(step)
        disk.mark(f"begin {number}")
        process = run_program(store.words(step), wait=False)
        if step.beside and beside is None and number + 1 < len(steps):
            beside = (number, process)
            continue
        problems = end(disk, steps, number, process)
        if beside:
            problems += end(disk, steps, *beside)
            beside = None
        if problems:
            return problems
    return []


def end(disk, steps, number, process):
    done = finish(process)
    if not done.ok and not (steps[number].may_refuse and not done.is_stuck):
        return [Problem("stuck" if steps[number].verb != "fsck" else "untrue", f"{steps[number].verb}: {done.said}")]
    disk.mark(f"end {number}")
    return []


def record(job, kind, seed):
    """Records one load. Returns its log and the Problems of the load itself."""
    steps, rng = make_load(seed), random.Random(f"disk {seed}")
    options = ["discard"] if rng.random() < 0.5 else []
    with RecordedDisk(job.recorder, job.area, kind) as disk:
        run(*MKFS[kind], disk.disk)
        with mounted(disk.disk, job.area / "load", options) as where:
            store = Store(job.weft, places(where), job.area)
            run("sync", "-f", where)
            problems = play(store, disk, steps)
    log = disk.log.read_bytes()
    disk.log.unlink()
    return log, problems


def mount_crashed(stack, image, where, kind):
    """Mounts what the crash left. Returns False if the file system had to be repaired for that."""
    options = ["nouuid"] if kind == "xfs" else []
    try:
        stack.enter_context(mounted(image, where, options))
        return True
    except subprocess.CalledProcessError:
        run(*REPAIR[kind], image, check=False)
        stack.enter_context(mounted(image, where, options))
        return False


def check_state(job, kind, recording, replay, state):
    """Problems of one crash state (position, kind, draw)."""
    position, survivors, draw = state
    durable = disk_log.durable_end(recording.records, position)
    image = replay.make(durable, disk_log.unflushed(recording.records, *state))
    states, must_exist = recording.states(position)
    with contextlib.ExitStack() as stack:
        where = job.area / "crashed"
        if not mount_crashed(stack, image, where, kind):
            job.note(f"{kind}: the file system did not mount and was repaired: {name_of(state)}")
        store = Store(job.weft, places(where), job.area)
        return check_store(store, states, f"{position} {survivors} {draw}", must_exist)


def name_of(state):
    return ":".join(str(part) for part in state)


def parse_name(name):
    position, survivors, draw = name.split(":")
    return int(position), survivors, int(draw)


def outcomes_of(job, kind, seed, wanted=None):
    """Yields the Outcome of each crash state of one seed; with `wanted`, a state's name, of that one."""
    kept = job.kept(f"crash-{kind}-{seed}.log")
    replayed = wanted is not None and kept.exists()
    log, problems = (kept.read_bytes(), []) if replayed else record(job, kind, seed)
    if problems:
        yield Outcome("load", problems, "nothing was done to it")
    recording = Recording(log, make_load(seed))
    replay = Replay(job.area, kind, log, recording.records)
    states = disk_log.draw_states(recording.records, recording.first, STATES, random.Random(f"states {seed}"))
    if wanted is not None:
        states = [parse_name(wanted)] if wanted != "load" else []
    for state in states:
        problems = check_state(job, kind, recording, replay, state)
        if problems and not kept.exists():
            kept.write_bytes(log)
        yield Outcome(name_of(state), problems, recording.describe(state[0]))
