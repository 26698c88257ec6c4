"""Writers and a reader that run again and again beside a command, and the longest time that it stalls one of them."""

import dataclasses
import itertools
import os
import statistics
import subprocess
import threading
import time

from scale_store import write_model

ALONE_SECONDS, ALONE_RUNS = 1.5, 5  # at least, of each before the command


@dataclasses.dataclass
class Stall:
    """The longest run beside the command, less the median of the runs before it."""

    seconds: float
    runs: int
    failed: int


class Beside:
    """`weft tag`, `weft import` and `weft info` in a loop each. They have a model of
    their own, which prepare() makes."""

    def __init__(self, store):
        self.store = store
        self.source = store.directory / "beside.safetensors"
        self.names = itertools.count()
        self.messages = []  # of the runs that failed
        self.prepare()

    def prepare(self):
        for _ in range(2):
            self.import_model("beside/tagged")

    def import_model(self, name):
        write_model(self.source, {"weight": os.urandom(64)})
        return self.run("import", self.source, "--name", name)

    def import_once(self):
        return self.import_model(f"beside/new{next(self.names)}")

    def tag_once(self):
        return self.run("tag", f"beside/tagged@{next(self.names) % 2 + 1}", "moving")

    def info_once(self):
        return self.run("info", "beside/tagged@1")

    def run(self, *words):
        """Whether the command succeeded."""
        done = subprocess.run(self.store.command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            self.messages.append(done.stderr.strip())
        return done.returncode == 0

    def stalls(self, work):
        """Runs work(); returns (its result, {"tag": Stall, "import": Stall, "info": Stall})."""
        ended, runs = threading.Event(), {"tag": [], "import": [], "info": []}

        def loop(name, once):
            while not ended.is_set():
                begin = time.perf_counter()
                succeeded = once()
                runs[name].append((begin, time.perf_counter(), succeeded))
                time.sleep(0.005)

        loops = [threading.Thread(target=loop, args=(name, getattr(self, f"{name}_once"))) for name in runs]
        for one in loops:
            one.start()
        try:
            time.sleep(ALONE_SECONDS)
            while min(map(len, runs.values())) < ALONE_RUNS:
                time.sleep(0.01)
            begin = time.perf_counter()
            result = work()
            end = time.perf_counter()
        finally:
            ended.set()
            for one in loops:
                one.join()
        return result, {name: self.stall(runs[name], begin, end) for name in runs}

    @staticmethod
    def stall(runs, begin, end):
        alone = [to - since for since, to, _ in runs if to < begin]
        beside = [(to - since, succeeded) for since, to, succeeded in runs if to >= begin and since <= end]
        longest = max((took for took, _ in beside), default=0)
        return Stall(max(0, longest - statistics.median(alone)), len(beside), sum(not ok for _, ok in beside))
