"""Lightning resumes a training from a published checkpoint, and goes on as it does from the plain file."""
import json
import os
import subprocess
import sys

from weftlib import Mount

TRAINING = """
import glob, json, sys, torch, pytorch_lightning as lightning
plain, published = sys.argv[1:3]
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.BatchNorm1d(30), torch.nn.Linear(30, 5))
    def training_step(self, batch, _):
        return self.layers(batch[0]).square().mean()
    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.1)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]
def train(epochs, to, ckpt_path=None):
    torch.manual_seed(3)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 20)), batch_size=8)
    saves = lightning.callbacks.ModelCheckpoint(to, filename="saved", save_top_k=-1)
    trainer = lightning.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, default_root_dir=to, callbacks=[saves],
                                enable_progress_bar=False, enable_model_summary=False)
    model = Model()
    trainer.fit(model, data, ckpt_path=ckpt_path, weights_only=False)
    return trainer.global_step, {name: value.flatten().tolist() for name, value in model.state_dict().items()}
if published == "-":
    train(1, plain)
else:
    path, = glob.glob(published + "/*.ckpt")
    steps, state = train(3, plain, path)
    print(json.dumps([steps, state]))
"""


def train(*arguments):
    done = subprocess.run([sys.executable, "-c", TRAINING, *map(str, arguments)], capture_output=True, text=True, check=False,
                          timeout=600, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1:]


def test_a_training_resumes_from_a_published_checkpoint(store, tmp_path):
    plain = tmp_path / "plain"
    train(plain, "-")
    store.publish(plain, name="run")
    with Mount(store, tmp_path / "mnt") as mount:
        # Both runs see the same: nothing that they save lies beside the checkpoint.
        resumed, = train(tmp_path / "from-mount", mount.version("run", 1))
        expected, = train(tmp_path / "from-plain", plain)
        tensors = {path.stem for path in mount.tensors("run", 1).iterdir()}
    steps, state = json.loads(expected)
    assert steps == 12  # 4 of them before
    assert json.loads(resumed) == [steps, state]
    assert {f"state_dict.{name}" for name in state} <= tensors
    assert "optimizer_states.0.state.0.exp_avg" in tensors
