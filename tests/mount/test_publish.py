"""What a publish makes, shares and says."""
import json
import os
import pathlib
import pty
import subprocess

import pytest

from weftlib import WEFT, Mount, environment, files_below, random_bytes, random_tensors, run, wait_until, write_model

MIB = 1 << 20


def imported(store, *paths, **options):
    """What `weft import --json` says."""
    words = [word for option, value in options.items() for word in ("--" + option, value)]
    return store.json("import", *paths, *words)


def test_report(store, small_model):
    report = imported(store, small_model, name="m")
    logical = sum(len(data) for data in files_below(small_model).values())
    assert (report["model"], report["version"], report["made"]) == ("m", 1, True)
    assert (report["files"], report["tensors"], report["logical_bytes"]) == (3, 4, logical)
    assert (report["new_bytes"], report["shared_bytes"]) == (logical, 0)


def test_same_content_makes_no_version(store, small_model):
    store.publish(small_model, name="m")
    before = store.state()
    assert imported(store, small_model, name="m")["made"] is False
    assert "m@1" in store.publish(small_model, name="m").stdout
    assert store.state() == before


def test_same_content_as_an_older_version_makes_one(store, small_model, tmp_path):
    other = write_model(tmp_path / "other", random_tensors(1, 64, seed="other"))
    for number, directory in enumerate([small_model, other, small_model], 1):
        report = imported(store, directory, name="m")
        assert (report["version"], report["made"]) == (number, True)
    assert report["new_bytes"] == 0


@pytest.mark.parametrize("parent", [{}, {"parent": "base"}], ids=["no parent", "parent"])
def test_sharing_needs_no_parent(store, tmp_path, parent):
    """By content over the whole store: other model, other file name, other order."""
    base = random_tensors(8, MIB, seed="base")
    store.publish(write_model(tmp_path / "base", base), name="base")
    held = store.pack_bytes()
    changed = dict(reversed(list(base.items()))) | random_tensors(1, MIB, seed="new", prefix="new")
    directory = write_model(tmp_path / "other", changed)
    (directory / "model.safetensors").rename(directory / "renamed.safetensors")
    report = imported(store, directory, name="elsewhere/derived", **parent)
    assert MIB <= report["new_bytes"] < MIB + (16 << 10)
    assert report["shared_bytes"] >= 8 * MIB
    assert store.pack_bytes() - held < MIB + (64 << 10)


def test_numbers_are_never_used_again(store, tmp_path):
    def publish(i):
        return imported(store, write_model(tmp_path / f"{i}", random_tensors(1, 64, seed=f"number {i}")),
                        name="m")["version"]

    assert [publish(i) for i in range(3)] == [1, 2, 3]
    store.weft("rm", "--force", "m@3")
    store.weft("rm", "--force", "m@2")
    store.weft("gc")
    assert publish(3) == 4
    for number in (1, 4):
        store.weft("rm", "--force", f"m@{number}")
    store.weft("gc")
    assert publish(4) == 5


def test_large_opaque_file(store, tmp_path):
    """A file of no format is kept as it is, and shared like any other."""
    data = random_bytes(20 * MIB, seed="opaque")
    (tmp_path / "weights.bin").write_bytes(data)
    store.publish(tmp_path / "weights.bin", name="m")
    assert imported(store, tmp_path / "weights.bin", name="n")["new_bytes"] == 0
    store.weft("export", "n", tmp_path / "out")
    assert (tmp_path / "out/weights.bin").read_bytes() == data


def test_export_round_trip(store, small_model, tmp_path):
    store.publish(small_model, name="m", tag="v")
    for spec in ("m", "m@1", "m@v", "m@latest"):
        store.weft("export", spec, tmp_path / spec)
        assert files_below(tmp_path / spec) == files_below(small_model)


def test_history_is_told(store, small_model, tmp_path):
    store.publish(small_model, name="m", message="as it came", metric=["loss=0.5", "epoch=3"])
    child = write_model(tmp_path / "child", random_tensors(1, 64, seed="child"))
    store.publish(child, name="m", parent=["m@1"], tag=["best", "newest"])
    text = store.weft("log", "m").stdout
    assert "as it came" in text and "best" in text
    log = json.dumps(store.json("log", "m"))
    assert '"loss": "0.5"' in log and '"epoch": "3"' in log and '"newest"' in log
    with Mount(store, tmp_path / "mnt") as mount:
        info = (mount.lineage("m", 1) / "info.json").read_text()
        assert "as it came" in info and "loss" in info


def test_a_note_changes_message_and_metrics(store, small_model, tmp_path):
    store.publish(small_model, name="m", message="as it came")
    with Mount(store, tmp_path / "mnt") as mount:
        info, log = mount.lineage("m", 1) / "info.json", mount.lineage("m", 1) / "log"
        assert json.loads(info.read_text())["message"] == "as it came" and "as it came" in log.read_text()
        store.weft("note", "m@1", "-m", "checked by hand", "--metric", "loss=0.5")
        wait_until(lambda: json.loads(info.read_text())["message"] == "checked by hand")
        assert json.loads(info.read_text())["metrics"] == {"loss": 0.5}
        wait_until(lambda: "checked by hand" in log.read_text())
    assert '"loss": "0.5"' in json.dumps(store.json("log", "m"))


def test_removed_version_stays_in_the_log(store, small_model, tmp_path):
    store.publish(small_model, name="m")
    store.publish(write_model(tmp_path / "next", random_tensors(1, 64, seed="next")), name="m", parent="m@1")
    store.weft("rm", "--force", "m@1")
    versions = store.json("log", "m")["versions"]
    assert sorted((version["version"], version["removed"]) for version in versions) == [(1, True), (2, False)]
    store.weft("gc")
    store.assert_sound()


def test_progress_is_for_terminals(store, tmp_path):
    """A bar with bytes, rate and time left on a terminal; in a pipe nothing."""
    path = tmp_path / "weights.bin"
    with open(path, "wb") as file:
        file.truncate(64 << 30)  # until the test has seen enough
    ours, theirs = pty.openpty()
    piped = store.start("import", path, "--name", "piped")
    begun = subprocess.Popen([WEFT, "--store", store.path, "import", path, "--name", "shown"], stdin=theirs,
                             stdout=theirs, stderr=theirs, env=environment(TERM="xterm"))
    os.close(theirs)
    try:
        shown = b""
        while not (b"%" in shown and b"/s" in shown and b"\r" in shown):
            shown += os.read(ours, 65536)
        assert begun.poll() is piped.poll() is None
    finally:
        for importer in (begun, piped):
            importer.kill()
            _, said = importer.communicate()
        os.close(ours)
    assert said == ""


def test_store_by_environment(store, small_model):
    run([WEFT, "import", small_model, "--name", "m"], env=environment(WEFT_STORE=str(store.path)))
    assert "m" in run([WEFT, "ls"], env=environment(WEFT_STORE=str(store.path))).stdout


def test_version_and_help():
    assert run([WEFT, "--version"]).stdout.strip()
    assert "import" in run([WEFT, "--help"]).stdout


def test_journal_is_all_that_remembers(store, small_model, tmp_path):
    """From packs, manifests and journal alone: names, numbers, tags, times, inode numbers, and nothing that was removed."""
    store.publish(small_model, name="org/a", tag="best", message="first")
    store.publish(write_model(tmp_path / "b", random_tensors(2, 4096, seed="b")), name="org/a", parent="org/a@1")
    store.publish(small_model, name="twin")
    store.publish(write_model(tmp_path / "c", random_tensors(2, 4096, seed="c")), name="gone")
    store.weft("rm", "--force", "gone@1")

    def everything(where):
        with Mount(store, tmp_path / where) as mount:
            root = mount / "models"
            return store.state(), {path.relative_to(root).as_posix(): (
                status.st_ino, status.st_mtime_ns, status.st_nlink, status.st_size, status.st_blocks,
                os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None)
                for path in sorted(root.rglob("*")) for status in [path.lstat()]}

    before = everything("before")
    for path in (store.path / "index").iterdir():
        path.unlink()
    store.weft("fsck", "--rebuild")
    assert everything("after") == before
    assert "gone" not in before[1]
    store.assert_sound()


@pytest.mark.parametrize("layer, hurt", [(0, 0.5), (1, 0.0), (1, 0.9)], ids=["small", "large, first MiB", "large, end"])
def test_importing_a_good_file_again_repairs_what_is_damaged(store, tmp_path, layer, hurt):
    """Tensors of 4 KiB and 20 MiB: one that is looked up as a whole, and one that only a hint finds early."""
    tensors = random_tensors(1, 4096, seed="small")
    tensors["large"] = next(iter(random_tensors(1, 20 * MIB, seed="large").values()))
    source = write_model(tmp_path / "source", tensors)
    store.publish(source, name="m")
    data = list(tensors.values())[layer][2]
    pack, = (pack for pack in (store.path / "packs").glob("*.pack") if data in pack.read_bytes())
    at = pack.read_bytes().find(data) + int(hurt * len(data))
    with open(pack, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    assert store.weft("fsck", check=False).returncode == 1
    assert imported(store, source, name="m")["made"] is False
    with Mount(store, tmp_path / "mnt") as mount:
        assert files_below(mount.version("m", 1)) == files_below(source)
    store.assert_sound()
    store.weft("gc")
    store.weft("export", "m", tmp_path / "out")
    assert files_below(tmp_path / "out") == files_below(source)


@pytest.mark.parametrize("words", [[], ["--move"]])
def test_more_large_files_than_descriptors(words, store, tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    for number in range(150):
        with open(model / f"x{number}", "wb") as file:
            file.write(number.to_bytes(8, "little"))
            file.truncate(1 << 20)
    run(["prlimit", "--nofile=128:128", WEFT, "--store", store.path, "import", model, "--name", "m", *words])
    with Mount(store, tmp_path / "mnt") as mount:
        assert {name: content[:8] for name, content in files_below(mount / "models/m/1").items()} == {
            f"x{number}": number.to_bytes(8, "little") for number in range(150)}
    store.assert_sound()


def test_an_import_reads_its_source_once(store, tmp_path):
    """Also where the shapes of all tensors are known and their content is not, and where large tensors begin alike."""
    def read_bytes(source, name):
        importer = store.start("--quiet", "import", source, "--name", name)
        os.waitid(os.P_PID, importer.pid, os.WEXITED | os.WNOWAIT)
        counts = pathlib.Path(f"/proc/{importer.pid}/io").read_text().split()
        assert importer.wait() == 0
        importer.communicate()
        return int(counts[counts.index("rchar:") + 1])

    tensors = random_tensors(2, 20 * MIB, seed="first")
    first = write_model(tmp_path / "first", tensors)
    size = (first / "model.safetensors").stat().st_size
    assert size <= read_bytes(first, "m") < 1.1 * size
    other = write_model(tmp_path / "other", random_tensors(2, 20 * MIB, seed="other"))
    assert size <= read_bytes(other, "m") < 1.1 * size
    # The source, and the stored bytes that it is compared with.
    assert read_bytes(first, "n") < 2.1 * size
    alike = {name: (dtype, shape, data[:-1] + bytes([data[-1] ^ 1])) for name, (dtype, shape, data) in tensors.items()}
    # The same, and the stored bytes again as they are copied.
    assert read_bytes(write_model(tmp_path / "alike", alike), "m") < 3.1 * size


@pytest.mark.parametrize("tree", ["models/org/base/1", "models/org/base/latest", "models/org/base/best", "hub"])
def test_base_by_its_path_in_a_mount(store, tmp_path, tree):
    """PEFT writes the path that the base was loaded from, into adapter_config.json and into the model card."""
    store.publish(write_model(tmp_path / "base", random_tensors(2, 4096, seed="base")), name="org/base", tag="best")
    with Mount(store, tmp_path / "mnt") as mount:
        path = mount.path / tree
        if tree == "hub":
            path, = (mount.path / "hub/models--org--base/snapshots").iterdir()
        adapter = write_model(tmp_path / "adapter", random_tensors(1, 64, seed="adapter"))
        (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(path)}))
        (adapter / "README.md").write_text(f"---\nbase_model: {path}\n---\n")
        report = imported(store, adapter, name="adapter")
    assert [(parent["model"], parent["version"]) for parent in report["parents"]] == [("org/base", 1)]
    assert report["parents_elsewhere"] == []


def test_base_by_a_path_elsewhere_is_named_once(store, tmp_path):
    adapter = write_model(tmp_path / "adapter", random_tensors(1, 64, seed="adapter"))
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "/data/team/base"}))
    (adapter / "README.md").write_text("---\nbase_model: /data/team/base\n---\n")
    assert imported(store, adapter, name="adapter")["parents_elsewhere"] == ["/data/team/base"]


def hub_cache(area, repository="models--org--bert"):
    """A repository as huggingface_hub has it: a snapshot of links to blobs, and refs/main."""
    commit = "c0ffee" + "0" * 34
    model = write_model(area / "downloaded", random_tensors(1, 64, seed="hub"))
    top = area / "hub" / repository
    for directory in ("blobs", "refs", f"snapshots/{commit}"):
        (top / directory).mkdir(parents=True)
    for number, path in enumerate(sorted(model.iterdir())):
        path.rename(top / "blobs" / str(number))
        (top / "snapshots" / commit / path.name).symlink_to(f"../../blobs/{number}")
    (top / "refs/main").write_text(commit)
    return top, commit


def test_repository_of_the_hubs_cache(store, tmp_path):
    """It is the snapshot of refs/main; name, revision and commit come from the cache."""
    repository, commit = hub_cache(tmp_path)
    done = store.weft("import", repository)
    assert "org/bert@1" in done.stdout and "org/bert" in done.stderr and commit in done.stderr
    info = store.json("info", "org/bert")
    assert {file["path"] for file in info["files"]} == {path.name for path in (repository / "snapshots" / commit).iterdir()}
    assert info["message"] == f"org/bert of the Hugging Face hub, revision main, commit {commit}"
    assert imported(store, repository.parent, name="mine", message="own")["model"] == "mine"
    assert store.json("info", "mine")["message"] == "own"


def test_the_hubs_commit_is_a_revision(store, tmp_path):
    """Its snapshot and its file in refs/ are found, also in an index that is made anew."""
    repository, commit = hub_cache(tmp_path)
    store.weft("import", repository)
    assert store.json("info", "org/bert")["source"] == {"commit": commit}
    assert store.json("log", "org/bert")["versions"][0]["source"] == {"commit": commit}
    store.weft("fsck", "--rebuild")
    with Mount(store, tmp_path / "mnt") as mount:
        hub = mount / "hub/models--org--bert"
        digits = (hub / "refs/main").read_text()
        assert sorted(path.name for path in (hub / "refs").iterdir()) == ["1", commit, "main"]
        assert (hub / "refs" / commit).read_text() == digits
        assert os.readlink(hub / "snapshots" / commit) == digits
        assert sorted(path.name for path in (hub / "snapshots").iterdir()) == sorted([commit, digits])
        assert (hub / "snapshots" / commit / "config.json").samefile(mount / "models/org/bert/1/config.json")
        info = store.json("info", hub / "snapshots" / commit)
        assert (info["model"], info["version"]) == ("org/bert", 1)
    assert store.weft("fsck").returncode == 0


@pytest.mark.parametrize("place", ["", "snapshots/{commit}", "snapshots/{digits}"])
def test_hub_of_a_mount_is_no_source(store, tmp_path, place):
    """Its snapshots are named by digests, which no hub knows."""
    repository, commit = hub_cache(tmp_path)
    store.weft("import", repository)
    with Mount(store, tmp_path / "mnt") as mount:
        hub = mount / "hub/models--org--bert"
        path = hub / place.format(commit=commit, digits=(hub / "refs/main").read_text())
        report = imported(store, path, name="copy")
        assert report["mounted_files"] == report["files"] > 0
        assert files_below(mount.version("copy", 1)) == files_below(mount.version("org/bert", 1))
        done = store.weft("import", path)
        assert "org/bert@1 has this content already" in done.stdout and "the name is org/bert" in done.stderr
        assert "Hugging Face" not in done.stderr and "not kept" not in done.stderr
    info = store.json("info", "copy")
    assert (info["message"], info["source"]) == ("", None)


def test_name_of_the_directory(store, tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny/config.json").write_text("{}")
    done = store.weft("import", tmp_path / "tiny")
    assert "tiny@1" in done.stdout and "the name is tiny" in done.stderr
    assert store.weft("import", tmp_path / "tiny/config.json", check=False).returncode != 0
    (tmp_path / "12").mkdir()
    (tmp_path / "12/config.json").write_text("{}")
    assert "--name is required" in store.weft("import", tmp_path / "12", check=False).stderr


def test_many_files_without_tensors_get_a_remark(store, tmp_path):
    for number in range(600):
        (tmp_path / "images").mkdir(exist_ok=True)
        (tmp_path / f"images/{number}.png").write_bytes(b"\x89PNG" + number.to_bytes(4, "big"))
    assert "--dataset" in store.weft("import", tmp_path / "images", "--name", "images").stderr
    assert "--dataset" not in store.weft("import", tmp_path / "images", "--name", "other", "--dataset").stderr
