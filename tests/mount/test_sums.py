"""The plain SHA-256 of published files: SHA256SUMS and info.json of a version, checked by sha256sum on the mount."""
import hashlib
import json
import os
import shutil

import pytest

from weftlib import Mount, Store, files_below, random_bytes, random_tensors, run, safetensors_bytes, write_model

SHARDS = 3


def check(mount, name, number, tree="models"):
    """sha256sum agrees with every line, and each published file has one. Returns path -> digest."""
    sums = mount.lineage(name, number) / "SHA256SUMS"
    root = mount.version(name, number, tree)
    run(["sha256sum", "--quiet", "--strict", "-c", os.path.relpath(sums, root)], cwd=root)
    text = sums.read_bytes()
    assert sums.stat().st_size == len(text)
    lines = {}
    for line in text.decode().splitlines():
        escaped, line = line.startswith("\\"), line.removeprefix("\\")
        digest, path = line.split("  ", 1)
        lines[path.replace("\\\\", "\\") if escaped else path] = digest
    assert lines == {path: hashlib.sha256(data).hexdigest() for path, data in files_below(root).items()}
    info = json.loads((mount.lineage(name, number) / "info.json").read_text())
    told = {file["path"]: file["sha256"] for file in info["files"]}
    assert told.items() <= lines.items() and (tree == "datasets" or told == lines)
    return lines


def sharded_model(directory, seed):
    """Three shards of tensors from 100 bytes to 20 MiB, which is more than a window of an import, with their index."""
    directory.mkdir(parents=True)
    index = {}
    for shard in range(SHARDS):
        tensors = random_tensors(5, 100, seed=f"few {shard}", prefix=f"s{shard}.few")
        tensors |= random_tensors(2, 3 << 20, seed=f"{seed} {shard}", prefix=f"s{shard}.some")
        tensors |= random_tensors(1, 20 << 20, seed=f"large {shard}", prefix=f"s{shard}.large")
        name = f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors"
        (directory / name).write_bytes(safetensors_bytes(tensors))
        index |= {tensor: name for tensor in tensors}
    (directory / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    (directory / "config.json").write_text('{"model_type": "plain"}\n')
    (directory / "empty").write_bytes(b"")
    (directory / "a").mkdir()
    (directory / "a/back\\slash é").write_bytes(b"escaped")
    return directory


def test_a_model(tmp_path):
    """Whole, with shared tensors, again from the mount, inherited in part, and a second time."""
    store = Store(tmp_path / "store")
    store.publish(sharded_model(tmp_path / "first", "first"), name="org/m")
    store.publish(sharded_model(tmp_path / "second", "second"), name="org/m")
    with Mount(store, tmp_path / "mnt") as mount:
        first, second = check(mount, "org/m", 1), check(mount, "org/m", 2)
        same = {path for path in first if first[path] == second[path]}
        assert len(first) == len(second) == SHARDS + 4 and len(same) == 4
        store.publish(mount.version("org/m", 2), name="again")
        assert check(mount, "again", 1) == second
        part = write_model(tmp_path / "part", random_tensors(1, 3 << 20, seed="changed", prefix="s1.some"))
        store.publish(part / "model.safetensors", name="part", inherit="org/m@1")
        assert {path for path, digest in check(mount, "part", 1).items() if first[path] != digest} == {
            f"model-00002-of-{SHARDS:05}.safetensors"}
        store.publish(tmp_path / "first", name="first")
        assert check(mount, "first", 1) == first
    store.assert_sound()
    store.weft("fsck", "--rebuild")
    with Mount(store, tmp_path / "mnt") as mount:
        assert check(mount, "org/m", 1) == first


def test_whole_inherited_content_makes_no_version(tmp_path):
    """A version that inherits has the digests that it would have as a whole, so both are one manifest."""
    store = Store(tmp_path / "store")
    base = random_tensors(4, 1 << 20, seed="base")
    changed = random_tensors(4, 1 << 20, seed="changed")
    part = {"layer.2.weight": changed["layer.2.weight"]}
    store.publish(write_model(tmp_path / "base", base), name="base")
    store.publish(write_model(tmp_path / "part", part) / "model.safetensors", name="derived", inherit="base")
    assert store.json("import", write_model(tmp_path / "whole", base | part), "--name", "derived")["version"] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_draft(tmp_path):
    with Mount(Store(tmp_path / "store"), tmp_path / "mnt", "publish") as mount:
        shutil.copytree(sharded_model(tmp_path / "source", "draft"), mount / "new/m")
        os.rename(mount / "new/m", mount / "new/m@tag")
        first = check(mount, "m", 1)
        shutil.copytree(mount.version("m", 1), mount / "new/m")
        (mount / "new/m/more").write_bytes(random_bytes(5 << 20, "more"))
        os.rename(mount / "new/m", mount / "new/m@tag")
        assert {path: digest for path, digest in check(mount, "m", 2).items() if path != "more"} == first


def test_a_data_set(tmp_path):
    """Small files in bundles, empty ones, names to escape, and large files; also when one of them is gone."""
    source = tmp_path / "source"
    for number in range(2000):
        path = source / f"c{number % 7}/{number:05}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random_bytes(number * 37 % 40_000, number))
    (source / "c3/back\\slash").write_bytes(b"escaped")
    (source / "large").write_bytes(random_bytes(9 << 20, "large"))
    (source / "z").mkdir()
    (source / "z/empty").write_bytes(b"")
    store = Store(tmp_path / "store")
    store.publish(source, "--dataset", name="set")
    (source / "c3/00003").unlink()
    store.publish(source, "--dataset", name="set")
    with Mount(store, tmp_path / "mnt") as mount:
        first, second = (check(mount, "set", number, "datasets") for number in (1, 2))
        assert len(first) == 2003 and first.items() - second.items() == {("c3/00003", first["c3/00003"])}
        sums = mount.lineage("set", 1) / "SHA256SUMS"
        whole = sums.read_bytes()
        with sums.open("rb", buffering=0) as file:
            for at in (0, 1, 66, 75, len(whole) // 2, len(whole) - 1):
                assert os.pread(file.fileno(), 5000, at) == whole[at:at + 5000]
