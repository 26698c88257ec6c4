"""Files that weft keeps without reading their tensors: their own library reads each of them."""
import pathlib
import sys

import gguf
import numpy
import pytest
from safetensors import safe_open

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mount"))
import malformed  # noqa: E402


def read_safetensors(path):
    with safe_open(path, "np") as file:
        assert len(list(file.keys())) == 1


LIBRARIES = {".gguf": gguf.GGUFReader, ".npy": numpy.load, ".safetensors": read_safetensors}


@pytest.mark.parametrize("name, data, why", malformed.READABLE.values(), ids=malformed.READABLE)
def test_its_library_reads_it(tmp_path, name, data, why):
    """tests/mount/test_bad_input.py publishes the same files."""
    assert why
    path = tmp_path / name
    path.write_bytes(data)
    LIBRARIES[path.suffix](path)
