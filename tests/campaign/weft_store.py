"""A store that is driven through `weft`, and what it shows compared with what it must show."""
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess

from models import Model
from oracle import Problem, Publish, closest, reachable

COMMAND_SECONDS_MAX = 60
TEXT_MAX = 300  # of a program's error line that a finding keeps


@dataclasses.dataclass
class Done:
    """status: as a shell has it, 128 and more for a signal; None if the command did not end in time."""
    status: int
    out: str
    err: str

    @property
    def ok(self):
        return self.status == 0

    @property
    def is_stuck(self):
        return self.status is None or self.status > 128

    @property
    def said(self):
        text = re.sub(r"/\S*weft-campaign\.\w+/", "", self.err + "\n" + self.out)  # the directory of this run
        lines = [line for line in text.splitlines() if line.strip()]
        how = "did not end" if self.status is None else f"status {self.status}"
        return f"{how}: {' | '.join(lines)}"[:TEXT_MAX]


def environment():
    kept = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
    return kept | {"LC_ALL": "C.UTF-8"}


def run_program(words, wait=True):
    """Runs a program in a process group of its own, which ends with it."""
    process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="replace", env=environment(), start_new_session=True)
    return finish(process) if wait else process


def finish(process):
    try:
        out, err = process.communicate(timeout=COMMAND_SECONDS_MAX)
        status = process.returncode
        return Done(status if status >= 0 else 128 - status, out, err)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return Done(None, out, err)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def write_files(directory, files):
    shutil.rmtree(directory, ignore_errors=True)
    for name, file in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)


def equals(directory, files):
    """True if the directory holds these files, each byte for byte, and no others."""
    found = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if path.is_file()}
    return found.keys() == files.keys() and all(found[name].read_bytes() == file.data for name, file in files.items())


class Store:
    """`area` has the directories store, sources and exports; `spare` is where versions are exported to be compared."""

    def __init__(self, weft, area, spare):
        self.weft_path, self.spare = weft, spare
        self.path, self.sources, self.exports = area / "store", area / "sources", area / "exports"

    def words(self, step):
        places = {"sources": self.sources, "exports": self.exports}
        return [self.weft_path, "--store", self.path, *(word.format(**places) for word in step.words)]

    def prepare(self, step):
        self.exports.mkdir(exist_ok=True)
        for folder, files in step.sources.items():
            write_files(self.sources / folder, files)

    def weft(self, *words):
        return run_program([self.weft_path, "--store", self.path, *words])

    def listing(self):
        """((model, number) of every version, (model, tag) -> number), or the Done of the command that failed."""
        models, versions = self.weft("ls", "--json"), self.weft("find", "--json")
        for done in (models, versions):
            if not done.ok:
                return done
        tags = {(model["model"], tag): number for model in json.loads(models.out)["models"]
                for tag, number in model["tags"].items()}
        return {(row["model"], row["version"]) for row in json.loads(versions.out)["versions"]}, tags

    def read(self, version, files):
        """None if the version comes back byte for byte, else a Problem."""
        name, target = f"{version[0]}@{version[1]}", self.spare / "export"
        shutil.rmtree(target, ignore_errors=True)
        done = self.weft("export", name, target)
        if done.is_stuck:
            return Problem("stuck", f"export {name}: {done.said}")
        if not done.ok:
            return Problem("lost", f"export {name}: {done.said}")
        return None if equals(target, files) else Problem("wrong", f"{name} has other bytes")

    def read_all(self, live):
        return [problem for version, files in sorted(live.items()) if (problem := self.read(version, files))]


def check_listed(store, states):
    """(the state that the store lists, Problems)."""
    shown = store.listing()
    if isinstance(shown, Done):
        return states[0], [Problem("stuck" if shown.is_stuck else "lost", f"listing: {shown.said}")]
    return closest(*shown, states)


def check_shown(store, states):
    """(the state that the store shows, Problems) of listings, contents and exports."""
    state, problems = check_listed(store, states)
    if problems:
        return state, problems
    for directory, files in state.exports.items():
        if not (store.exports / directory).is_dir() or not equals(store.exports / directory, files):
            problems.append(Problem("lost", f"export {directory} is not whole"))
    return state, problems + store.read_all(state.live)


def check_clean(store):
    """fsck must find a sound store clean."""
    done = store.weft("fsck")
    if done.ok:
        return []
    return [Problem("stuck" if done.is_stuck else "untrue", f"fsck: {done.said}")]


def must_work(store, *words):
    done = store.weft(*words)
    return [] if done.ok else [Problem("stuck", f"{words[0]}: {done.said}")]


def publish_more(store, states, seed):
    """Imports another model, which must get a number that was never given. Returns the states after it, and Problems."""
    model = Model.draw(random.Random(f"more {seed}"))
    write_files(store.spare / "more", model.files)
    done = store.weft("import", store.spare / "more", "--name", "a", "--json")
    if not done.ok:
        return states, [Problem("stuck", f"import afterwards: {done.said}")]
    number = json.loads(done.out)["version"]
    given = number <= min(state.numbers.get("a", 0) for state in states)
    problems = [Problem("wrong", f"a@{number} is given again")] if given else []
    return [state.after(Publish("a", number, model.files)) for state in states], problems


def check_first_look(store, states):
    """(the states that remain possible, Problems) of the store as it was left. A change that was interrupted may be in the
    journal alone; it then shows as soon as the next writer has replayed that."""
    state, problems = check_shown(store, states)
    return reachable(states, state), problems or check_clean(store)


def check_store(store, states, seed, must_exist=True):
    """Problems of a store after something went wrong: what it shows, then whether a publish, gc and a rebuild go on from it.
    Stops at the first stage that has any."""
    problems = []
    if must_exist or not isinstance(store.listing(), Done):
        states, problems = check_first_look(store, states)
    if not problems:
        states, problems = publish_more(store, states, seed)
    if not problems:
        state, problems = check_listed(store, states)  # the contents are read below
    stages = [lambda: must_work(store, "gc"), lambda: check_clean(store), lambda: must_work(store, "fsck", "--rebuild"),
              lambda: check_shown(store, [state])[1], lambda: check_clean(store)]
    for stage in stages:
        problems = problems or stage()
    return problems


def places(root):
    """The directory of a run on a file system, which `weft` may write to."""
    area = pathlib.Path(root) / "run"
    area.mkdir(exist_ok=True)
    return area
