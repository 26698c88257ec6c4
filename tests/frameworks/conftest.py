"""One store and one mount for all frameworks: nothing in this folder changes them."""
import types

import numpy
import pytest
import zoo
from safetensors.numpy import load_file, save_file

import weftlib
from weftlib import Mount, Store


def tuned_copy(source, directory):
    """The real model with one layer changed."""
    tensors = load_file(source / "model.safetensors")
    noise = numpy.random.default_rng(5)
    for name, value in tensors.items():
        if name.startswith("encoder.layer.5."):
            tensors[name] = value + noise.normal(0, 1e-3, value.shape).astype(value.dtype)
    directory.mkdir()
    for path in source.rglob("*"):
        if path.is_file() and path.name != "model.safetensors":
            target = directory / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    return directory


@pytest.fixture(scope="session")
def sources(area):
    """The directories that are published, by model@version."""
    real = weftlib.real_model()
    return {
        ("org/minilm", 1): real,
        ("org/minilm", 2): tuned_copy(real, area / "tuned"),
        ("zoo/safetensors", 1): zoo.write_safetensors_zoo(area / "zoo"),
        ("zoo/gguf", 1): zoo.write_gguf_zoo(area / "gguf"),
        ("zoo/npy", 1): zoo.write_npy_zoo(area / "npy"),
    }


@pytest.fixture(scope="session")
def gallery(area, sources):
    """All of `sources`, published and mounted: .mount, .store, .sources, and the directories of a version in each tree."""
    store = Store(area / "store")
    for (model, number), source in sources.items():
        parent = {"parent": f"{model}@{number - 1}"} if number > 1 else {}
        store.publish(source, name=model, **parent)
    with Mount(store, area / "mnt") as mount:
        yield types.SimpleNamespace(mount=mount, store=store, sources=sources, path=mount.version, layers=mount.layers,
                                    tensors=mount.tensors, lineage=mount.lineage)
