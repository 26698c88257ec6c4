"""hub/: models by the name that they have on the Hugging Face hub, offline, from a directory that nobody can write."""
import json
import os
import pathlib
import re
import sys
import threading
import types

import hub_client
import pytest
from safetensors.numpy import load_file
from transformers import AutoModel

from weftlib import TOP, Mount, Store, environment, random_tensors, rounds, run, wait_until, write_model

CLIENT = TOP / "tests/frameworks/hub_client.py"
PUBLISHES = rounds(80, 3000)
LOADERS = 4
WRITES = "creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,truncate,chmod," \
         "fchmodat,utimensat,openat,open"


def offline(mount, home):
    return environment(HF_HUB_CACHE=str(mount / "hub"), HF_HUB_OFFLINE="1", HF_HOME=str(home), HOME=str(home),
                       TOKENIZERS_PARALLELISM="false")


def digits(gallery, number):
    return gallery.store.json("info", f"org/minilm@{number}")["manifest"][:40]


@pytest.fixture(scope="module")
def loaded(gallery, tmp_path_factory):
    """What hub_client.py got by name, and the lines of a trace that try to write to the mount."""
    home = tmp_path_factory.mktemp("home")
    gallery.store.weft("tag", "org/minilm@1", "prod")
    done = run(["strace", "--seccomp-bpf", "-f", "-qq", "-e", f"trace={WRITES}", "-o", home / "trace", sys.executable,
                CLIENT, digits(gallery, 1)], env=offline(gallery.mount, home), timeout=300)
    yield types.SimpleNamespace(
        got=json.loads(done.stdout.splitlines()[-1]),
        trace=[line for line in (home / "trace").read_text(errors="replace").splitlines()
               if str(gallery.mount.path) in line])
    gallery.store.weft("tag", "--delete", "org/minilm", "prod")


def state_hash(directory):
    """As hub_client.model() prints it."""
    return hub_client.hash_of(AutoModel.from_pretrained(directory).state_dict())


def test_no_library_tries_to_write(loaded):
    assert len(loaded.trace) > 20
    assert [line for line in loaded.trace if not re.search(r"open(at)?\(.*O_RDONLY", line)] == []


def test_a_model_by_name_and_revision(loaded, gallery):
    first, second = (state_hash(gallery.sources["org/minilm", number]) for number in (1, 2))
    assert loaded.got["model"] == {"main": second, "prod": first, "1": first, "2": second, digits(gallery, 1): first}


@pytest.mark.parametrize("what", ["tokens", "features", "sentence"])
def test_other_ways_to_load_by_name(loaded, what):
    got = loaded.got[what]
    assert len(got["prod"]) >= 4 and got["prod"] == got["1"]
    assert what == "tokens" or got["main"] != got["1"]


def test_snapshot_download(loaded, gallery):
    directory, names = loaded.got["snapshot"]
    published = gallery.path("org/minilm", 1)
    assert pathlib.Path(directory) == gallery.mount / f"hub/models--org--minilm/snapshots/{digits(gallery, 1)}"
    assert names == sorted(os.listdir(published))
    assert run(["diff", "-r", directory, published]).stdout == ""
    for name in files_of(published):
        assert os.path.samefile(os.path.join(directory, name), published / name)
        assert os.path.islink(os.path.join(directory, name))
        assert (published / name).stat().st_nlink == 1


def test_scan_cache_dir(loaded, gallery):
    repos, warnings = loaded.got["scan"]
    found = {name: (revisions, refs) for name, revisions, refs in repos}
    assert found["org/minilm"] == (2, ["1", "2", "main", "prod"])
    assert set(found) == {name for name, _ in gallery.sources}
    assert warnings == []


def files_of(directory):
    return [path.relative_to(directory) for path in pathlib.Path(directory).rglob("*") if path.is_file()]


def test_an_unknown_model_is_the_librarys_own_error(gallery, tmp_path):
    script = "from huggingface_hub import snapshot_download; snapshot_download('org/none')"
    done = run([sys.executable, "-c", script], env=offline(gallery.mount, tmp_path), check=False)
    assert done.returncode != 0 and "LocalEntryNotFoundError" in done.stderr and "OSError: [Errno" not in done.stderr


def test_refs_have_no_newline_and_follow_the_tags(store, small_model, tmp_path):
    store.publish(small_model, name="org/m")
    with Mount(store, tmp_path / "mnt") as mount:
        hub = mount / "hub/models--org--m"
        first = (hub / "refs/main").read_text()
        assert re.fullmatch("[0-9a-f]{40}", first)
        write_model(small_model, random_tensors(2, 4096, seed="second"))
        store.publish(small_model, name="org/m")
        second = (hub / "refs/main").read_text()
        assert second != first and sorted(os.listdir(hub / "snapshots")) == sorted([first, second])
        store.weft("tag", "org/m@1", "main")
        assert (hub / "refs/main").read_text() == first
        assert sorted(os.listdir(hub / "refs")) == ["1", "2", "main"]
        for name in ("refs/main", "refs/new", f"snapshots/{first}/new"):
            with pytest.raises(OSError):
                (hub / name).write_text("x")


def test_the_hubs_commit_is_a_revision(store, small_model, tmp_path):
    """The version's source said it: the client finds the snapshot by it, offline."""
    commit = "c0ffee" + "0" * 34
    cached = tmp_path / "cache/models--org--m/snapshots" / commit
    cached.parent.mkdir(parents=True)
    small_model.rename(cached)
    store.weft("import", cached)
    script = "import sys; from huggingface_hub import snapshot_download, scan_cache_dir;" \
             "print(snapshot_download('org/m', revision=sys.argv[1])); print(scan_cache_dir().warnings)"
    with Mount(store, tmp_path / "mnt") as mount:
        done = run([sys.executable, "-c", script, commit], env=offline(mount, tmp_path / "home"))
        directory, warnings = done.stdout.splitlines()[-2:]
        assert os.path.samefile(directory, mount / "hub/models--org--m/snapshots" / commit) and warnings == "[]"
        assert sorted(os.listdir(directory)) == sorted(os.listdir(cached))


def test_versions_with_the_same_content_share_a_snapshot(store, small_model, tmp_path):
    store.publish(small_model, name="m")
    other = write_model(tmp_path / "other", random_tensors(2, 4096, seed="other"))
    store.publish(other, name="m")
    store.publish(small_model, name="m")
    with Mount(store, tmp_path / "mnt") as mount:
        hub = mount / "hub/models--m"
        assert len(os.listdir(hub / "snapshots")) == 2
        assert (hub / "refs/1").read_text() == (hub / "refs/3").read_text()
        shared = hub / "snapshots" / (hub / "refs/3").read_text() / "config.json"
        assert shared.samefile(mount / "models/m/1/config.json")
        store.weft("rm", "--force", "m@1")
        wait_until(lambda: shared.samefile(mount / "models/m/3/config.json"))  # the kernel keeps a name for 50 ms


def test_names_that_the_hub_refuses_are_not_there(store, small_model, tmp_path):
    for name in ("a/b/c", "x+y", "two--dashes", "it.git", "fine"):
        store.publish(small_model, name=name)
    with Mount(store, tmp_path / "mnt") as mount:
        assert os.listdir(mount / "hub") == ["models--fine"]
        assert (mount / "models/a/b/c/1/config.json").stat().st_nlink == 1


@pytest.mark.long
def test_publishes_tear_no_load(tmp_path):
    """Each version has the same number in two files. A load by name sees one number."""
    store = Store(tmp_path / "store")
    source = tmp_path / "source"

    def make(number):
        value = number.to_bytes(4, "little") * 256
        write_model(source, {"a": ("U8", [len(value)], value)}, files=[("b.bin", value)])
        store.publish(source, name="org/live")

    make(0)
    torn, loads, done = [], [0] * LOADERS, threading.Event()

    def load(mount, loader):
        repo = mount / "hub/models--org--live"
        while not done.is_set():
            snapshot = repo / "snapshots" / (repo / "refs/main").read_text()
            first = load_file(snapshot / "model.safetensors")["a"].tobytes()
            if first != (snapshot / "b.bin").read_bytes():
                torn.append(snapshot)
            loads[loader] += 1

    with Mount(store, tmp_path / "mnt") as mount:
        threads = [threading.Thread(target=load, args=(mount, loader)) for loader in range(LOADERS)]
        for thread in threads:
            thread.start()
        try:
            for number in range(1, PUBLISHES):
                make(number)
        finally:
            done.set()
            for thread in threads:
                thread.join()
    assert torn == [] and min(loads) > 10


