"""Programs that nobody has tuned to a mount walk it: they find what they find in a plain copy, and they end."""
import collections
import json
import os
import time

import pytest

import walks
from weftlib import Mount, Store, random_bytes, random_tensors, run, write_model

VERSIONS = 30
ROOT_SECONDS_MAX = 60
REQUESTS_PER_ENTRY_MAX = 1.2


def make_version(directory, number):
    """64 KiB, of which every version has half in common."""
    shared = random_tensors(4, 8 << 10, seed="shared", prefix="encoder.layer")
    own = random_tensors(4, 8 << 10, seed=f"own {number}", prefix="decoder.layer")
    write_model(directory, shared | own, files=[("log/loss.csv", b"step,loss\n1,0.5\n2,0.25\n"),
                                                ("notes.txt", random_bytes(64, number))])


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A plain copy of models/org/m, with its links."""
    root = tmp_path_factory.mktemp("plain") / "m"
    for number in range(1, VERSIONS + 1):
        make_version(root / str(number), number)
    (root / "latest").symlink_to(str(VERSIONS))
    (root / "prod").symlink_to("2")
    return root


@pytest.fixture(scope="module")
def mount(plain, tmp_path_factory):
    """The same as versions of a model; each is a merge of the one before it and of one half as old."""
    area = tmp_path_factory.mktemp("walks")
    store = Store(area / "store")
    for number in range(1, VERSIONS + 1):
        parents = [f"org/m@{parent}" for parent in sorted({number - 1, number // 2} - {0})]
        store.publish(plain / str(number), name="org/m", parent=parents)
    store.weft("tag", "org/m@2", "prod")
    with Mount(store, area / "mnt") as mounted:
        yield mounted


def both(walk, mount, plain, below, tmp_path):
    found = []
    for name, directory in (("mounted", mount / "models/org/m" / below), ("plain", plain / below)):
        out = tmp_path / name
        out.mkdir()
        found.append(walks.outcome(walk, directory, out))
    return found


@pytest.mark.parametrize("tool", [*walks.ALL, "weft import"])
def test_a_version_is_as_a_plain_copy(mount, plain, tmp_path, tool):
    walk = walks.imported if tool == "weft import" else walks.ALL[tool]
    mounted, copy = both(walk, mount, plain, "3", tmp_path)
    assert mounted == copy and not isinstance(mounted, str)


@pytest.mark.parametrize("tool", walks.ALL)
def test_a_model_is_as_a_plain_copy(mount, plain, tmp_path, tool):
    mounted, copy = both(walks.ALL[tool], mount, plain, "", tmp_path)
    assert mounted == copy and not isinstance(mounted, str)


@pytest.mark.parametrize("tool", walks.ALL)
def test_a_walk_of_the_whole_mount_ends(mount, tmp_path, tool):
    begin = time.monotonic()
    found = walks.outcome(walks.ALL[tool], mount.path, tmp_path)
    assert time.monotonic() - begin < ROOT_SECONDS_MAX
    assert len(found) > 1 and not isinstance(found, str)
    if tool in walks.STAYING and isinstance(found, list):
        assert max(collections.Counter(found).values()) == 1


def test_following_links_never_returns_to_where_one_started(mount):
    """No directory is reached again by a path below itself, and links lead into models/ or stay with their siblings."""
    for at, directories, files in os.walk(mount.path):
        for name in directories + files:
            path = os.path.join(at, name)
            if not os.path.islink(path):
                continue
            target = os.path.normpath(os.path.join(at, os.readlink(path)))
            assert os.path.isdir(target) or os.path.relpath(at, mount / "hub").startswith("models--")
            assert os.path.exists(target)
            assert os.path.dirname(target) == at or os.path.relpath(target, mount / "models").split(os.sep)[0] == "org"


def test_each_directory_has_a_number_of_its_own(mount):
    seen = collections.Counter(os.lstat(at).st_ino for at, _, _ in os.walk(mount.path))
    assert max(seen.values()) == 1


def test_one_tensor_is_one_inode_wherever_it_appears(mount):
    flat = mount / "tensors/org/m/3/encoder.layer.1.weight.npy"
    assert flat.samefile(mount / "layers/org/m/7/encoder/layer/1/weight.npy")
    assert flat.stat().st_nlink == 2 * VERSIONS
    found = run(["find", mount.path, "-samefile", flat]).stdout.splitlines()
    assert len(found) == 2 * VERSIONS


def requests(mount):
    return json.loads((mount / ".weft/status").read_text())["mount"]["requests"]


@pytest.mark.parametrize("words", [["find", "."], ["du", "-a", "."], ["ls", "-lR", "."]], ids=lambda words: words[0])
def test_a_walk_costs_few_requests(mount, words):
    """Of a mount that the kernel knows nothing of yet."""
    entries = len(run(["find", "."], cwd=mount.path).stdout.splitlines())
    with Mount(mount.store, mount.path.parent / f"fresh-{words[0]}") as fresh:
        before = requests(fresh)
        run(words, cwd=fresh.path)
        asked = requests(fresh) - before
    assert asked <= REQUESTS_PER_ENTRY_MAX * entries, f"{asked} requests for {entries} entries"


def test_an_import_of_mounted_files_moves_no_byte(mount):
    packs = {path: path.stat().st_size for path in (mount.store.path / "packs").glob("*.pack")}
    report = mount.store.weft("import", mount / "models/org/m/3", "--name", "again", "--json").stdout
    assert json.loads(report)["mounted_files"] == json.loads(report)["files"] == 4
    assert json.loads(report)["new_bytes"] == 0
    assert {path: path.stat().st_size for path in (mount.store.path / "packs").glob("*.pack")} == packs
    assert walks.tree_of(mount / "models/again/1") == walks.tree_of(mount / "models/org/m/3")
    said = mount.store.weft("import", mount / "layers/org/m/latest", "--name", "layered").stdout
    assert "no byte was read or written" in said
    assert walks.tree_of(mount / "models/layered/1") == walks.tree_of(mount / f"models/org/m/{VERSIONS}")
    refused = mount.store.weft("import", mount / "layers/org/m/3/encoder", "--name", "no", check=False)
    assert refused.returncode != 0 and "generated" in refused.stderr
    for name in ("again", "layered"):
        mount.store.weft("rm", "--force", f"{name}@1")
