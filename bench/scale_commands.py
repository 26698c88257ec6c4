"""What each command costs on a filled store, and how long the long ones stall a writer and a reader."""

import dataclasses
import os
import statistics
import subprocess
import sys
import time

from measure import processor_seconds, run
from memory import memory, mount_pids
from scale_beside import Beside
from scale_store import MIB, Cost, cost_of, write_model

STALL_SECONDS_MAX = 1
BESIDE_SECONDS = 1  # a shorter command runs again and again beside the writers
WALKS = 3
WALK_RATIO_MAX = 1.3
WALK = '''
import os, sys
with os.scandir(sys.argv[2]) as entries:
    for entry in list(entries) if sys.argv[1] == "names" else entries:
        if entry.is_dir():
            os.listdir(entry.path)
'''


class Commands:
    def __init__(self, store):
        self.store = store
        self.beside = Beside(store)
        self.failed = 0
        self.longest = 0.0
        self.notes = []

    def run(self):
        print("| command | time | processor | peak | written | writer's stall | its commits, failed | reader's stall |\n"
              "|---|---|---|---|---|---|---|---|")
        self.reading()
        self.writing()
        self.mounting()
        self.walking()
        self.removing()
        met = "yes" if self.failed == 0 and self.longest <= STALL_SECONDS_MAX else "NO"
        print(f"\nLongest stall of a writer {self.longest:.2f} s, {self.failed} failed commits; the goal is at most "
              f"{STALL_SECONDS_MAX} s and none: {met}.")
        for note in self.notes:
            print(f"\n{note}")
        for message in sorted(set(self.beside.messages)):
            print(f"- {message}")

    def reading(self):
        store = self.store
        self.row("info", store.median_cost("info", store.version))
        self.row("tag MODEL", store.median_cost("tag", store.model))
        for words in (["ls"], ["ls", store.model], ["log", store.model], ["du"], ["find", "metric.loss < 0.0001"],
                      ["find", "tensors > 1000000"], ["fsck", "--quick"]):
            cost = store.median_cost(*words)
            _, stalls = self.beside.stalls(lambda: store.repeat_for(BESIDE_SECONDS, *words))
            self.row(" ".join(words).replace(store.model, "MODEL"), cost, stalls)

    def writing(self):
        store, source = self.store, self.store.directory / "new.safetensors"
        self.row("tag MODEL@V TAG", store.median_cost("tag", store.version, "t{}"))
        costs = []
        for turn in range(5):
            write_model(source, {f"weight{i}": os.urandom(64) for i in range(2)})
            costs.append(store.cost("import", source, "--name", f"new{turn}"))
        self.row("import", Cost.median(costs))
        self.row("rm MODEL@V", store.median_cost("rm", "new{}@1"))

    def mounting(self):
        """The server's processor time and memory."""
        store, point = self.store, self.store.directory / "mnt"
        point.mkdir(exist_ok=True)
        begin = time.perf_counter()
        try:
            run(*store.command("mount", point))
            subprocess.run(["ls", "-f", point / store.largest_directory], check=True, stdout=subprocess.DEVNULL)
            took, pids = time.perf_counter() - begin, mount_pids(point)
            self.row("mount, and ls -f of the largest directory",
                     Cost(took, sum(processor_seconds(pid) for pid in pids), memory(pids), 0))
        finally:
            if os.path.ismount(point):
                run(store.weft, "umount", point)

    def walking(self):
        """A program that opens the children of the largest directory while it lists it, against one that reads all names
        first. Each has a mount of its own. The processor's time is that of the program and the server together."""
        costs = {"names": [], "along": []}
        for _ in range(WALKS):
            for how in costs:
                costs[how].append(self.walk(how))
        names, along = (Cost.median(costs[how]) for how in ("names", "along"))
        self.row("walk of the largest directory, names first", names)
        self.row("the same, children opened while it lists", along)
        ratios = [ours.processor_seconds / peer.processor_seconds
                  for ours, peer in zip(costs["along"], costs["names"])]
        ratio = statistics.median(ratios)
        self.notes.append(f"A walk that opens children while it lists takes {ratio:.2f} times the processor's time of one "
                          f"that reads the names first; the goal is at most {WALK_RATIO_MAX}: "
                          f"{'yes' if ratio <= WALK_RATIO_MAX else 'NO'}.")

    def walk(self, how):
        store, point = self.store, self.store.directory / "mnt"
        try:
            run(*store.command("mount", point))
            pids = mount_pids(point)
            before = sum(processor_seconds(pid) for pid in pids)
            cost = cost_of(sys.executable, "-c", WALK, how, point / store.largest_directory)
            server = sum(processor_seconds(pid) for pid in pids) - before
            return dataclasses.replace(cost, processor_seconds=cost.processor_seconds + server, peak=memory(pids))
        finally:
            if os.path.ismount(point):
                run(store.weft, "umount", point)

    def removing(self):
        """These change the store, so that they are measured once, beside the writers."""
        self.store.fill("second")
        self.beside.prepare()
        for name, words in (("rm --all of as many versions †", ["rm", "--all", "second"]), ("gc of these †", ["gc"])):
            self.row(name, *self.beside.stalls(lambda: self.store.cost(*words)))

    def row(self, name, cost, stalls=None):
        line = (f"| {name} | {cost.seconds:.3f} s | {cost.processor_seconds:.3f} s | {cost.peak / MIB:.1f} MiB "
                f"| {cost.written / MIB:.2f} MiB |")
        if stalls is None:
            print(line + " | | |", flush=True)
            return
        writers = [stalls["tag"], stalls["import"]]
        stall, failed = max(one.seconds for one in writers), sum(one.failed for one in writers)
        self.longest, self.failed = max(self.longest, stall), self.failed + failed
        print(f"{line} {stall:.2f} s | {sum(one.runs for one in writers)}, {failed} | {stalls['info'].seconds:.2f} s |",
              flush=True)
