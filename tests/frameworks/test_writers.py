"""Frameworks save into new/ as they save anywhere, and one rename publishes: what they wrote, byte for byte."""
import json
import os
import subprocess
import sys

import gguf
import h5py
import numpy
import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.numpy import load_file, save_file
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

from weftlib import TOP, Mount, Store, files_below, wait_until

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


def save_by_h5py(draft):
    draft.mkdir()
    with h5py.File(draft / "weights.h5", "w") as file:
        file["a"] = numpy.arange(200_000, dtype=numpy.float32)
        file.flush()
        file.create_dataset("b/c", data=numpy.ones((30, 40)), compression="gzip")


KERAS = """
import sys, keras
model = keras.Sequential([keras.Input((20,)), keras.layers.Dense(300), keras.layers.Dense(10)])
model.compile("adam", "mse")
model.fit(keras.random.normal((32, 20)), keras.random.normal((32, 10)), verbose=0)
model.save(sys.argv[1] + "/model.keras")
model.save_weights(sys.argv[1] + "/model.weights.h5")
"""


def save_by_keras(draft):
    draft.mkdir()
    program([sys.executable, "-c", KERAS, draft], KERAS_BACKEND="torch", CUDA_VISIBLE_DEVICES="")


LIGHTNING = """
import sys, torch, pytorch_lightning as lightning
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(20, 300)
    def training_step(self, batch, _):
        return self.layer(batch[0]).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 20)), batch_size=8)
trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, default_root_dir=sys.argv[1],
                            enable_progress_bar=False, enable_model_summary=False,
                            callbacks=[lightning.callbacks.ModelCheckpoint(sys.argv[1], save_top_k=-1)])
trainer.fit(Model(), data)
"""


def save_by_lightning(draft):
    program([sys.executable, "-c", LIGHTNING, draft])


RANKS = """
import sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
def main(rank, draft):
    dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(3)
    state = {name: distribute_tensor(torch.randn(400, 300), mesh, [Shard(0)]) for name in ("a", "b")}
    dcp.save(state, checkpoint_id=draft)
    dist.destroy_process_group()
if __name__ == "__main__":
    main(int(sys.argv[3]), sys.argv[1])
"""


def save_by_ranks(draft):
    """Each rank of a distributed training is a process of its own."""
    meeting = draft.parent.parent.parent / "meeting"
    ranks = [subprocess.Popen([sys.executable, "-c", RANKS, draft, meeting, str(rank)]) for rank in range(2)]
    assert [rank.wait(120) for rank in ranks] == [0, 0]
    meeting.unlink(missing_ok=True)
    assert {"__0_0.distcp", "__1_0.distcp", ".metadata"} <= set(os.listdir(draft))


def program(words, **environment):
    done = subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def save_by_gguf(draft):
    draft.mkdir()
    writer = gguf.GGUFWriter(draft / "model.gguf", "llama")
    writer.add_tensor("blk.0.weight", numpy.random.default_rng(2).normal(size=(64, 512)).astype(numpy.float32))
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()


WRITERS = {writer.__name__[len("save_"):]: writer for writer in
           (save_one_file, save_sharded, save_by_torch, save_by_torch_as_it_was, save_distributed, save_by_safetensors,
            save_by_memmap, save_by_numpy, save_by_gguf, save_by_h5py, save_by_keras, save_by_lightning, save_by_ranks)}


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


def test_a_trainer_publishes_while_it_runs(mounted):
    """Without a line in the script: it saves, removes old checkpoints, and resumes from the last one."""
    training = mounted / "new/finetune"
    training.mkdir()
    facts = {"model": "org/tuned", "each": "checkpoint-*", "when": "trainer_state.json"}
    (training / ".weft.json").write_text(json.dumps(facts))
    script = [sys.executable, TOP / "tests/frameworks/finetune.py", training]
    assert program([*script, "6"]).strip().endswith("6")
    model = mounted / "models/org/tuned"
    wait_until(lambda: (model / "3").exists())
    assert {name for name in os.listdir(training) if name.startswith("check")} == {"checkpoint-4", "checkpoint-6"}
    assert program([*script, "10", "resume"]).strip().endswith("10")
    wait_until(lambda: (training / "checkpoint-10/.weft.published").exists())
    assert sorted(name for name in os.listdir(model) if name.isdigit()) == ["1", "2", "3", "4", "5"]
    for step, number in (8, "4"), (10, "5"):
        written = files_below(training / f"checkpoint-{step}")
        assert written.pop(".weft.published") == f"org/tuned@{number}\n".encode()
        assert files_below(model / number) == written
    assert '"epoch"' in json.dumps(mounted.store.json("log", "org/tuned@5"))
