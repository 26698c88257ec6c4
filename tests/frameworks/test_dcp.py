"""Distributed checkpoints of PyTorch: each tensor is one tensor of weft, whatever its shards are, and PyTorch loads them."""
import json
import re

import numpy
import pytest
import torch
from dcp_ranks import RANKED, RANKS, all_ranks
from weftlib import Mount, Store


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Models: mixed, fsdp2, shards (in safetensors files), ranked (with metadata of each rank), and lacking, a copy of mixed
    without a part."""
    area = tmp_path_factory.mktemp("dcp")
    source, whole = area / "dcp", area / "dcp-whole"
    for directory in source, whole:
        directory.mkdir()
    all_ranks(area / "meeting", "save", source, whole)
    store = Store(area / "dcp-store")
    for name in "mixed", "fsdp2", "shards", RANKED:
        store.publish(source / name, name=name)
    lacking = area / "dcp-lacking"
    lacking.mkdir()
    for path in (source / "mixed").iterdir():
        if path.name != "__3_0.distcp":
            (lacking / path.name).write_bytes(path.read_bytes())
    store.publish(lacking, name="lacking")
    with Mount(store, area / "dcp-mnt") as mount:
        yield store, mount, whole


def assert_equal(path, tensor, name):
    got = numpy.load(path)
    if tensor.dtype == torch.bfloat16:
        got, tensor = got.view(numpy.uint8), tensor.view(torch.uint8)
    assert got.shape == tuple(tensor.shape), name
    numpy.testing.assert_array_equal(got, tensor.numpy(), err_msg=name)


@pytest.mark.parametrize("model", ["mixed", "fsdp2", "shards"])
def test_each_tensor_is_the_full_tensor(published, model):
    _, mount, whole = published
    expected = torch.load(whole / f"{model}.pt", weights_only=True)
    tensors = mount.tensors(model, 1)
    assert sorted(path.name for path in tensors.iterdir()) == sorted(f"{name}.npy" for name in expected)
    for name, tensor in expected.items():
        assert_equal(tensors / f"{name}.npy", tensor, name)


def test_info_says_that_the_tensors_lie_in_other_files(published):
    store, *_ = published
    assert re.search(r"\.metadata: dcp, \d+ tensors, \S+ \S+ in other files", store.weft("info", "mixed").stdout)


def test_ranks_with_metadata_of_their_own(published):
    """Saved without collectives. The load by four processes in another test reads it too."""
    store, mount, whole = published
    expected = torch.load(whole / f"{RANKED}.pt", weights_only=True)
    expected |= {f"only {rank}": torch.full((3, 5), float(rank)) for rank in range(RANKS)}
    published_files = sorted(path.name for path in mount.version(RANKED, 1).iterdir())
    assert published_files == sorted(f"__{rank}{end}" for rank in range(RANKS) for end in (".metadata", "_0.distcp"))
    tensors = mount.tensors(RANKED, 1)
    assert sorted(path.name for path in tensors.iterdir()) == sorted(f"{name}.npy" for name in expected)
    for name, tensor in expected.items():
        assert_equal(tensors / f"{name}.npy", tensor, name)
    files = {file["path"]: file for file in store.json("info", RANKED)["files"]}
    hidden = {one["name"]: one["why"] for one in files["__0.metadata"]["hidden"]}
    copies = "several ranks have it; that of the first of them is shown"
    assert hidden["plain"] == hidden["own"] == copies and sorted(hidden) == ["own", "plain", "step"]
    shown = mount.version(RANKED, 1, "safetensors")
    assert sorted(path.name for path in shown.iterdir()) == ["left_out.txt", "model.safetensors"]


def test_architecture_has_no_optimizer(published):
    store, mount, _ = published
    graph = json.loads(store.weft("info", "fsdp2", "--graph", "json").stdout)
    assert [vertex["name"] for vertex in graph["vertices"]] == ["model.0", "model.1"]
    assert [path for path in mount.tensors("fsdp2", 1).iterdir() if path.name.startswith("optim.")]


def test_a_part_of_a_tensor_in_boxes(published):
    """Reads from any offset give the bytes that a whole read gives."""
    _, mount, _ = published
    path = mount.tensors("mixed", 1) / "both.npy"
    all_of_it = path.read_bytes()
    with path.open("rb", buffering=0) as file:
        for offset in range(0, len(all_of_it), 97):
            file.seek(offset)
            assert file.read(61) == all_of_it[offset:offset + 61]
    mapped = numpy.load(path, mmap_mode="r")
    numpy.testing.assert_array_equal(mapped[:, 3], numpy.load(path)[:, 3])


def test_four_processes_load_the_published_checkpoints(published, tmp_path):
    _, mount, _ = published
    all_ranks(tmp_path / "meeting", "load", mount.path / "models")


def test_pickled_values_and_missing_parts_are_hidden(published):
    store, mount, whole = published
    metadata, = [file for file in store.json("info", "mixed")["files"] if file["path"] == ".metadata"]
    assert metadata["format"] == "dcp"
    assert {one["name"]: one["why"] for one in metadata["hidden"]} == {"step": "a pickled value, no tensor"}
    lacking, = [file for file in store.json("info", "lacking")["files"] if file["path"] == ".metadata"]
    reasons = {one["name"]: one["why"] for one in lacking["hidden"]}
    assert reasons["columns"] == reasons["rows"] == "no file __3_0.distcp is beside .metadata"
    shown = {path.stem for path in mount.tensors("lacking", 1).iterdir()}
    assert shown and shown.isdisjoint(reasons)
    expected = torch.load(whole / "mixed.pt", weights_only=True)
    assert shown | set(reasons) == {*expected, "step"}
