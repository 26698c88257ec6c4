"""Indexes that hold samples of a space, and what is asked of them."""

import json
import shutil
import subprocess

import measure
from read_set import forget


class Samples:
    """Stores whose index is filled; those in --keep are taken as they are when they were filled before, and filling
    goes on there where it was ended."""

    def __init__(self, build, directory, args):
        self.program = [build / "bench/weft_bench_lineage_match"] + (["--cpu"] if args.cpu else [])
        self.directory = args.keep or directory
        self.kept = args.keep is not None
        self.directory.mkdir(parents=True, exist_ok=True)

    def ask(self, *words):
        out = measure.run(*self.program, *words)
        return json.loads(out) if out else None

    def filled(self, space, count):
        """(the store, what filling it said)"""
        store = self.directory / f"{space}-{count}"
        facts = self.directory / f"{space}-{count}.json"
        if not facts.exists():
            said = self.ask("fill", store, *words_of(space), count)
            facts.write_text(json.dumps(said | pages_of(store)))
        return store, json.loads(facts.read_text())

    def query(self, store, space, clients, queries):
        """Warm: the index is in memory and mapped, and each client has asked as often before. It is brought in anew, by reads
        in order: what was written lately lies in small pages, and each look into those may miss the processor's own table of
        pages."""
        forget(store / "index/data.mdb")
        subprocess.run(["cat", store / "index/data.mdb"], check=True, stdout=subprocess.DEVNULL)
        each = max(1, queries // clients)
        return self.ask("query", store, *words_of(space), clients, each, each)

    def done_with(self, store):
        if not self.kept:
            shutil.rmtree(store)
            store.with_suffix(".json").unlink()


def words_of(space):
    """"seq-50" as the program takes it."""
    kind, layers = space.split("-")
    return layers, kind


def pages_of(store):
    """What the index takes without the pages that the next transactions use again."""
    index = store / "index/data.mdb"
    said = measure.run("mdb_stat", "-n", "-e", "-f", index)
    index.with_name("data.mdb-lock").unlink(missing_ok=True)  # of mdb_stat; the store has locks of its own
    numbers = dict(line.strip().split(": ") for line in said.splitlines() if ": " in line)
    used = int(numbers["Number of pages used"]) - int(numbers["Free pages"])
    return {"used_bytes": used * int(numbers["Page size"])}


def yes(met):
    return "yes" if met else "NO"
