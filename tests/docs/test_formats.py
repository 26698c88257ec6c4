"""Each format that weft reads is named where users look for it."""
import re

import pytest

from weftlib import TOP, WEFT, run

# What the texts call a format, by the name that `weft info` prints.
WORDS = {"safetensors": "safetensors", "gguf": "GGUF", "npy": "npy", "npz": "npz", "torch zip": "PyTorch",
         "torch legacy": "PyTorch", "torch export": "torch.export", "pickle": "pickle", "onnx": "ONNX",
         "dcp": "distributed checkpoint", "hdf5": "HDF5", "keras": "Keras", "tf bundle": "TensorFlow", "tflite": "TFLite",
         "flax": "Flax"}


def names_in_source():
    """Those that the contract of a layout lists."""
    contract = re.search(r"struct Layout \{\n(.*?)for an opaque file", (TOP / "include/weft/model/format.h").read_text(), re.S)[1]
    return re.findall(r'"([^"]+)"', contract)


def test_the_contract_lists_what_formats_set():
    set_by_formats = set()
    for path in (TOP / "src/format").rglob("*.cc"):
        set_by_formats |= set(re.findall(r'(?:->|\.|_\.)format = "([^"]+)"', path.read_text()))
    assert set_by_formats and set_by_formats <= set(names_in_source())


@pytest.mark.parametrize("text", ["README.md", "man/weft.1", "man/weft.7", "src/format/README.md", "import --help"])
def test_each_format_is_named(text):
    content = run([WEFT, *text.split()]).stdout if text.endswith("--help") else (TOP / text).read_text()
    content = " ".join(content.split())
    assert [word for name, word in WORDS.items() if word not in content] == []
    assert set(WORDS) == set(names_in_source())
