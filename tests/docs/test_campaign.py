"""scripts/campaign: what it derives from a log, what its oracle allows, how it damages, and its help."""
import json
import os
import random
import struct
import sys

import pytest

from weftlib import BUILD, NOBODY, TOP, environment, run

sys.path.insert(0, str(TOP / "tests/campaign"))

import calls  # noqa: E402
import campaign  # noqa: E402
import damage  # noqa: E402
import disk_log  # noqa: E402
import harm  # noqa: E402
import oracle  # noqa: E402
import store_files  # noqa: E402
import totals  # noqa: E402
import weft_store  # noqa: E402
from load import Load, Step  # noqa: E402
from models import File  # noqa: E402

FILES = {"f": File((b"bytes",))}


def record(kind, offset=0, data=b"", length=None):
    return struct.pack("<cQQ", kind, offset, len(data) if length is None else length) + data


LOG = b"".join([
    record(b"W", 0, b"a" * 1024), record(b"F"), record(b"M", 0, b"begin 0"), record(b"W", 4096, b"b" * 1024),
    record(b"Z", 0, length=512), record(b"M", 0, b"end 0"), record(b"F"), record(b"W", 0, b"c" * 512)])


def image(position, kind, draw=0):
    """The disk of a crash state, as a dictionary of its sectors that are not zero."""
    records = disk_log.parse(LOG)
    durable = disk_log.durable_end(records, position)
    parts = [disk_log.whole(entry) for entry in records[:durable] if disk_log.is_write(entry)]
    disk = bytearray(8192)
    for offset, length, at in parts + disk_log.unflushed(records, position, kind, draw):
        disk[offset:offset + length] = bytes(length) if at is None else LOG[at:at + length]
    sectors = {offset: disk[offset:offset + 512] for offset in range(0, 8192, 512)}
    return {offset: chr(data[0]) for offset, data in sectors.items() if any(data)}


def test_log_is_read_up_to_a_record_that_is_not_whole():
    assert [entry.kind for entry in disk_log.parse(LOG)] == list("WFMWZMFW")
    assert [entry.kind for entry in disk_log.parse(LOG[:-1])] == list("WFMWZMF")
    assert disk_log.marks(LOG, disk_log.parse(LOG)) == [(2, "begin 0"), (5, "end 0")]


def test_what_was_flushed_is_there_in_every_state():
    assert image(2, "none") == {0: "a", 512: "a"}
    assert image(4, "none") == {0: "a", 512: "a"}  # the write behind the flush is dropped
    assert image(7, "none") == {512: "a", 4096: "b", 4608: "b"}  # zeros are a write like others


def test_all_keeps_what_was_written_up_to_the_point():
    assert image(4, "all") == {0: "a", 512: "a", 4096: "b", 4608: "b"}
    assert image(8, "all") == {0: "c", 512: "a", 4096: "b", 4608: "b"}


def test_half_and_torn_keep_some_and_the_same_again():
    records = disk_log.parse(LOG)
    halves = {tuple(disk_log.unflushed(records, 5, "half", draw)) for draw in range(50)}
    assert len(halves) == 4  # of two writes
    torn = [image(4, "torn", draw) for draw in range(50)]
    assert {4096: "b", 0: "a", 512: "a"} in torn and {4608: "b", 0: "a", 512: "a"} in torn
    assert torn == [image(4, "torn", draw) for draw in range(50)]


def test_states_are_drawn_in_order_and_the_same_again():
    records = disk_log.parse(LOG)
    states = disk_log.draw_states(records, 2, 40, random.Random(1))
    assert states == disk_log.draw_states(records, 2, 40, random.Random(1)) == sorted(states, key=lambda state: state[0])
    assert {kind for _, kind, _ in states} == set(disk_log.KINDS)
    assert all(2 <= position <= len(records) for position, _, _ in states)


def test_an_interrupted_command_may_have_had_its_effect_or_not():
    before = oracle.Expected().after(oracle.Publish("m", 1, FILES, ("stable",)))
    states = oracle.outcomes(before, (oracle.Publish("m", 2, FILES, ("stable",)),))
    for live, tags in [({("m", 1)}, 1), ({("m", 1), ("m", 2)}, 2)]:
        assert oracle.closest(live, {("m", "stable"): tags}, states)[1] == []
    kinds = [problem.kind for problem in oracle.closest({("m", 2)}, {("m", "stable"): 2}, states)[1]]
    assert kinds == ["lost"]
    kinds = [problem.kind for problem in oracle.closest({("m", 1)}, {("m", "stable"): 2}, states)[1]]
    assert kinds == ["wrong"]  # half of a publish


@pytest.mark.parametrize("status, said, states", [
    (0, "", [[1, 2]]), (137, "", [[1], [1, 2]]), (1, "weft: journal/1.log: Input/output error", [[1]]),
    (1, f"weft: journal/1.log: Input/output error{calls.NOT_KNOWN}", [[1], [1, 2]])])
def test_a_refused_command_has_done_nothing_unless_it_says_that_it_does_not_know(status, said, states):
    before = oracle.Expected().after(oracle.Publish("m", 1, FILES))
    base = calls.Base(1, Step(["import"], (oracle.Publish("m", 2, FILES),)), before, None)
    allowed = calls.Caller.allowed(base, weft_store.Done(status, "", said))
    assert [sorted(number for _, number in state.live) for state in allowed] == states


def test_a_removal_that_was_said_took_place():
    before = oracle.Expected().after(oracle.Publish("m", 1, FILES), oracle.Publish("m", 2, FILES))
    base = calls.Base(1, Step(["rm"], (oracle.Remove("m", 1), oracle.Remove("m", 2))), before, None)
    for said, states in [("", [[1, 2]]), (calls.NOT_KNOWN, [[1, 2], [2], [1], []])]:
        allowed = calls.Caller.allowed(base, weft_store.Done(1, "", said))
        assert [sorted(number for _, number in state.live) for state in allowed] == states
    for said, states in [("", [[2]]), (calls.NOT_KNOWN, [[2], []])]:
        allowed = calls.Caller.allowed(base, weft_store.Done(1, "removed m@1\n", said))
        assert [sorted(number for _, number in state.live) for state in allowed] == states


def test_the_sentence_is_what_the_program_says():
    assert calls.NOT_KNOWN in (TOP / "src/catalog/journal.cc").read_text()


def test_effects_that_took_place_stay():
    before = oracle.Expected().after(oracle.Publish("m", 1, FILES), oracle.Publish("m", 2, FILES))
    states = oracle.outcomes(before, (oracle.Remove("m", 1), oracle.Remove("m", 2)))
    assert [sorted(number for _, number in state.live) for state in states] == [[1, 2], [2], [1], []]
    assert oracle.reachable(states, states[0]) == states
    assert oracle.reachable(states, states[1]) == [states[1], states[3]]


def test_an_acknowledged_removal_takes_the_tags_along():
    before = oracle.Expected().after(oracle.Publish("m", 1, FILES, ("stable",)), oracle.Remove("m", 1))
    assert (before.live, before.tags, before.numbers) == ({}, {}, {"m": 1})
    assert [problem.kind for problem in oracle.difference({("m", 1)}, {}, before)] == ["wrong"]


def test_a_seed_gives_the_same_load():
    first, second = (Load("7", 24, beside=True).steps for _ in range(2))
    assert first == second != Load("8", 24, beside=True).steps
    verbs = {step.words[0] for seed in range(20) for step in Load(str(seed), 24).steps}
    assert verbs == {"import", "tag", "rm", "gc", "fsck", "pin", "unpin", "evict", "export"}


@pytest.mark.parametrize("name, kind", [
    ("packs/00.pack", "pack"), ("packs/00.toc", "toc"), ("packs/00.copy", "pack copy"), ("journal/1.log", "log"),
    ("weft-store", "identity"), ("journal/weft-store", "identity copy"), ("index/data.mdb", "index"), ("index/spare", "lock"), ("cache/lock", "lock"),
    ("cache/00.pack", "assembled pack"), ("cache/00.toc", "assembled toc"), ("scrub", "note"), ("tmp/x/y", "other")])
def test_kinds_of_files(name, kind):
    assert store_files.kind_of(name) == kind


def test_damage_changes_the_store_in_the_same_way_again(tmp_path):
    def damaged(number, seed):
        store = tmp_path / f"{number}"
        for name in ("packs/1.pack", "packs/1.toc", "packs/2.pack", "packs/2.toc", "journal/1.log", "index/data.mdb"):
            (store / name).parent.mkdir(parents=True, exist_ok=True)
            (store / name).write_bytes(name.encode() * 400)
        before = {name: path.read_bytes() for name, path in store_files.files_of(store).items()}
        said = harm.damage(store, random.Random(seed))
        after = {name: path.read_bytes() for name, path in store_files.files_of(store).items()}
        assert before != after
        return said, after
    for seed in range(20):
        assert damaged(2 * seed, seed) == damaged(2 * seed + 1, seed)


def test_what_a_version_needs_is_found_wherever_it_lies(tmp_path):
    needs = damage.Needs([b"header", b"tensor"], b"manifest", [b"record"])
    files = {"packs/1.pack": b"..tensor..", "packs/2.pack": b"header", "manifests/other": b"manifest",
             "journal/1.log": b"zeros", "journal/1.copy": b"..record.."}
    weft_store.write_files(tmp_path / "store", {name: File((data,)) for name, data in files.items()})
    assert damage.Remains(tmp_path / "store").lacks(needs) == []
    for name, gone in (("packs/1.pack", "6 bytes"), ("manifests/other", "the manifest"), ("journal/1.copy", "a record")):
        (tmp_path / "store" / name).write_bytes(b"....")
        assert gone in damage.Remains(tmp_path / "store").lacks(needs)


def test_an_export_is_compared_byte_for_byte(tmp_path):
    files = {"a": File((b"12", b"3")), "b/c": File((b"4",))}
    weft_store.write_files(tmp_path / "out", files)
    assert weft_store.equals(tmp_path / "out", files)
    (tmp_path / "out/a").write_bytes(b"124")
    assert not weft_store.equals(tmp_path / "out", files)
    (tmp_path / "out/a").write_bytes(b"123")
    (tmp_path / "out/more").touch()
    assert not weft_store.equals(tmp_path / "out", files)


@pytest.mark.skipif(os.geteuid() != 0 or not os.path.exists("/dev/loop-control"), reason="mounts file systems")
@pytest.mark.parametrize("name", ["crash", "kill", "fail", "damage"])
def test_each_campaign_runs(name, tmp_path):
    """A few states of each, whatever they find."""
    words = ["unshare", "--mount", "--propagation", "private", sys.executable, TOP / "tests/campaign/campaign.py", name,
             "--fs", "ext4", "--minutes", "0.02", "--seed", "1", "--dir", tmp_path]
    done = run(words, check=False, env=environment(WEFT_BUILD=str(BUILD)), timeout=600)
    counts = totals.Totals(tmp_path).counts()
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    assert counts[name, "ext4"]["states"] > 0


def test_each_call_gets_each_error_and_a_short_run_most_of_them():
    turns = range(len(calls.WAYS))
    for number in range(1, 40):
        assert {calls.way_of(number, turn) for turn in turns} == set(calls.WAYS)
    first_phase = range(1, 100, calls.STRIDE)
    assert {calls.way_of(number, 0) for number in first_phase} == set(calls.WAYS)


def test_totals_are_counted_over_runs_and_reported(tmp_path):
    for seed in (1, 2):
        kept = totals.Totals(tmp_path)
        kept.add("kill", "xfs", seed, totals.Outcome("1:2", []))
        kept.add("kill", "xfs", seed, totals.Outcome("1:3", [oracle.Problem("lost", f"a@{seed} is not listed")], "killed"))
    again = totals.Totals(tmp_path)
    assert again.counts()["kill", "xfs"] == {"states": 4, "lost": 2}
    results = tmp_path / "RESULTS.md"
    results.write_text(f"# Results\n\n{totals.HEAD}\n\nold\n\n## other\n\nkept\n")
    totals.put_section(results, totals.section(again, "0123abc"))
    text = results.read_text()
    assert "All states are of the code of commit 0123abc." in text
    assert "| kill | xfs | 4 |" in text and "old" not in text and text.endswith("\n\n## other\n\nkept\n")
    assert "- 2 × kill: lost: MODEL is not listed (killed): `scripts/campaign kill --fs xfs --seed 1 --state 1:3`" in text
    totals.put_section(results, totals.section(again, "0123abc"))
    assert results.read_text() == text


def test_a_line_that_a_killed_run_left_torn_is_no_state(tmp_path):
    kept = totals.Totals(tmp_path)
    kept.add("kill", "xfs", 1, totals.Outcome("1:2", []))
    with open(kept.path, "a") as file:
        file.write(json.dumps({"campaign": "kill"})[:-1])
    assert len(totals.Totals(tmp_path).rows) == 1


def test_help_names_each_campaign():
    said = run([TOP / "scripts/campaign", "--help"]).stdout
    for word in ("crash", "kill", "fail", "damage", "long", "report", "--resume", "--seed", "--state", "--minutes"):
        assert word in said


def test_only_root_may_run_it(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    with pytest.raises(SystemExit, match="^campaign: must run as root"):
        campaign.main(["kill", "--dir", str(tmp_path / "totals")])
    assert not (tmp_path / "totals").exists()


def test_totals_of_earlier_runs_are_not_mixed_in_unasked(tmp_path, capsys):
    totals.Totals(tmp_path).add("kill", "xfs", 1, totals.Outcome("1:2", []))
    with pytest.raises(SystemExit):
        campaign.main(["kill", "--dir", str(tmp_path)])
    assert "pass --resume, or another --dir" in capsys.readouterr().err
