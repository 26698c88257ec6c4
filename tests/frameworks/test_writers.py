"""Frameworks save into new/ as they save anywhere, and one rename publishes: what they wrote, byte for byte."""
import os

import gguf
import numpy
import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.numpy import load_file, save_file
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

from weftlib import Mount, Store, files_below

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(name="mounted", scope="module")
def a_mount_that_publishes(area):
    with Mount(Store(area / "store-written"), area / "mnt-written", "publish") as mount:
        yield mount


def small_bert():
    torch.manual_seed(7)
    return BertModel(BertConfig(hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256,
                                vocab_size=4000))


def save_one_file(draft):
    small_bert().save_pretrained(draft)


def save_sharded(draft):
    small_bert().save_pretrained(draft, max_shard_size="500KB")


def save_by_torch(draft):
    draft.mkdir()
    torch.save(small_bert().state_dict(), draft / "pytorch_model.bin")


def save_by_torch_as_it_was(draft):
    draft.mkdir()
    torch.save(small_bert().state_dict(), draft / "old.bin", _use_new_zipfile_serialization=False)


def save_distributed(draft):
    dcp.save(small_bert().state_dict(), checkpoint_id=str(draft), no_dist=True)


def save_by_safetensors(draft):
    draft.mkdir()
    save_file({"a": numpy.arange(300_000, dtype=numpy.float32)}, draft / "model.safetensors")


def save_by_memmap(draft):
    draft.mkdir()
    mapped = numpy.memmap(draft / "mapped.bin", dtype=numpy.float32, mode="w+", shape=(500, 700))
    mapped[:] = numpy.random.default_rng(1).normal(size=mapped.shape)
    mapped.flush()


def save_by_numpy(draft):
    draft.mkdir()
    numpy.save(draft / "a.npy", numpy.arange(400_000))
    numpy.savez(draft / "b.npz", x=numpy.ones(1000), y=numpy.zeros((3, 3)))


def save_by_gguf(draft):
    draft.mkdir()
    writer = gguf.GGUFWriter(draft / "model.gguf", "llama")
    writer.add_tensor("blk.0.weight", numpy.random.default_rng(2).normal(size=(64, 512)).astype(numpy.float32))
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()


WRITERS = {writer.__name__[len("save_"):]: writer for writer in
           (save_one_file, save_sharded, save_by_torch, save_by_torch_as_it_was, save_distributed, save_by_safetensors,
            save_by_memmap, save_by_numpy, save_by_gguf)}


@pytest.mark.parametrize("name", WRITERS)
def test_what_a_framework_saves_is_published(name, mounted):
    draft = mounted / "new" / name
    WRITERS[name](draft)
    written = files_below(draft)
    assert written
    os.rename(draft, mounted / "new" / f"{name}@")
    assert files_below(mounted / "models" / name / "latest") == written


def test_a_training_publishes_each_checkpoint_and_loads_it_back(mounted):
    model = small_bert()
    for step in range(3):
        with torch.no_grad():
            model.pooler.dense.weight.add_(0.01)
        draft = mounted / "new/org/run"
        draft.parent.mkdir(exist_ok=True)
        model.save_pretrained(draft)
        os.rename(draft, mounted / f"new/org/run@step-{step}")
        loaded = AutoModel.from_pretrained(mounted / "models/org/run/latest").state_dict()
        assert all(torch.equal(value, loaded[key]) for key, value in model.state_dict().items())
    assert sorted(name for name in os.listdir(mounted / "models/org/run") if name.isdigit()) == ["1", "2", "3"]
    changed = mounted.store.json("diff", "org/run@2", "org/run@3")
    assert "pooler.dense.weight" in str(changed)


def test_a_tokenizer_is_saved_into_the_same_draft(mounted, gallery):
    draft = mounted / "new/both"
    AutoModel.from_pretrained(gallery.sources["org/minilm", 1]).save_pretrained(draft)
    AutoTokenizer.from_pretrained(gallery.sources["org/minilm", 1]).save_pretrained(draft)
    os.rename(draft, mounted / "new/both@prod")
    tensors = load_file(mounted / "models/both/prod/model.safetensors")
    assert set(tensors) <= set(load_file(gallery.sources["org/minilm", 1] / "model.safetensors"))
    assert AutoTokenizer.from_pretrained(mounted / "models/both/prod")("weights are files")["input_ids"]
