"""Files that people have published: weft finds each tensor that the format's own library finds, with the same bytes.

scripts/test reads those of a few small packages; scripts/campaign long reads all."""
import os

import numpy
import pytest
import real_files

from weftlib import LENGTH, Mount, Store, files_below

pytestmark = pytest.mark.long
ROWS = [*real_files.SMALL, *(real_files.LARGE if LENGTH > 1 else [])]
NUMBERS = {row.id: number for number, row in enumerate(ROWS)}


def model(row):
    return f"file-{NUMBERS[row.id]}"


@pytest.fixture(name="published", scope="module")
def one_store_of_all_files(area):
    source, store = area / "real-files", Store(area / "real-files-store")
    paths = {}
    for row in ROWS:
        paths[row.id] = real_files.unpack(row.package, row.file, source / row.package)
        store.publish(paths[row.id], name=model(row))
    with Mount(store, area / "real-files-mnt") as mount:
        yield store, mount, paths
    store.assert_sound()


def of_each(rows):
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.id)


@of_each(ROWS)
def test_what_info_says_of_a_file(published, row):
    store, *_ = published
    info = store.json("info", model(row))
    main = next(file for file in info["files"] if file["path"] == row.main)
    assert (main["format"], main["tensors"], len(main.get("hidden", []))) == (row.format, row.tensors, row.hidden)
    places = {row.main, *(run["file"] for tensor in info["tensors"] for run in tensor.get("runs", []))}
    size = sum(file["bytes"] for file in info["files"] if file["path"] in places)
    assert round(info["tensor_bytes"] / size, 4) == row.shown
    assert round(main["coverage"], 4) == 1


@of_each(ROWS)
def test_each_tensor_has_the_bytes_that_the_library_reads(published, row):
    store, mount, paths = published
    # The library's names are as weft's are, but for the names that weft hides.
    hidden = {one["name"] for file in store.json("info", model(row))["files"] for one in file.get("hidden", [])}
    expected = {name: array for name, array in row.values_of(paths[row.id]).items() if name not in hidden}
    views = mount.tensors(model(row), 1)
    assert sorted(os.listdir(views)) == sorted(f"{name.replace('/', '%2F')}.npy" for name in expected)
    for name, array in expected.items():
        view = numpy.load(views / f"{name.replace('/', '%2F')}.npy")
        assert (view.shape, view.dtype) == (array.shape, array.dtype), name
        assert view.tobytes() == array.tobytes(), name


@of_each(ROWS)
def test_the_published_files_are_unchanged(published, row):
    _, mount, paths = published
    path = paths[row.id]
    expected = files_below(path) if path.is_dir() else {path.name: path.read_bytes()}
    assert files_below(mount.version(model(row), 1)) == expected


def test_one_network_in_two_formats_is_stored_once(published):
    """TorchScript and ONNX of silero-vad have 99.99 % of the bytes of their tensors in common."""
    store, *_ = published
    digests = []
    for name in ("silero_vad.jit", "silero_vad.onnx"):
        row = next(row for row in ROWS if row.file.endswith(name))
        digests.append({tensor["sha256_tree"]: tensor["bytes"] for tensor in store.json("info", model(row))["tensors"]
                        if "sha256_tree" in tensor})
    script, onnx = digests
    shared = sum(size for digest, size in onnx.items() if digest in script)
    assert shared / sum(onnx.values()) > 0.99
