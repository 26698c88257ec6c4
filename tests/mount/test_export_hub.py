"""Exports into a cache of the Hugging Face hub, read by the hub's own client without a network."""
import hashlib
import os
import shutil
import sys

import huggingface_hub
import pytest

from weftlib import Mount, assert_refused, environment, files_below, random_tensors, run, write_model

CLIENT = """
import sys
from huggingface_hub import snapshot_download
print(snapshot_download(sys.argv[1], repo_type=sys.argv[2], revision=sys.argv[3] or None))
"""


@pytest.fixture
def two(store, tmp_path):
    """Two versions of org/m, which share all files but one. Returns their files."""
    model = write_model(tmp_path / "model", random_tensors(2, 4096, seed="hub"),
                        files=[("config.json", b"{}"), ("a/b/c.txt", b"deep")])
    store.publish(model, name="org/m", tag="old")
    first = files_below(model)
    (model / "config.json").write_text('{"a": 1}')
    store.publish(model, name="org/m", tag="stable")
    return first, files_below(model)


def export(store, spec, cache):
    return store.json("export", spec, "--hub", cache)


def downloaded(cache, home, name, kind="model", revision=""):
    """The directory that an offline program of the hub's client gets."""
    offline = environment(HF_HUB_CACHE=str(cache), HF_HUB_OFFLINE="1", HF_HOME=str(home), HOME=str(home))
    return run([sys.executable, "-c", CLIENT, name, kind, revision], env=offline).stdout.strip()


def test_the_hubs_client_loads_each_revision(store, two, tmp_path):
    cache = tmp_path / "hub"
    for spec in ("org/m@1", "org/m@2"):
        export(store, spec, cache)
    for number, revisions in enumerate((("1", "old"), ("2", "stable", "main", ""))):
        for revision in revisions:
            assert files_below(downloaded(cache, tmp_path / "home", "org/m", revision=revision)) == two[number], revision


def test_the_hubs_client_finds_no_fault(store, two, tmp_path):
    cache = tmp_path / "hub"
    commits = [export(store, f"org/m@{number}", cache)["hub"]["commit"] for number in (1, 2)]
    info = huggingface_hub.scan_cache_dir(cache)
    assert not info.warnings
    repository, = info.repos
    assert (repository.repo_id, repository.repo_type) == ("org/m", "model")
    assert {one.commit_hash: one.refs for one in repository.revisions} == {
        commits[0]: {"1", "old"}, commits[1]: {"2", "stable", "main"}}
    different = {hashlib.sha256(data).hexdigest() for files in two for data in files.values()}
    assert {path.name for path in (cache / "models--org--m/blobs").iterdir()} == different


def test_the_commit_is_that_of_a_mount(store, two, tmp_path):
    commit = export(store, "org/m", tmp_path / "hub")["hub"]["commit"]
    with Mount(store, tmp_path / "mnt") as mount:
        assert (mount / "hub/models--org--m/refs/main").read_text() == commit


def test_a_cache_survives_its_import(store, two, tmp_path):
    """The export of an imported snapshot has the hub's commit, also in a store of its own."""
    export(store, "org/m", tmp_path / "hub")
    (tmp_path / "hub/models--org--m/refs/main").write_text("c0ffee" + "0" * 34)
    snapshot, = (tmp_path / "hub/models--org--m/snapshots").iterdir()
    snapshot.rename(snapshot.with_name("c0ffee" + "0" * 34))
    store.weft("import", tmp_path / "hub/models--org--m", "--name", "org/again")
    assert export(store, "org/again", tmp_path / "other")["hub"]["commit"] == "c0ffee" + "0" * 34
    assert files_below(downloaded(tmp_path / "other", tmp_path / "home", "org/again")) == two[1]


def test_data_set(store, tmp_path):
    """Its small files are files of their own in the cache."""
    source = tmp_path / "set"
    (source / "train").mkdir(parents=True)
    (source / "none").mkdir()
    for number in range(300):
        (source / f"train/{number:03}.txt").write_text(f"{number // 2}")
    (source / "large.bin").write_bytes(os.urandom(3 << 20))
    store.weft("import", "--dataset", source, "--name", "org/set")
    report = export(store, "org/set", tmp_path / "hub")
    assert report["files"] == 301 and report["hub"]["reused_files"] == 150
    shown = downloaded(tmp_path / "hub", tmp_path / "home", "org/set", "dataset")
    assert files_below(shown) == files_below(source)
    assert os.path.isdir(f"{shown}/none")


def test_a_cache_may_move(store, two, tmp_path):
    export(store, "org/m", tmp_path / "hub")
    shutil.move(tmp_path / "hub", tmp_path / "elsewhere")
    assert files_below(downloaded(tmp_path / "elsewhere", tmp_path / "home", "org/m")) == two[1]


def test_refusals(store, two, tmp_path):
    assert_refused(store.weft("export", "org/m", check=False), "expected DIR or --hub DIR", code=2)
    assert_refused(store.weft("export", "org/m", tmp_path / "a", "--hub", tmp_path / "b", check=False), "--hub", code=2)
    assert_refused(store.weft("export", "org/m", "--hub", tmp_path / "no/parent", check=False), "no")
    export(store, "org/m", tmp_path / "hub")
    snapshot, = (tmp_path / "hub/models--org--m/snapshots").iterdir()
    (snapshot / "config.json").unlink()
    assert_refused(store.weft("export", "org/m", "--hub", tmp_path / "hub", check=False), "config.json",
                   "remove the snapshot")
    assert not [path for path in (tmp_path / "hub/models--org--m").iterdir() if path.name.startswith(".")]
