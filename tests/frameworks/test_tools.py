"""Plain Unix tools copy, pack, sum and compare what is mounted as they would a directory on disk."""
import hashlib
import json
import tarfile

import pytest

from weftlib import files_below, run


def expected_files(gallery, number):
    return files_below(gallery.sources["org/minilm", number])


@pytest.fixture(params=[1, 2])
def version(request, gallery):
    """(a version's directory, what its files must hold)"""
    return gallery.path("org/minilm", request.param), expected_files(gallery, request.param)


def test_published_files(version):
    directory, expected = version
    assert files_below(directory) == expected


@pytest.mark.parametrize("copy", [["cp", "-r"], ["cp", "-r", "--sparse=always"], ["cp", "-a"],
                                  ["rsync", "-a"], ["rsync", "-a", "-S"], ["rsync", "-a", "--checksum"]],
                         ids=" ".join)
def test_copies(version, tmp_path, copy):
    directory, expected = version
    run([*copy, f"{directory}/.", tmp_path / "copy"])
    assert files_below(tmp_path / "copy") == expected


@pytest.mark.parametrize("options", [["-c"], ["-c", "-S"], ["-c", "--format=pax"]], ids=" ".join)
def test_tar(version, tmp_path, options):
    directory, expected = version
    run(["tar", *options, "-f", tmp_path / "version.tar", "-C", directory, "."])
    (tmp_path / "unpacked").mkdir()
    run(["tar", "-x", "-f", tmp_path / "version.tar", "-C", tmp_path / "unpacked"])
    assert files_below(tmp_path / "unpacked") == expected
    with tarfile.open(tmp_path / "version.tar") as archive:
        assert {member.name[2:] for member in archive if member.isfile()} == set(expected)


def test_sparse_copies_of_views(gallery, tmp_path):
    """Views have bytes too: a tool that looks for holes finds none."""
    tensors = gallery.tensors("org/minilm", 1)
    expected = files_below(tensors)
    run(["cp", "-r", "--sparse=always", tensors, tmp_path / "copied"])
    run(["tar", "-c", "-S", "-f", tmp_path / "views.tar", "-C", tensors, "."])
    (tmp_path / "unpacked").mkdir()
    run(["tar", "-x", "-f", tmp_path / "views.tar", "-C", tmp_path / "unpacked"])
    assert files_below(tmp_path / "copied") == expected
    assert files_below(tmp_path / "unpacked") == expected


def test_sha256sum(version):
    directory, expected = version
    lines = run(["sha256sum", *sorted(expected)], cwd=directory).stdout.splitlines()
    assert lines == [f"{hashlib.sha256(data).hexdigest()}  {name}" for name, data in sorted(expected.items())]


def test_diff(gallery):
    source = gallery.sources["org/minilm", 1]
    run(["diff", "-r", source, gallery.path("org/minilm", 1)])
    other = run(["diff", "-rq", source, gallery.path("org/minilm", 2)], check=False)
    assert other.returncode == 1 and "model.safetensors" in other.stdout


def test_find_samefile_shows_sharing(gallery):
    """A tensor that both versions have is one inode at four places, a changed one at two of its own version."""
    def places(name):
        sample = gallery.tensors("org/minilm", 1) / f"{name}.npy"
        found = run(["find", gallery.mount.path, "-samefile", sample]).stdout.split()
        return sorted(path.removeprefix(f"{gallery.mount.path}/") for path in found)

    assert places("embeddings.word_embeddings.weight") == [
        *(f"layers/org/minilm/{number}/embeddings/word_embeddings/weight.npy" for number in (1, 2)),
        *(f"tensors/org/minilm/{number}/embeddings.word_embeddings.weight.npy" for number in (1, 2))]
    assert places("encoder.layer.5.attention.self.query.weight") == [
        "layers/org/minilm/1/encoder/layer/5/attention/self/query/weight.npy",
        "tensors/org/minilm/1/encoder.layer.5.attention.self.query.weight.npy"]


def test_link_count_is_true(gallery):
    """st_nlink of every view is the number of its places in the whole mount."""
    places, counts = {}, {}
    views = [path for tree in ("layers", "tensors") for path in (gallery.mount / tree).rglob("*.npy")]
    for path in views:
        status = path.lstat()
        if "/latest/" in str(path):
            continue
        places[status.st_ino] = places.get(status.st_ino, 0) + 1
        counts[status.st_ino] = status.st_nlink
    assert len(places) > 100
    assert counts == places


def test_info_json_by_jq(gallery):
    info = gallery.lineage("org/minilm", 2) / "info.json"
    parsed = json.loads(run(["jq", ".", info]).stdout)
    del parsed["time_ns"]  # jq 1.6 keeps numbers as doubles
    assert parsed.items() <= json.loads(info.read_text()).items()
    assert len(info.read_bytes()) == info.stat().st_size
    text = json.dumps(parsed)
    for expected in ('"org/minilm"', "embeddings.word_embeddings.weight", "1_Pooling/config.json", "model.safetensors"):
        assert expected in text


def test_layer_json(gallery):
    layer = gallery.layers("org/minilm", 1) / "encoder/layer/0/attention/self/query/layer.json"
    text = run(["jq", "-c", ".", layer]).stdout
    assert "encoder.layer.0.attention.self.query" in text and "F32" in text and "[384,384]" in text


def test_du_counts_each_byte_once(gallery):
    """After gc --all, `du -s` of all models is what the packs hold, within 2 %."""
    gallery.store.weft("gc", "--all")
    counted = int(run(["du", "-s", "--block-size=1", gallery.mount / "models"]).stdout.split()[0])
    held = gallery.store.pack_bytes()
    assert abs(counted - held) <= 0.02 * held


def test_du_apparent_size_is_logical(gallery):
    counted = int(run(["du", "-s", "--apparent-size", "--block-size=1", gallery.path("org/minilm", 2)])
                  .stdout.split()[0])
    logical = sum(len(data) for data in expected_files(gallery, 2).values())
    assert logical <= counted <= logical + (1 << 20)  # directories have a size too


def test_lineage_links(gallery):
    """Links that one can cd through lead to the versions themselves."""
    def targets(number, kind):
        folder = gallery.lineage("org/minilm", number) / kind
        return [path.resolve() for path in folder.rglob("*") if path.is_symlink()]

    first, second = (gallery.path("org/minilm", number).resolve() for number in (1, 2))
    assert targets(2, "parents") == [first] and targets(1, "children") == [second]
    assert targets(1, "parents") == [] and targets(2, "children") == []
