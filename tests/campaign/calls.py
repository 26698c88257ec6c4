"""Kills and failed calls: each command of a load, stopped before each of its system calls, or with each call failed."""
import dataclasses
import errno
import hashlib
import itertools
import shutil

from disks import copy_tree, file_system
from load import Load, Step
from oracle import Expected, Export, Problem, Remove, outcomes
from store_files import VOLATILE, files_of, folders_of
from totals import Outcome
from weft_store import Store, check_store, places, run_program

STEPS = 12
# A pass over all steps takes every STRIDE-th call, so that a short run sees something of each command.
STRIDE = 8
SAID_MAX = 160  # of what a command said
ERRORS = ("EIO", "EMFILE", "ENOMEM", "ENOSPC")
WAYS = [(error, lasting) for error in ERRORS for lasting in ("once", "on")]
# What a command says when its disk failed between the record of a change and the commit of the index.
NOT_KNOWN = "; whether it was done is not known: see `weft log`"
READERS = [Step(["ls"]), Step(["find"])]


@dataclasses.dataclass
class Base:
    """A step, what the store must show before it, and a copy of the store."""
    number: int
    step: Step
    before: Expected
    copy: object
    out: str = ""  # what the step prints


def make_load(seed):
    load = Load(f"calls {seed}", STEPS)
    return [Step(["init"]), *load.steps, load.gc(), load.rebuild(), load.export() or load.fsck(), *READERS]


def make_bases(store, folder, steps):
    """Runs the load once, unharmed, and copies the store before each step."""
    bases, expected = [], Expected()
    for number, step in enumerate(steps):
        store.prepare(step)
        base = Base(number, step, expected, folder / str(number))
        copy_tree(store.path, base.copy)
        bases.append(base)
        done = run_program(store.words(step))
        if not done.ok and not step.may_refuse:
            raise LoadFailed(f"{step.verb}: {done.said}")
        base.out = done.out
        if done.ok:
            # Exports lie beside the store: they are not there when a later step begins.
            expected = expected.after(*(effect for effect in step.effects if not isinstance(effect, Export)))
    return bases


class LoadFailed(Exception):
    """A command failed to which nothing was done."""


def stamp(store):
    """Differs if any file of the store was made, removed or written, or any directory made or removed."""
    def facts(path):
        found = path.stat()
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
    files = {name: facts(path) for name, path in files_of(store).items() if name not in VOLATILE}
    return store.exists(), folders_of(store), files


def digest(store):
    total = hashlib.sha256(repr((store.exists(), folders_of(store))).encode())
    for name, path in files_of(store).items():
        if name not in VOLATILE:
            total.update(f"{name} {path.stat().st_size} ".encode())
            total.update(path.read_bytes())
    return total.digest()


class Caller:
    """Runs the steps of one load under the tracer, and checks what they leave. Equal stores are checked once."""

    def __init__(self, job, root, seed):
        self.tracer, self.seed = job.tracer, seed
        area = places(root)
        self.store = Store(job.weft, area, job.area)
        self.report = job.area / "report"
        folder = root / "bases"
        folder.mkdir(exist_ok=True)
        self.bases = make_bases(self.store, folder, make_load(seed))
        self.sound = set()
        self.restored = None  # the base that the store is a copy of, and its stamp

    def trace(self, base, mode, *how):
        words = [self.tracer, mode, self.store.path, self.report, *how, *self.store.words(base.step)]
        return run_program(words)

    def calls(self, base):
        """The lines of a step's calls: number, fallible or other, name, path."""
        self.restore(base)
        self.trace(base, "list")
        self.restored = None
        return [line.split(maxsplit=3) for line in self.report.read_text().splitlines()]

    def restore(self, base):
        if self.restored is None or self.restored[0] is not base or stamp(self.store.path) != self.restored[1]:
            copy_tree(base.copy, self.store.path)
            self.restored = (base, stamp(self.store.path))
        shutil.rmtree(self.store.exports, ignore_errors=True)
        self.store.exports.mkdir()

    def run(self, base, mode, *how):
        """The Problems of one call of one step that is killed at or fails, and what happened, in words."""
        self.restore(base)
        done = self.trace(base, mode, *how)
        return self.judge(base, mode, how, done), f"{base.step.verb}, {self.named(mode, how)}, {short(done)}"

    def judge(self, base, mode, how, done):
        problems = self.judge_answer(base, mode, how, done)
        untouched = stamp(self.store.path) == self.restored[1]
        if problems or (untouched and not (done.ok and base.step.effects)):
            return problems
        states = self.allowed(base, done)
        key = (digest(self.store.path), base.number, len(states), done.ok)
        if key not in self.sound:
            self.restored = None
            must_exist = base.number > 0 or done.ok
            problems = check_store(self.store, states, f"{self.seed} {base.number}", must_exist)
            if not problems:
                self.sound.add(key)
        return [Problem(problem.kind, f"{base.step.verb}: {problem.text}") for problem in problems]

    def judge_answer(self, base, mode, how, done):
        """A command may be killed by the tracer alone, and it must end. If it succeeds, it prints what it prints otherwise."""
        if done.status is None or (done.status > 128 and not (mode == "kill" and done.status == 137)):
            return [Problem("stuck", f"{base.step.verb}: {done.said}")]
        if mode == "kill" and done.status not in (0, 137) and not base.step.may_refuse:
            return [Problem("stuck", f"{base.step.verb}, not killed: {done.said}")]
        if base.step in READERS and done.ok and done.out != base.out:
            return [Problem("wrong", f"{base.step.verb} succeeds and prints something else")]
        # A command whose every later call fails, or that was killed, cannot remove what it made.
        could_remove = mode == "fail" and "on" not in how and not done.ok
        if could_remove and any(self.store.exports.iterdir()):
            return [Problem("wrong", f"{base.step.verb} failed and left something in the directory")]
        return []

    @staticmethod
    def allowed(base, done):
        """A command that refuses has done what it said that it did and nothing else, unless its message says that this is
        not known."""
        if done.ok:
            return [base.before.after(*base.step.effects)]
        said = [effect for effect in base.step.effects if is_said(effect, done.out)]
        rest = [effect for effect in base.step.effects if effect not in said]
        before = base.before.after(*said)
        return outcomes(before, rest) if done.status == 137 or NOT_KNOWN in done.err else [before]

    def named(self, mode, how):
        """The call that was stopped or failed, in words."""
        words = self.report.read_text().split()
        return " ".join([mode, words[2] if len(words) > 2 else "nothing", *(str(word) for word in how[1:])])


def is_said(effect, out):
    """`weft rm` prints each removal as it happens."""
    return isinstance(effect, Remove) and f"removed {effect.model}@{effect.number}" in out.splitlines()


def short(done):
    return "did it" if done.ok else "killed" if done.status == 137 else f"refused with {done.said[:SAID_MAX]}"


def every_kill(caller):
    """(state, base, how) of each call of each step, some of each step first."""
    counts = [(base, len(caller.calls(base))) for base in caller.bases if base.step not in READERS]
    for phase in range(STRIDE):
        for base, count in counts:
            for number in range(1 + phase, count + 1, STRIDE):
                yield f"{base.number}:{number}", base, (number,)


def way_of(number, turn):
    """The error that call `number` gets, and how long: over len(WAYS) turns each of WAYS once, and in each turn a mix."""
    return WAYS[(number + number // STRIDE + turn) % len(WAYS)]


def every_failure(caller):
    """As every_kill, of calls that files can make fail, with each error once and from then on."""
    counts = [(base, sum(call[1] == "fallible" for call in caller.calls(base))) for base in caller.bases]
    for turn, phase in itertools.product(range(len(WAYS)), range(STRIDE)):
        for base, count in counts:
            for number in range(1 + phase, count + 1, STRIDE):
                error, lasting = way_of(number, turn)
                yield f"{base.number}:{number}:{error}:{lasting}", base, (number, getattr(errno, error), lasting)


def outcomes_of(job, kind, seed, mode, wanted=None, skip=frozenset()):
    """Yields the Outcome of each kill or failed call of one seed; with `wanted`, a state's name, of that one."""
    with file_system(job.area, kind) as root:
        try:
            caller = Caller(job, root, seed)
        except LoadFailed as failure:
            yield Outcome("load", [Problem("stuck", str(failure))], "nothing was done to it")
            return
        for state, base, how in (every_kill if mode == "kill" else every_failure)(caller):
            if state not in skip and wanted in (None, state):
                yield Outcome(state, *caller.run(base, mode, *how))
