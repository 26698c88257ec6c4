"""`weft debug` prints packs, tables of contents, journals and manifests, whole and damaged ones, and needs no store."""
import hashlib
import json
import os

import pytest

from weftlib import WEFT, environment, random_tensors, run, write_model

KINDS = ["pack", "toc", "journal", "manifest"]


def debug(what, path, check=True):
    return run([WEFT, "debug", what, path], check=check, env=environment())


def debug_json(what, path, check=True):
    return json.loads(run([WEFT, "debug", what, path, "--json"], check=check, env=environment()).stdout)


@pytest.fixture
def published(store, tmp_path):
    """A store with m@1, and its pack of tensors."""
    store.publish(write_model(tmp_path / "model", random_tensors(3, 1 << 21, seed="debug")), name="m")
    store.weft("tag", "m@1", "best")
    pack = max(store.path.glob("packs/*.pack"), key=lambda path: path.stat().st_size)
    return store, pack


def manifests(store):
    return [path for path in (store.path / "manifests").rglob("*") if path.is_file()]


def test_toc_and_pack(published):
    _, pack = published
    toc = debug_json("toc", pack.with_suffix(".toc"))
    assert toc["pack"] == pack.stem
    assert toc["size"] == pack.stat().st_size
    assert {blob["state"] for blob in toc["blobs"]} == {"listed"}
    whole = debug_json("pack", pack)
    assert [blob["sha256"] for blob in whole["blobs"]] == [blob["sha256"] for blob in toc["blobs"]]
    assert {blob["state"] for blob in whole["blobs"]} == {"whole"}
    small = min(whole["blobs"], key=lambda blob: blob["length"])
    assert small["sha256"] in debug("pack", pack).stdout


def test_damaged_pack(published):
    _, pack = published
    blob = debug_json("toc", pack.with_suffix(".toc"))["blobs"][-1]
    os.chmod(pack, 0o644)
    with open(pack, "r+b") as file:
        file.seek(blob["offset"])
        byte = file.read(1)
        file.seek(blob["offset"])
        file.write(bytes([byte[0] ^ 1]))
    done = run([WEFT, "debug", "pack", pack, "--json"], check=False, env=environment())
    assert done.returncode == 1
    assert [one["state"] for one in json.loads(done.stdout)["blobs"]].count("damaged") == 1


def test_journal(published, tmp_path):
    store, _ = published
    log = next(store.path.glob("journal/*.log"))
    records = debug_json("journal", log)["records"]
    assert [record["event"] for record in records] == ["publish of m@1", "tags of m: best=1"]
    assert [record["sequence"] for record in records] == sorted(record["sequence"] for record in records)
    assert debug_json("journal", log.with_suffix(".copy"))["records"] == records
    assert "tags of m: best=1" in debug("journal", log).stdout
    damaged = tmp_path / "damaged.log"
    content = bytearray(log.read_bytes())
    content[records[0]["length"] // 2] ^= 1
    damaged.write_bytes(content)
    done = run([WEFT, "debug", "journal", damaged, "--json"], check=False, env=environment())
    assert done.returncode == 1
    assert [(one["offset"], one["event"]) for one in json.loads(done.stdout)["records"]] == [
        (0, "no intact record"), (records[1]["offset"], "tags of m: best=1")]


def test_manifest(published):
    store, _ = published
    found = manifests(store)
    assert found
    shown = debug_json("manifest", found[0])
    assert shown["sha256"] == hashlib.sha256(found[0].read_bytes()).hexdigest()
    assert shown["kind"] == "model"
    file = next(one for one in shown["files"] if one["format"] == "safetensors")
    assert len(file["tensors"]) == 3
    assert sum(extent["length"] for extent in file["extents"]) == file["size"]
    assert file["path"] in debug("manifest", found[0]).stdout


@pytest.mark.parametrize("what", KINDS)
def test_other_files_are_refused(what, tmp_path):
    for name, content in {"x.pack": b"", "x.toc": b"no record", "zeros": bytes(1 << 16)}.items():
        (tmp_path / name).write_bytes(content)
    for name in ["x.pack", "x.toc", "zeros", "missing"]:
        done = debug(what, tmp_path / name, check=False)
        if (what, name) == ("journal", "x.pack"):  # an empty journal has no records
            assert (done.returncode, done.stderr) == (0, "")
        else:
            assert done.returncode == 1, (what, name)
