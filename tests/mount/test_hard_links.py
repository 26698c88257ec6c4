"""A published file has one hard link, wherever a program meets it. It takes its space once, and a copy of the mount without
safetensors/ has its bytes once."""
import json
import os
import tarfile

import pytest

from weftlib import Mount, Store, random_bytes, run, wait_until

SIZE = 8 << 20


@pytest.fixture(name="mount", scope="module")
def fixture_mount(tmp_path_factory):
    """A model and a data set, each with a large and a small file, and a model whose name hub/ does not have."""
    area = tmp_path_factory.mktemp("links")
    store = Store(area / "store")
    for name, kind in (("org/m", ""), ("a/b/c", ""), ("org/d", "--dataset")):
        source = area / name.replace("/", "-")
        (source / "below").mkdir(parents=True)
        (source / "below/large.bin").write_bytes(random_bytes(SIZE, name))
        (source / "small.txt").write_bytes(name.encode() * 9)
        store.weft("import", source, "--name", name, *([kind] if kind else []))
    with Mount(store, area / "mnt") as mounted:
        yield mounted


def published_files(mount):
    return [mount / tree / name for tree in ("models/org/m/1", "models/a/b/c/1", "models/org/m/latest", "datasets/org/d/1")
            for name in ("below/large.bin", "small.txt")]


def snapshot_of(mount, repository):
    directory = mount / "hub" / repository
    return directory / "snapshots" / (directory / "refs/main").read_text()


def test_a_published_file_has_one_link(mount):
    hub = [snapshot_of(mount, one) / name for one in ("models--org--m", "datasets--org--d")
           for name in ("below/large.bin", "small.txt")]
    shown = [mount / "safetensors/org/m/1" / name for name in ("below/large.bin", "small.txt")]
    for path in published_files(mount) + hub + shown:
        assert path.stat().st_nlink == 1, path
        with path.open("rb") as file:
            assert os.fstat(file.fileno()).st_nlink == 1
    listed = run(["find", mount / "models", mount / "datasets", mount / "hub", "-type", "f", "-links", "+1"]).stdout
    assert listed == ""


@pytest.mark.parametrize(("repository", "published"), [("models--org--m", "models/org/m/1"),
                                                       ("datasets--org--d", "datasets/org/d/1")])
def test_hub_has_links(mount, repository, published):
    """Real directories, and in them links, which lead to the files by any path of the mount."""
    snapshot = snapshot_of(mount, repository)
    assert not snapshot.is_symlink() and not (snapshot / "below").is_symlink()
    for name in ("below/large.bin", "small.txt"):
        link = snapshot / name
        assert link.is_symlink() and link.lstat().st_size == len(os.readlink(link))
        assert link.resolve() == (mount / published / name).resolve() and link.samefile(mount / published / name)
        assert link.lstat().st_blocks == 0
    assert len({path.lstat().st_ino for path in snapshot.rglob("*")}) == 3
    run(["diff", "-r", snapshot, mount / published])


def bytes_of_large_files(directory):
    """Of regular files; a hard link counts once."""
    sizes = {}
    for at, _, files in os.walk(directory):
        for name in files:
            status = os.lstat(os.path.join(at, name))
            if name == "large.bin" and not os.path.islink(os.path.join(at, name)):
                sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


def trees(mount):
    """The mount's entries but safetensors/."""
    return sorted(set(os.listdir(mount.path)) - {"safetensors"})


@pytest.mark.parametrize("words", [["cp", "-a"], ["rsync", "-aH"]], ids=" ".join)
def test_a_copy_of_the_mount_has_each_byte_once(mount, tmp_path, words):
    run([*words, *(mount / tree for tree in trees(mount)), f"{tmp_path}/"])
    assert bytes_of_large_files(tmp_path) == 3 * SIZE
    assert (snapshot_of(tmp_path, "models--org--m") / "small.txt").read_bytes() == b"org/m" * 9, "its links lead on"


def test_an_archive_of_the_mount_has_each_byte_once(mount, tmp_path):
    run(["tar", "-C", mount.path, "-cf", tmp_path / "it.tar", *trees(mount)])
    with tarfile.open(tmp_path / "it.tar") as archive:
        members = [member for member in archive if member.name.endswith("large.bin")]
    assert sum(member.size for member in members if member.isreg()) == 3 * SIZE
    assert [member.name for member in members if member.islnk()] == []


def test_du_of_the_mount_counts_each_byte_once(mount):
    # By their sizes, safetensors/ has the files of the two models again.
    for options, files in ([], 3), (["--apparent-size", "--exclude=safetensors"], 3), (["--apparent-size"], 5):
        kib = int(run(["du", "-sk", *options, mount.path]).stdout.split()[0])
        assert files * SIZE <= kib << 10 <= files * SIZE + (1 << 20)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_checkpoint_in_new_has_one_link(tmp_path):
    """It stays where it was written, and its file is a pack too."""
    store = Store(tmp_path / "store")
    with Mount(store, tmp_path / "mnt", "publish") as mount:
        training = mount / "new/run"
        training.mkdir()
        (training / ".weft.json").write_text(json.dumps({"model": "m", "each": "step-*", "when": "done"}))
        (training / "step-1").mkdir()
        weights = training / "step-1/weights.bin"
        weights.write_bytes(random_bytes(SIZE, "checkpoint"))
        (training / "step-1/done").write_text("")
        wait_until(lambda: (training / "step-1/.weft.published").exists())
        wait_until(lambda: (store.path / "drafts/tree/run/step-1/weights.bin").stat().st_nlink == 2)  # it is a pack
        assert weights.stat().st_nlink == 1
        with weights.open("rb") as file:
            assert os.fstat(file.fileno()).st_nlink == 1
            weights.unlink()
            assert not weights.exists()
