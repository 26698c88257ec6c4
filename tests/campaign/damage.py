"""Damaged files: what `fsck` says of a store with random damage, and what a rebuild brings back.

The oracle of repair: if every byte that a version needs is undamaged somewhere in the store, the rebuild brings that version
back. A version needs its pieces, its manifest, and its records in the journal.
"""
import dataclasses
import json
import pickle
import random

import harm
from disks import copy_tree, file_system
from load import Load
from oracle import Expected, Problem, Publish, Remove, SetTag
from store_files import JOURNAL, WITH_BYTES, files_of, journal_of, kind_of, manifest_of
from totals import Outcome
from weft_store import Done, Store, places, run_program

STEPS = 16
DAMAGES = 100  # of one store


@dataclasses.dataclass
class Needs:
    """What a version consists of: contents that must be found whole in files of some kind."""
    pieces: list
    manifest: bytes
    records: list


class Original:
    """An undamaged store, what it must show, and what each of its versions needs."""

    def __init__(self, store, base, seed):
        self.store, self.base, self.expected = store, base, Expected()
        self.history = {}  # (model, tag) -> numbers that it had
        self.removals, self.records, self.manifests = {}, {}, {}
        for step in Load(f"damage {seed}", STEPS).steps:
            self.play(step)
        self.needs = {version: self.needs_of(version) for version in self.records}
        self.journal = journal_of(self.store.path)
        copy_tree(store.path, base)

    def keep(self, folder):
        """Keeps the store, as `base` has it, and what is known of it: ids and times differ when the load is played again."""
        copy_tree(self.base, folder / "store")
        facts = {name: value for name, value in vars(self).items() if name not in ("store", "base")}
        (folder / "facts").write_bytes(pickle.dumps(facts))

    def recall(self, folder):
        copy_tree(folder / "store", self.base)
        vars(self).update(pickle.loads((folder / "facts").read_bytes()))

    def play(self, step):
        self.store.prepare(step)
        before = journal_of(self.store.path)
        done = run_program(self.store.words(step))
        if not done.ok:
            if step.may_refuse:
                return
            raise LoadFailed(f"{step.verb}: {done.said}")
        record = journal_of(self.store.path)[len(before):]
        self.expected = self.expected.after(*step.effects)
        for effect in step.effects:
            self.note(effect, record, done)

    def note(self, effect, record, done):
        if isinstance(effect, Publish):
            version = effect.model, effect.number
            self.records[version] = record
            self.manifests[version] = manifest_of(self.store.path, json.loads(done.out)["manifest"])
            for tag in effect.tags:
                self.tagged(effect, tag)
        elif isinstance(effect, SetTag):
            self.tagged(effect, effect.tag)
        elif isinstance(effect, Remove):
            self.removals[effect.model, effect.number] = record

    def tagged(self, effect, tag):
        self.history.setdefault((effect.model, tag), set()).add(effect.number)

    def needs_of(self, version):
        files = self.expected.live.get(version, {})
        pieces = [piece for file in files.values() for piece in file.pieces]
        return Needs(pieces, self.manifests[version], [self.records[version]])


class LoadFailed(Exception):
    """A command failed on an undamaged store."""


class Remains:
    """What is still to be found in a damaged store."""

    def __init__(self, store):
        contents = [(kind_of(name), path.read_bytes()) for name, path in files_of(store).items()]
        self.with_bytes = [data for kind, data in contents if kind in WITH_BYTES or kind == "other"]
        self.journal = [data for kind, data in contents if kind in JOURNAL]
        self.whole = {data for _, data in contents if len(data) < harm.SMALL_MAX}

    def has_record(self, record):
        return any(record in data for data in self.journal)

    def lacks(self, needs):
        """What a version needs and is gone, in words; empty if all is there."""
        gone = [f"{len(piece)} bytes" for piece in needs.pieces if not any(piece in data for data in self.with_bytes)]
        gone += [] if needs.manifest in self.whole else ["the manifest"]
        return gone + ["a record" for record in needs.records if not self.has_record(record)]


def judge(original, store, remains, stage):
    """Problems of what a damaged store shows. Before the rebuild a version may be unreadable if fsck says so; after it only
    versions may be missing of which something is gone."""
    shown = store.listing()
    if isinstance(shown, Done):
        refused = Problem("stuck" if shown.is_stuck else "lost", f"{stage}: listing: {shown.said}")
        return [(version, refused) for version in original.expected.live], [refused] if shown.is_stuck else []
    live, tags = shown
    missing = [(version, Problem("lost", f"{stage}: {name(version)} is not listed"))
               for version in sorted(original.expected.live.keys() - live)]
    unasked = sorted(live - original.expected.live.keys())
    problems = [Problem("wrong", f"{stage}: {name(version)} is listed") for version in unasked
                if version not in original.removals or remains.has_record(original.removals[version])]
    for version in sorted(live & original.expected.live.keys()):
        problem = store.read(version, original.expected.live[version])
        if problem and problem.kind == "lost":
            missing.append((version, Problem("lost", f"{stage}: {problem.text}")))
        elif problem:
            problems.append(Problem(problem.kind, f"{stage}: {problem.text}"))
    return missing, problems + judge_tags(original, tags, stage, remains)


def judge_tags(original, tags, stage, remains):
    """A tag leads to a version that it once led to; after a rebuild from a whole journal, to the last one."""
    if stage == "rebuilt" and remains.has_record(original.journal) and tags != original.expected.tags:
        return [Problem("lost", f"{stage}: tags are {tags}, expected {original.expected.tags}")]
    return [Problem("wrong", f"{stage}: tag {key[1]} of {key[0]} is {number}") for key, number in tags.items()
            if number not in original.history.get(key, ())]


def name(version):
    return f"{version[0]}@{version[1]}"


def check_damaged(original, store, remains, packs_differ):
    """Problems of a damaged store, before and after `fsck --rebuild`. If no pack was damaged, fsck finds nothing in the end."""
    found = store.weft("fsck")
    missing, problems = judge(original, store, remains, "damaged")
    if found.is_stuck:
        problems.append(Problem("stuck", f"fsck: {found.said}"))
    if found.ok and missing:
        problems.append(Problem("untrue", f"fsck is content, but {missing[0][1].text}"))
    return problems or unnamed(store, missing, found) or check_rebuilt(original, store, remains, packs_differ)


def listed_by(store):
    shown = store.listing()
    return set() if isinstance(shown, Done) else shown[0]


def unnamed(store, missing, found):
    """fsck names each version that is listed and cannot be read, unless it says that the index itself is damaged."""
    if "fsck --rebuild" in found.out + found.err:
        return []
    listed = listed_by(store)
    silent = [version for version, _ in missing if version in listed and name(version) not in found.out + found.err]
    return [Problem("untrue", f"fsck does not name {name(silent[0])}: {found.said}")] if silent else []


def check_rebuilt(original, store, remains, packs_differ):
    done = store.weft("fsck", "--rebuild")
    if not done.ok and not done.is_stuck:
        done = store.weft("fsck", "--accept-loss")
    if done.is_stuck:
        return [Problem("stuck", f"rebuild: {done.said}")]
    missing, problems = judge(original, store, remains, "rebuilt")
    problems += [problem for version, problem in missing if not remains.lacks(original.needs[version])]
    if problems:
        return problems
    return judge_last(store.weft("fsck"), missing, listed_by(store), packs_differ)


def judge_last(found, missing, listed, packs_differ):
    """Problems of what fsck says after a rebuild: `missing` cannot be read, and some of these may still be listed."""
    unreadable = [version for version, _ in missing if version in listed]
    if found.is_stuck:
        return [Problem("stuck", f"fsck after the rebuild: {found.said}")]
    if found.ok and unreadable:
        return [Problem("untrue", f"fsck after the rebuild is content, {name(unreadable[0])} cannot be read")]
    if not found.ok and not missing and not packs_differ:
        return [Problem("untrue", f"all is rebuilt, fsck: {found.said}")]
    return []


def outcomes_of(job, kind, seed, wanted=None, skip=frozenset()):
    """Yields the Outcome of each damage of one seed's store; with `wanted`, a state's name, of that one."""
    with file_system(job.area, kind) as root:
        store = Store(job.weft, places(root), job.area)
        try:
            original = Original(store, root / "base", seed)
        except LoadFailed as failure:
            yield Outcome("load", [Problem("stuck", str(failure))], "nothing was done to it")
            return
        kept = job.kept(f"damage-{kind}-{seed}")
        if wanted is not None and kept.exists():
            original.recall(kept)
        for number in range(DAMAGES) if wanted is None else [int(wanted)]:
            if str(number) in skip:
                continue
            copy_tree(original.base, store.path)
            done = harm.damage(store.path, random.Random(f"damage {seed} {number}"))
            problems = check_damaged(original, store, Remains(store.path), "pack" in done)
            if problems and not kept.exists():
                kept.mkdir()
                original.keep(kept)
            yield Outcome(str(number), problems, done)
