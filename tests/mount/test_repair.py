"""Damaged bytes: how fsck and scrub find and name them, and how fsck repairs them."""
import json
import os
import shutil
import time

import pytest

from weftlib import Mount, files_below, random_tensors, store_with, write_model

FILE = "model.safetensors"
TENSOR_BYTES = 1 << 20


@pytest.fixture
def source(tmp_path):
    return write_model(tmp_path / "source", random_tensors(4, TENSOR_BYTES, seed="repair"))


def largest_pack(store):
    return max((store.path / "packs").glob("*.pack"), key=lambda path: path.stat().st_size)


def flip(path, offset=None):
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if offset is None else offset] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)


def damage(store):
    flip(largest_pack(store))


def assert_whole(store, source, out):
    assert store.json("fsck")["clean"]
    store.weft("export", "org/m@1", out)
    assert files_below(out) == files_below(source)


def test_fsck_names_the_version_the_file_and_the_tensor(store, source):
    store.publish(source, name="org/m")
    store.publish(source, name="other")
    damage(store)
    done = store.weft("fsck", check=False)
    assert done.returncode == 1
    found = store.weft("fsck", "--json", check=False)
    assert found.returncode == 1
    affected = json.loads(found.stdout)["affected"]
    assert [(one["model"], one["version"], one["file"]) for one in affected] == [("org/m", 1, FILE), ("other", 1, FILE)]
    [tensor] = affected[0]["tensors"]
    assert f"affected: org/m@1 {FILE} (tensor {tensor})\n" in done.stdout
    assert f"affected: other@1 {FILE} (tensor {tensor})\n" in done.stdout


def a_file(store, source, area):
    return source / FILE


def a_directory(store, source, area):
    """With the file under another name, beside a file of its size that has other bytes."""
    shutil.copy(source / FILE, area / "deep" / "kept")
    (area / "deep" / "a").write_bytes(bytes((source / FILE).stat().st_size))
    return area


def another_store(store, source, area):
    return store_with(area, source, name="copy").path


@pytest.mark.parametrize("place", [a_file, a_directory, another_store], ids=lambda place: place.__name__)
def test_repair_from(store, source, tmp_path, place):
    store.publish(source, name="org/m")
    area = tmp_path / "area"
    (area / "deep").mkdir(parents=True)
    path = place(store, source, area)
    damage(store)
    done = store.weft("fsck", "--repair", "--from", path)
    assert "repaired: " in done.stdout
    assert_whole(store, source, tmp_path / "out")
    store.weft("gc")
    store.weft("fsck", "--rebuild")
    assert_whole(store, source, tmp_path / "again")


def test_a_missing_pack_is_repaired(store, source, tmp_path):
    store.publish(source, name="org/m")
    pack = largest_pack(store)
    pack.unlink()
    pack.with_suffix(".toc").unlink()
    assert "affected: org/m@1" in store.weft("fsck", check=False).stdout
    store.weft("fsck", "--repair", "--from", source)
    assert_whole(store, source, tmp_path / "out")


def test_a_pack_cut_short_is_repaired(store, source, tmp_path):
    store.publish(source, name="org/m")
    pack = largest_pack(store)
    pack.chmod(0o600)
    with open(pack, "r+b") as file:
        file.truncate(pack.stat().st_size - TENSOR_BYTES // 2)
    assert store.weft("fsck", check=False).returncode == 1
    store.weft("fsck", "--repair", "--from", source)
    assert_whole(store, source, tmp_path / "out")


def test_a_damaged_pack_that_no_version_names_hides_nothing(store, source, tmp_path):
    """A publish that is killed before its commit leaves such a pack."""
    store.publish(source, name="org/m")
    (area := tmp_path / "area").mkdir()
    other = store_with(area, random_tensors(4, TENSOR_BYTES, seed="orphan"), name="x")
    damage(store)
    damage(other)
    for path in (other.path / "packs").iterdir():
        shutil.copy(path, store.path / "packs" / path.name)
    for words in (["fsck"], ["scrub"], ["fsck", "--repair"]):
        done = store.weft(*words, check=False)
        assert done.returncode == 1
        assert "affected: org/m@1" in done.stdout
    store.weft("fsck", "--repair", "--from", source)
    assert_whole(store, source, tmp_path / "out")
    store.weft("gc", "--all")
    assert_whole(store, source, tmp_path / "again")


def test_what_is_found_nowhere_is_named(store, source, tmp_path):
    store.publish(source, name="org/m")
    damage(store)
    other = write_model(tmp_path / "other", random_tensors(4, TENSOR_BYTES, seed="other"))
    before = store.weft("fsck", check=False).stdout
    for words in ([], ["--from", other]):
        done = store.weft("fsck", "--repair", *words, check=False)
        assert done.returncode == 1
        assert "; not repaired: " in done.stdout
    assert store.weft("fsck", check=False).stdout == before


def test_a_read_does_not_verify_and_reads_what_was_repaired(store, source, tmp_path):
    store.publish(source, name="org/m")
    damage(store)
    whole = (source / FILE).read_bytes()
    with Mount(store, tmp_path / "mnt") as mount:
        assert (mount.version("org/m", 1) / FILE).read_bytes() != whole
        store.weft("fsck", "--repair", "--from", source)
        assert (mount.version("org/m", 1) / FILE).read_bytes() == whole


def pack_bytes(store):
    return sum(pack.stat().st_size for pack in (store.path / "packs").glob("*.pack"))


def test_scrub_goes_on_where_it_stopped_and_reports(store, tmp_path):
    """Twice through the store, in runs that end early: each byte once. The damage is found in one of them."""
    for number in range(3):
        store.publish(write_model(tmp_path / f"m{number}", random_tensors(2, TENSOR_BYTES, seed=f"scrub{number}")),
                      name=f"m{number}")
    assert "scrubbed  never" in store.weft("status", "--all").stdout
    assert store.json("status")["scrub"] is None
    whole = store.json("fsck")["bytes_read"]
    runs = []
    while not runs or not runs[-1]["complete"]:
        runs.append(store.json("scrub", "--for", "1s", "--rate", "2M"))
        assert runs[-1]["bytes"] > 0
    assert len(runs) > 1
    assert sum(run["bytes"] for run in runs) == whole
    last = store.json("status")["scrub"]
    assert (last["bytes"], last["problems"]) == (whole, 0)
    damage(store)
    store.weft("scrub", "--for", "1s", "--rate", "1M", check=False)
    assert store.json("status")["scrub"] == last  # still the last complete one
    codes = [store.weft("scrub", check=False).returncode for _ in range(2)]
    assert 1 in codes
    last = store.json("status")["scrub"]
    assert last["problems"] == 1 and "SHA-256 differs" in last["lines"][0]
    assert "1 problem" in store.weft("status", "--all").stdout
    assert "problem   the last scrub found 1 problem: `weft fsck --repair`\n" in store.weft("status").stdout
    assert store.json("status")["healthy"] is False


def test_scrub_keeps_its_rate(store, source):
    store.publish(source, name="org/m")
    begin = time.monotonic()
    bytes_read = store.json("scrub", "--rate", "2M")["bytes"]
    assert time.monotonic() - begin >= (bytes_read - (2 << 20)) / (2 << 20)


def test_status_of_a_mount_shows_the_scrub(store, source, tmp_path):
    store.publish(source, name="org/m")
    store.weft("scrub")
    with Mount(store, tmp_path / "mnt") as mount:
        status = json.loads((mount / ".weft/status").read_text())
    assert status["scrub"]["problems"] == 0
    assert status["scrub"]["bytes"] > 4 * TENSOR_BYTES


@pytest.mark.parametrize("note", ["text", "pipe"])
def test_a_note_that_no_scrub_wrote_is_replaced(store, source, note):
    store.publish(source, name="org/m")
    if note == "pipe":
        os.mkfifo(store.path / "scrub")
    else:
        (store.path / "scrub").write_text("{")
    assert store.json("status")["scrub"] is None
    assert store.json("scrub")["recorded"]
    assert store.json("status")["scrub"]["problems"] == 0
