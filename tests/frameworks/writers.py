"""Writers as anybody has them: they know of no weft. Each saves the same into each directory that it is given.

    python writers.py MOUNT NATIVE NAME...     as the user who runs it; prints what went wrong with each"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
import zipfile

import gguf
import h5py
import numpy
import torch
import torch.distributed.checkpoint as dcp
from safetensors.numpy import save_file
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from transformers import BertConfig, BertModel

from weftlib import files_below, random_bytes, run, wait_until

FINETUNE = pathlib.Path(__file__).resolve().parent / "finetune.py"


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


def save_by_gguf(draft):
    draft.mkdir()
    writer = gguf.GGUFWriter(draft / "model.gguf", "llama")
    writer.add_tensor("blk.0.weight", numpy.random.default_rng(2).normal(size=(64, 512)).astype(numpy.float32))
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()


@contextlib.contextmanager
def a_tree_beside(draft):
    """What the shell's tools copy: files of several sizes, one in a directory, and a link to it."""
    tree = draft.with_name(f".{draft.name}-source")
    (tree / "deep/er").mkdir(parents=True)
    (tree / "model.bin").write_bytes(random_bytes(1_500_000, "tools"))
    (tree / "deep/er/x").write_bytes(b"1" * 70_000)
    (tree / "empty").touch()
    os.symlink("deep/er/x", tree / "link")
    yield tree
    run(["rm", "-r", tree])


def save_by_cp(draft):
    with a_tree_beside(draft) as tree:
        run(["cp", "-a", tree, draft])


def save_by_rsync(draft):
    with a_tree_beside(draft) as tree:
        run(["rsync", "-a", f"{tree}/", f"{draft}/"])


def save_by_tar(draft):
    draft.mkdir()
    with a_tree_beside(draft) as tree:
        run(["sh", "-ec", f"tar -C '{tree}' -c . | tar -C '{draft}' -x"])


KERAS = """
import os, sys, keras
keras.utils.set_random_seed(5)
model = keras.Sequential([keras.Input((20,)), keras.layers.Dense(300), keras.layers.Dense(10)])
model.compile("adam", "mse")
model.fit(keras.random.normal((32, 20)), keras.random.normal((32, 10)), verbose=0)
for draft in sys.argv[1:]:
    os.mkdir(draft)
    model.save(draft + "/model.keras")
    model.save_weights(draft + "/model.weights.h5")
"""

LIGHTNING = """
import sys, torch, pytorch_lightning as lightning
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(20, 300)
    def training_step(self, batch, _):
        return self.layer(batch[0]).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
for draft in sys.argv[1:]:
    torch.manual_seed(3)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 20)), batch_size=8)
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, default_root_dir=draft,
                                enable_progress_bar=False, enable_model_summary=False,
                                callbacks=[lightning.callbacks.ModelCheckpoint(draft, save_top_k=-1)])
    trainer.fit(Model(), data)
"""

# Each rank of a distributed training is a process of its own.
RANKS = """
import os, sys, tempfile
meeting = tempfile.mktemp()
other = os.fork()
rank = 0 if other else 1
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
torch.manual_seed(3)
state = {name: distribute_tensor(torch.randn(400, 300), mesh, [Shard(0)]) for name in ("a", "b")}
for draft in sys.argv[1:]:
    dcp.save(state, checkpoint_id=draft)
    assert {"__0_0.distcp", "__1_0.distcp", ".metadata"} <= set(os.listdir(draft))
dist.destroy_process_group()
if other:
    assert os.waitpid(other, 0)[1] == 0
    os.unlink(meeting)
"""

FUNCTIONS = {writer.__name__[len("save_"):]: writer for writer in
             (save_one_file, save_sharded, save_by_torch, save_by_torch_as_it_was, save_distributed, save_by_safetensors,
              save_by_memmap, save_by_numpy, save_by_gguf, save_by_h5py, save_by_cp, save_by_rsync, save_by_tar)}
# What takes long to begin saves into all directories at once.
PROGRAMS = {"by_keras": KERAS, "by_lightning": LIGHTNING, "by_ranks": RANKS}
NAMES = [*FUNCTIONS, *PROGRAMS]


def program(words, **environment):
    done = subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def save(name, drafts):
    if name in PROGRAMS:
        program([sys.executable, "-c", PROGRAMS[name], *drafts], KERAS_BACKEND="torch", CUDA_VISIBLE_DEVICES="")
    else:
        for draft in drafts:
            FUNCTIONS[name](draft)


def old_tensors(directory):
    """The old format names tensors by where they lay in memory."""
    return {name: value.numpy().tobytes() for name, value in torch.load(directory / "old.bin").items()}


def distributed_tensors(directory):
    """Its index has a random number of each save."""
    with tempfile.NamedTemporaryFile() as whole:
        dcp_to_torch_save(directory, whole.name)
        return {name: value.numpy().tobytes() for name, value in torch.load(whole.name).items()}


def zipped_weights(directory):
    """A .keras file holds the time of the save."""
    content = {"model.weights.h5": (directory / "model.weights.h5").read_bytes()}
    with zipfile.ZipFile(directory / "model.keras") as archive:
        return content | {name: archive.read(name) for name in archive.namelist() if name != "metadata.json"}


def trained_tensors(directory):
    """A checkpoint of Lightning holds the path that it was saved to."""
    out = {}
    for path in directory.iterdir():
        saved = torch.load(path, weights_only=False)
        moments = [state["momentum_buffer"] for state in saved["optimizer_states"][0]["state"].values()]
        out[path.name] = [value.numpy().tobytes() for value in [*saved["state_dict"].values(), *moments]]
    return out


# Two saves of one writer are equal byte for byte, but for these: of them, what a reader gets is equal.
CONTENT = {"by_torch_as_it_was": old_tensors, "distributed": distributed_tensors, "by_ranks": distributed_tensors,
           "by_keras": zipped_weights, "by_lightning": trained_tensors}


def publish_what_is_saved(name, mounts, native):
    """`native` is a directory outside all mounts, where the same is saved."""
    save(name, [native, *(mount / "new" / name for mount in mounts)])
    content = CONTENT.get(name, files_below)
    for mount in mounts:
        draft = mount / "new" / name
        written = files_below(draft)
        os.rename(draft, f"{draft}@")
        version = mount / "models" / name / "latest"
        assert files_below(version) == written, mount
        assert set(written) == set(files_below(native)) and content(version) == content(native), mount


def publish_while_it_trains(mount):
    """Without a line in the script: it saves, removes old checkpoints, and resumes from the last one."""
    training = mount / "new/finetune"
    training.mkdir()
    facts = {"model": "org/tuned", "each": "checkpoint-*", "when": "trainer_state.json"}
    (training / ".weft.json").write_text(json.dumps(facts))
    script = [sys.executable, FINETUNE, training]
    assert program([*script, "6"]).strip().endswith("6")
    model = mount / "models/org/tuned"
    wait_until(lambda: (model / "3").exists())
    left = {name for name in os.listdir(training) if name.startswith("check")}
    assert left == {"checkpoint-4", "checkpoint-6"}, left
    assert program([*script, "10", "resume"]).strip().endswith("10")
    wait_until(lambda: (training / "checkpoint-10/.weft.published").exists())
    assert sorted(name for name in os.listdir(model) if name.isdigit()) == ["1", "2", "3", "4", "5"]
    for step, number in (8, "4"), (10, "5"):
        written = files_below(training / f"checkpoint-{step}")
        assert written.pop(".weft.published") == f"org/tuned@{number}\n".encode()
        assert files_below(model / number) == written


def main(mount, native, names):
    """Prints a JSON object: of each name what went wrong, or nothing."""
    outcomes = {}
    for name in names:
        try:
            if name == "trainer":
                publish_while_it_trains(mount)
            else:
                publish_what_is_saved(name, [mount], native / name)
            outcomes[name] = ""
        except BaseException:  # pylint: disable=broad-except
            outcomes[name] = traceback.format_exc()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:])
