"""safetensors/: weights in any format are files of safetensors, which transformers and safetensors load without a pickle."""
import json
import os
import pathlib
import subprocess
import sys

import numpy
import pytest
import torch
from dcp_ranks import all_ranks
from safetensors.torch import load, load_file
from transformers import BertConfig, BertModel

from weftlib import NOBODY, Mount, Store, environment, files_below, run


class Runs:
    """An object whose pickle makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def evidence(source):
    """The file that the pickle evil.bin makes if it runs."""
    return source / "ran"


def small_bert():
    torch.manual_seed(3)
    return BertModel(BertConfig(vocab_size=200, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                                intermediate_size=96, max_position_embeddings=32))


def write_bin(directory, model, shards=1):
    """As save_pretrained(safe_serialization=False) of transformers 4 does."""
    directory.mkdir()
    model.config.save_pretrained(directory)
    state = model.state_dict()
    if shards == 1:
        torch.save(state, directory / "pytorch_model.bin")
        return
    names, places = list(state), {}
    for shard in range(shards):
        file = f"pytorch_model-{shard + 1:05d}-of-{shards:05d}.bin"
        mine = names[shard::shards]
        torch.save({name: state[name] for name in mine}, directory / file)
        places |= dict.fromkeys(mine, file)
    (directory / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))


def nested():
    """A checkpoint of a training: the model under state_dict, with tied and transposed tensors."""
    base = torch.randn(40, 24)
    model = {"a.weight": base, "b.tied": base, "c.turned": base.t(), "d.row": base[3], "e.half": torch.randn(7).half(),
             "f.none": torch.zeros(0, 3), "g.scalar": torch.tensor(4)}
    return {"state_dict": model | {"h.complex": torch.randn(3, dtype=torch.complex128)},
            "optimizer": {"exp_avg": torch.randn(40, 24)}, "epoch": 2}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Models: org/bin, org/shards, nested, evil, and distributed checkpoints of four ranks: mixed, fsdp2, parts."""
    area = tmp_path_factory.mktemp("view")
    source, ranks_of, whole = area / "view", area / "view-ranks", area / "view-whole"
    for directory in source, ranks_of, whole:
        directory.mkdir()
    model = small_bert()
    write_bin(source / "bin", model)
    write_bin(source / "shards", model, shards=3)
    (source / "bin/notes").mkdir()
    (source / "bin/notes/README.md").write_text("# Small\n")
    torch.save(nested(), source / "nested.ckpt")
    torch.save({"w": torch.ones(3), "x": Runs(evidence(source))}, source / "evil.bin")
    all_ranks(area / "view-meeting", "save", ranks_of, whole)
    store = Store(area / "view-store")
    for path, name in ((source / "bin", "org/bin"), (source / "shards", "org/shards"), (source / "nested.ckpt", "nested"),
                       (source / "evil.bin", "evil"), (ranks_of / "mixed", "mixed"), (ranks_of / "fsdp2", "fsdp2"),
                       (ranks_of / "shards", "parts")):
        store.publish(path, name=name)
    with Mount(store, area / "view-mnt") as mount:
        yield store, mount, source, whole


def view(mount, model):
    return mount.version(model, 1, "safetensors")


def assert_equal(got, expected):
    assert sorted(got) == sorted(expected)
    for name, tensor in expected.items():
        assert got[name].dtype == tensor.dtype, name
        assert torch.equal(got[name], tensor), name


def test_published_files_are_the_same(published):
    _, mount, source, _ = published
    shown, models = view(mount, "org/bin"), mount.version("org/bin", 1)
    assert sorted(os.listdir(shown)) == ["config.json", "model.safetensors", "notes"]
    for name in "config.json", "notes/README.md":
        status, published_status = (shown / name).stat(), (models / name).stat()
        assert (status.st_nlink, status.st_blocks, status.st_mode) == (1, 1, published_status.st_mode)
        assert (shown / name).read_bytes() == (models / name).read_bytes()
        assert run(["find", mount.path, "-samefile", shown / name]).stdout.split() == [str(shown / name)]
    assert shown.stat().st_ino != models.stat().st_ino
    assert sorted(os.listdir(models)) == sorted(os.listdir(source / "bin"))


def test_a_container_takes_no_space(published):
    _, mount, *_ = published
    shown, models = view(mount, "org/bin"), mount.version("org/bin", 1)
    assert (shown / "model.safetensors").stat().st_blocks == 1

    def blocks(*paths):
        return int(run(["du", "-sc", "--block-size=512", *paths]).stdout.splitlines()[-1].split()[0])

    assert blocks(models, shown) == blocks(models) + len(files_below(shown))


@pytest.mark.parametrize("model", ["org/bin", "org/shards"])
def test_from_pretrained(published, model):
    _, mount, *_ = published
    expected = small_bert().state_dict()
    shown = view(mount, model)
    assert not [name for name in os.listdir(shown) if "bin" in name or name == "left_out.txt"]
    assert_equal(BertModel.from_pretrained(shown, use_safetensors=True).state_dict(), expected)


LOAD_BY_NAME = """
import sys
from huggingface_hub import scan_cache_dir, snapshot_download
from safetensors.torch import save_file
from transformers import BertModel
model, out = sys.argv[1:]
loaded = BertModel.from_pretrained(model, revision="safetensors", use_safetensors=True)
save_file(loaded.state_dict(), out)
print(snapshot_download(model, revision="safetensors"))
print(scan_cache_dir().warnings)
"""


@pytest.mark.parametrize("model", ["org/bin", "org/shards"])
def test_by_name_with_the_revision_safetensors(published, model, tmp_path):
    _, mount, *_ = published
    hub = mount / f"hub/models--{model.replace('/', '--')}"
    assert sorted(os.listdir(hub / "refs")) == ["1", "main", "safetensors"]
    name = (hub / "refs/safetensors").read_text()
    assert name == (hub / "refs/main").read_text()[::-1]
    assert sorted(os.listdir(hub / "snapshots")) == sorted([name, name[::-1]])
    env = environment(HF_HUB_CACHE=str(mount / "hub"), HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path), HOME=str(tmp_path))
    done = run([sys.executable, "-c", LOAD_BY_NAME, model, tmp_path / "loaded"], env=env, timeout=300)
    directory, warnings = done.stdout.splitlines()[-2:]
    assert_equal(load_file(tmp_path / "loaded"), small_bert().state_dict())
    assert pathlib.Path(directory) == hub / "snapshots" / name and warnings == "[]"
    run(["diff", "-r", directory, view(mount, model)])
    for path in pathlib.Path(directory).rglob("*"):
        if not path.is_dir():
            assert path.is_symlink() and path.samefile(view(mount, model) / path.relative_to(directory))
    assert sorted(os.listdir(hub / "snapshots" / name[::-1])) == sorted(os.listdir(mount.version(model, 1)))


def test_a_tag_of_the_user_is_no_view(published, tmp_path):
    source = published[2]
    store = Store(tmp_path / "store")
    store.publish(source / "bin", name="org/bin")
    with Mount(store, tmp_path / "mnt") as mount:
        hub = mount / "hub/models--org--bin"
        assert (hub / "refs/safetensors").read_text() != (hub / "refs/main").read_text()
        store.weft("tag", "org/bin@1", "safetensors")
        assert (hub / "refs/safetensors").read_text() == (hub / "refs/main").read_text()
        assert os.listdir(hub / "snapshots") == [(hub / "refs/main").read_text()]


def test_shards_are_those_of_the_index(published):
    _, mount, *_ = published
    shown = view(mount, "org/shards")
    index = json.loads((shown / "model.safetensors.index.json").read_text())
    state = small_bert().state_dict()
    assert sorted(index["weight_map"]) == sorted(state)
    assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in state.values())
    for file in set(index["weight_map"].values()):
        mine = {name: tensor for name, tensor in state.items() if index["weight_map"][name] == file}
        assert_equal(load_file(shown / file), mine)


def test_nested_checkpoint(published):
    _, mount, source, _ = published
    expected = torch.load(source / "nested.ckpt", weights_only=True)
    del expected["state_dict"]["h.complex"]
    assert_equal(load_file(view(mount, "nested") / "nested.safetensors"), expected["state_dict"])
    assert (mount.tensors("nested", 1) / "optimizer.exp_avg.npy").is_file()


def test_left_out(published):
    _, mount, *_ = published
    assert (view(mount, "nested") / "left_out.txt").read_text() == (
        "file\ttensor\tbytes\treason\nnested.ckpt\tstate_dict.h.complex\t48\tsafetensors has no such type\n")


@pytest.mark.parametrize("model", ["mixed", "fsdp2", "parts"])
def test_four_ranks(published, model):
    """Shards of dimension 0, of dimension 1 and of both, uneven ones, and those of FSDP2 with its optimizer."""
    _, mount, _, whole = published
    expected = torch.load(whole / f"{'shards' if model == 'parts' else model}.pt", weights_only=True)
    if model == "fsdp2":
        expected = {name.removeprefix("model."): tensor for name, tensor in expected.items() if name.startswith("model.")}
    shown = view(mount, model)
    assert [name for name in os.listdir(shown) if name != "left_out.txt"] == ["model.safetensors"]
    assert_equal(load_file(shown / "model.safetensors"), expected)


def test_parts_of_a_container_in_boxes(published):
    _, mount, *_ = published
    path = view(mount, "mixed") / "model.safetensors"
    all_of_it = path.read_bytes()
    assert len(all_of_it) == path.stat().st_size
    with path.open("rb", buffering=0) as file:
        for offset in range(0, len(all_of_it), 991):
            file.seek(offset)
            assert file.read(613) == all_of_it[offset:offset + 613]
    assert numpy.array_equal(numpy.memmap(path, numpy.uint8, "r"), numpy.frombuffer(all_of_it, numpy.uint8))


def test_nothing_runs(published):
    _, mount, source, _ = published
    assert torch.equal(load_file(view(mount, "evil") / "evil.safetensors")["w"], torch.ones(3))
    assert not evidence(source).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="other users need root")
def test_an_ordinary_user_reads_it(published, open_dir):
    source = published[2]
    store = Store(open_dir / "store")
    store.publish(source / "bin", name="bin")
    with Mount(store, open_dir / "mnt") as mount:
        path = view(mount, "bin") / "model.safetensors"
        copied = subprocess.run(["cat", path], user=NOBODY, group=NOBODY, extra_groups=[], stdout=subprocess.PIPE, check=True)
        assert_equal(load(copied.stdout), small_bert().state_dict())


def test_publish_of_the_view(published, tmp_path):
    """It is a directory as any other, and its tensors are stored already."""
    store, mount, *_ = published
    before = store.pack_bytes()
    report = json.loads(store.weft("import", view(mount, "org/bin"), "--name", "made", "--json").stdout)
    assert (report["files"], report["mounted_files"]) == (3, 2), "all but the container are published already"
    assert store.pack_bytes() - before < 256 << 10
    again = mount.version("made", 1) / "model.safetensors"
    assert again.read_bytes() == (view(mount, "org/bin") / "model.safetensors").read_bytes()


@pytest.mark.parametrize("model", ["org/bin", "org/shards", "nested", "mixed", "parts"])
def test_export_is_what_the_mount_shows(published, tmp_path, model):
    store, mount, *_ = published
    report = json.loads(store.weft("export", "--json", "--safetensors", model, tmp_path / "out").stdout)
    expected = files_below(view(mount, model))
    assert files_below(tmp_path / "out") == expected
    assert (report["files"], report["bytes"]) == (len(expected), sum(map(len, expected.values())))
    run(["diff", "-r", view(mount, model), tmp_path / "out"])
