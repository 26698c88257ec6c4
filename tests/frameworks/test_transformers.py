"""transformers loads models from the mount: whole and sharded ones."""
import json

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from weftlib import Mount, Store


def assert_same_state(got, expected):
    assert list(got) == list(expected)
    assert [name for name in expected if not torch.equal(got[name], expected[name])] == []


@pytest.mark.parametrize("number", [1, 2])
def test_real_model(gallery, number):
    source = AutoModel.from_pretrained(gallery.sources["org/minilm", number])
    mounted = AutoModel.from_pretrained(gallery.path("org/minilm", number))
    assert_same_state(mounted.state_dict(), source.state_dict())


def test_versions_differ(gallery):
    """What the test above compares is not one model twice."""
    first, second = (AutoModel.from_pretrained(gallery.path("org/minilm", number)).state_dict() for number in (1, 2))
    assert {name.split(".")[2] for name in first if not torch.equal(first[name], second[name])} == {"5"}


def test_same_embedding(gallery):
    def embedding(directory):
        words = AutoTokenizer.from_pretrained(directory)("weights are files", return_tensors="pt")
        with torch.no_grad():
            return AutoModel.from_pretrained(directory).eval()(**words).last_hidden_state

    assert torch.equal(embedding(gallery.path("org/minilm", 1)), embedding(gallery.sources["org/minilm", 1]))


def test_sharded_model(gallery, tmp_path):
    sharded = tmp_path / "sharded"
    AutoModel.from_pretrained(gallery.sources["org/minilm", 1]).save_pretrained(sharded, max_shard_size="20MB")
    assert len(list(sharded.glob("model-*.safetensors"))) > 2
    store = Store(tmp_path / "store")
    store.publish(sharded, name="sharded")
    with Mount(store, tmp_path / "mnt") as mount:
        # Nothing of it is kept in a variable: its mappings must be gone before the mount is.
        assert_same_state(AutoModel.from_pretrained(mount.version("sharded", 1)).state_dict(),
                          AutoModel.from_pretrained(sharded).state_dict())
        views = list(mount.tensors("sharded", 1).glob("*.npy"))
        assert len(views) >= 100


def test_index_that_names_the_wrong_shard(gallery, tmp_path):
    """transformers loads it, so weft keeps it."""
    sharded = tmp_path / "sharded"
    AutoModel.from_pretrained(gallery.sources["org/minilm", 1]).save_pretrained(sharded, max_shard_size="20MB")
    index = sharded / "model.safetensors.index.json"
    facts = json.loads(index.read_text())
    name = next(iter(facts["weight_map"]))
    facts["weight_map"][name] = next(shard for shard in facts["weight_map"].values() if shard != facts["weight_map"][name])
    index.write_text(json.dumps(facts))
    store = Store(tmp_path / "store")
    assert f"expected tensor {name} in" in store.weft("import", sharded, "--name", "sharded").stderr
    with Mount(store, tmp_path / "mnt") as mount:
        assert_same_state(AutoModel.from_pretrained(mount.version("sharded", 1)).state_dict(),
                          AutoModel.from_pretrained(gallery.sources["org/minilm", 1]).state_dict())


def test_sharded_model_shares_its_tensors(gallery, tmp_path):
    """How the tensors are cut into files does not matter to what is stored."""
    sharded = tmp_path / "sharded"
    AutoModel.from_pretrained(gallery.sources["org/minilm", 1]).save_pretrained(sharded, max_shard_size="20MB")
    store = Store(tmp_path / "store")
    store.publish(gallery.sources["org/minilm", 1], name="whole")
    before = store.pack_bytes()
    store.publish(sharded, name="sharded")
    assert store.pack_bytes() - before < 1 << 20


def test_pickled_weights(gallery, tmp_path):
    """pytorch_model.bin, whole and in shards."""
    model = AutoModel.from_pretrained(gallery.sources["org/minilm", 1])
    whole, sharded = tmp_path / "whole", tmp_path / "sharded"
    for directory in whole, sharded:
        directory.mkdir()
        model.config.save_pretrained(directory)
    state = model.state_dict()
    torch.save(state, whole / "pytorch_model.bin")
    names = sorted(state)
    files = {f"pytorch_model-0000{part + 1}-of-00002.bin": names[part::2] for part in range(2)}
    for file, inside in files.items():
        torch.save({name: state[name] for name in inside}, sharded / file)
    (sharded / "pytorch_model.bin.index.json").write_text(json.dumps(
        {"metadata": {}, "weight_map": {name: file for file, inside in files.items() for name in inside}}))
    store = Store(tmp_path / "store")
    for directory in whole, sharded:
        store.publish(directory, name=directory.name)
    with Mount(store, tmp_path / "mnt") as mount:
        for name in "whole", "sharded":
            assert_same_state(AutoModel.from_pretrained(mount.version(name, 1)).state_dict(), state)
