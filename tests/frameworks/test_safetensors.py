"""safetensors reads containers through the mount as from their source."""
import safetensors.numpy
import safetensors.torch
import pytest
import torch
from safetensors import safe_open

MODELS = [("org/minilm", 1, "model.safetensors"), ("org/minilm", 2, "model.safetensors"),
          ("zoo/safetensors", 1, "zoo.safetensors")]
models = pytest.mark.parametrize("model, number, name", MODELS)


def same_tensor(one, other):
    """Equal type, shape and bits: NaNs included."""
    return (one.dtype == other.dtype and one.shape == other.shape
            and torch.equal(one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8)))


def assert_same_tensors(got, expected):
    assert sorted(got) == sorted(expected)
    different = [name for name in expected if not same_tensor(got[name], expected[name])]
    assert different == []


@models
def test_load_file_torch(gallery, model, number, name):
    expected = safetensors.torch.load_file(gallery.sources[model, number] / name)
    assert_same_tensors(safetensors.torch.load_file(gallery.path(model, number) / name), expected)


@models
def test_safe_open_torch(gallery, model, number, name):
    with safe_open(gallery.sources[model, number] / name, "pt") as source, \
            safe_open(gallery.path(model, number) / name, "pt") as mounted:
        assert mounted.metadata() == source.metadata()
        assert_same_tensors({key: mounted.get_tensor(key) for key in mounted.keys()},
                            {key: source.get_tensor(key) for key in source.keys()})


@pytest.mark.parametrize("number", [1, 2])
def test_load_file_numpy(gallery, number):
    expected = safetensors.numpy.load_file(gallery.sources["org/minilm", number] / "model.safetensors")
    got = safetensors.numpy.load_file(gallery.path("org/minilm", number) / "model.safetensors")
    assert sorted(got) == sorted(expected)
    for name, array in expected.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape
        assert got[name].tobytes() == array.tobytes(), name


def test_safe_open_slices(gallery):
    name = "embeddings.word_embeddings.weight"
    with safe_open(gallery.sources["org/minilm", 2] / "model.safetensors", "numpy") as source, \
            safe_open(gallery.path("org/minilm", 2) / "model.safetensors", "numpy") as mounted:
        for rows, columns in [(slice(0, 3), slice(None)), (slice(1000, 1010), slice(5, 9)), (slice(-2, None), slice(1))]:
            expected = source.get_slice(name)[:][rows, columns]
            assert mounted.get_slice(name)[:][rows, columns].tobytes() == expected.tobytes()


@models
def test_layer_containers(gallery, model, number, name):
    """layers/…/a/b.safetensors holds the tensors whose names start with a.b., under their full names."""
    expected = safetensors.torch.load_file(gallery.sources[model, number] / name)
    layers = gallery.layers(model, number)
    containers = sorted(layers.rglob("*.safetensors"))
    assert containers
    for container in containers:
        prefix = ".".join(container.relative_to(layers).with_suffix("").parts) + "."
        below = {key: value for key, value in expected.items() if key.startswith(prefix)}
        assert below, container
        assert_same_tensors(safetensors.torch.load_file(container), below)


def test_every_layer_has_a_container(gallery):
    layers = gallery.layers("org/minilm", 1)
    directories = [path.relative_to(layers) for path in layers.rglob("*") if path.is_dir()]
    assert len(directories) > 50
    for directory in directories:
        assert (layers / directory.parent / (directory.name + ".safetensors")).is_file()
        assert (layers / directory / "layer.json").is_file()
