"""Programs of torch.export: their weights are tensors of weft, and torch loads the published file."""
import numpy
import pytest
import torch

from weftlib import Mount, Store

# PyTorch says so of tensors that share memory.
pytestmark = pytest.mark.filterwarnings("ignore:No complete tensor found")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layer = torch.nn.Linear(40, 30)
        self.tied = self.layer.weight
        self.brain = torch.nn.Parameter(torch.randn(3, 5).bfloat16())
        self.turned = torch.nn.Parameter(torch.randn(50, 40).t())
        self.register_buffer("steps", torch.arange(6).reshape(2, 3))
        self.constant = torch.randn(2, 7)

    def forward(self, x):
        others = self.brain.float().sum() + self.turned.sum() + self.steps.sum() + self.constant.sum()
        return self.layer(x) + torch.nn.functional.linear(x, self.tied) + others


@pytest.fixture(scope="module")
def published(area):
    source = area / "exported.pt2"
    torch.export.save(torch.export.export(Net(), (torch.ones(2, 40),)), source)
    store = Store(area / "exported-store")
    store.publish(source, name="net")
    with Mount(store, area / "exported-mnt") as mount:
        yield store, mount, source


def test_each_weight_is_a_tensor(published):
    store, mount, source = published
    program = torch.export.load(source)
    expected = {**program.state_dict, **{f"constants.{name}": value for name, value in program.constants.items()}}
    assert len(expected) == 7
    views = mount.tensors("net", 1)
    assert {view.stem for view in views.iterdir()} == expected.keys()
    for name, tensor in expected.items():
        tensor = tensor.detach().contiguous()
        view = numpy.load(views / f"{name}.npy")
        assert view.shape == tuple(tensor.shape), name
        assert view.tobytes() == tensor.view(torch.uint8).numpy().tobytes(), name
    file, = store.json("info", "net")["files"]
    assert file["format"] == "torch export" and file["coverage"] == 1 and not file.get("hidden")
    store.assert_sound()


def test_torch_loads_the_published_program(published):
    _, mount, source = published
    plain, shown = (torch.export.load(path).state_dict for path in (source, mount.version("net", 1) / source.name))
    assert plain.keys() == shown.keys() and all(torch.equal(value, shown[name]) for name, value in plain.items())
    example = torch.ones(2, 40)
    assert torch.equal(torch.export.load(mount.version("net", 1) / source.name).module()(example), Net()(example))
