"""What is published is the same tree everywhere: kinds, modes and sizes of entries in the mount, in hub/ and exported."""
import os
import shutil
import stat
import subprocess
import types

import pytest

from daemonlib import Daemon
from weftlib import NOBODY, Mount, Store, act_as, random_bytes, random_tensors, refused_by, run, safetensors_bytes

SCRIPT = b"#!/bin/sh\necho runs\nexit\n"
FILES = {"config.json": (b"{}", 0o644), "empty": (b"", 0o644), "a/b/c/deep.txt": (b"deep", 0o644),
         "with space.txt": (b"x", 0o644), "model.llamafile": (SCRIPT, 0o755), "a/of owner.sh": (SCRIPT, 0o744),
         "a/empty.sh": (b"", 0o755), "weights/large.bin": (random_bytes(5 << 20, "large"), 0o644),
         "weights/large.llamafile": (SCRIPT + random_bytes(5 << 20, "run"), 0o755),
         "model.safetensors": (safetensors_bytes(random_tensors(3, 1 << 16, seed="trees")), 0o755)}


LINKS = {"a/link.json": "../config.json", "hard.json": "config.json"}  # the second one is a second name of the file
EMPTY = ["1", "a/empty", "a/b/z", "saved/1/variables", "saved/1/assets", "with a name-"]


def write_tree(directory):
    for name, (content, mode) in FILES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
    (directory / "a/link.json").symlink_to(LINKS["a/link.json"])
    os.link(directory / LINKS["hard.json"], directory / "hard.json")
    for name in EMPTY:
        (directory / name).mkdir(parents=True)
    for path in [directory, *(path for path in directory.rglob("*") if path.is_dir())]:
        path.chmod(0o755)
    return directory


def tree_of(directory):
    """Kind, mode, size and path of each entry; links are followed, and the size of a directory is its file system's."""
    found = run(["find", "-L", f"{directory}/", "-mindepth", "1", "-type", "d", "-printf", "%y %m - %P\n",
                 "-o", "-printf", "%y %m %s %P\n"]).stdout
    return sorted(found.splitlines())


@pytest.fixture(name="source", scope="module")
def fixture_source(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("trees") / "source")


def publish_all(store, mount, source):
    """By import, as a data set, and by a rename in new/."""
    store.publish(source, name="org/m")
    store.weft("import", source, "--name", "org/d", "--dataset")
    if os.geteuid() == 0:
        shutil.copytree(source, mount / "new/drafted")
        os.rename(mount / "new/drafted", mount / "new/org/drafted@")


@pytest.fixture(name="shown", params=["alone", "daemon"], scope="module")
def fixture_shown(request, source, tmp_path_factory):
    area = tmp_path_factory.mktemp("shown")
    area.chmod(0o755)
    store = Store(area / "store")
    daemon = Daemon(store) if request.param == "daemon" else None
    options = "publish" if os.geteuid() == 0 else None
    try:
        if daemon:
            daemon.start()
        with Mount(store, area / "mnt", options) as mount:
            if os.geteuid() == 0:
                (mount / "new/org").mkdir()
            publish_all(store, mount, source)
            yield types.SimpleNamespace(store=store, mount=mount, area=area)
    finally:
        if daemon:
            daemon.__exit__()
    store.assert_sound()


def snapshot_of(mount, repository):
    directory = mount / "hub" / repository
    return directory / "snapshots" / (directory / "refs/main").read_text()


def test_the_mount_shows_what_was_published(shown, source):
    expected = tree_of(source)
    assert len(expected) == len(FILES) + len(LINKS) + len([path for path in source.rglob("*") if path.is_dir()])
    places = [shown.mount.version("org/m", 1), shown.mount.version("org/d", 1, "datasets"),
              snapshot_of(shown.mount, "models--org--m"), snapshot_of(shown.mount, "datasets--org--d")]
    if os.geteuid() == 0:
        places += [shown.mount.version("org/drafted", 1), snapshot_of(shown.mount, "models--org--drafted")]
    for place in places:
        assert tree_of(place) == expected, place
        assert [name for name in EMPTY if os.listdir(place / name) != []] == []
    for place in places[:2]:
        assert run(["find", place, "-type", "l", "-o", "-type", "f", "-links", "+1"]).stdout == ""


@pytest.mark.parametrize("options", [[], ["--dataset"]], ids=["model", "data set"])
def test_what_is_left_out_is_said(store, tmp_path, options):
    for name in ("config.json", ".git/HEAD", "a/.git/HEAD", ".cache/huggingface/x.lock"):
        (tmp_path / "m" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "m" / name).write_text("x")
    said = store.weft("import", tmp_path / "m", "--name", "m", *options).stderr
    assert sorted(line for line in said.splitlines() if "left out" in line) == [
        f"weft: {tmp_path}/m/{name}: left out: it is a directory of {program}"
        for name, program in ((".cache/huggingface", "huggingface_hub"), (".git", "git"), ("a/.git", "git"))]
    store.weft("export", "m", tmp_path / "out")
    assert tree_of(tmp_path / "out") == ["d 755 - .cache", "d 755 - a", "f 644 1 config.json"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the option publish")
def test_a_draft_leaves_out_what_other_programs_keep(shown):
    draft = shown.mount / "new/other"
    for name in ("config.json", ".git/HEAD", ".cache/huggingface/x.lock"):
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        (draft / name).write_text("x")
    os.rename(draft, shown.mount / "new/other@")
    assert tree_of(shown.mount.version("other", 1)) == ["d 755 - .cache", "f 644 1 config.json"]


@pytest.mark.parametrize("spec", ["org/m", "org/d"])
def test_an_export_is_what_was_published(shown, source, tmp_path, spec):
    shown.store.weft("export", spec, tmp_path / "out")
    assert tree_of(tmp_path / "out") == tree_of(source)
    shown.store.publish(tmp_path / "out", name=f"again/{spec}") if spec == "org/m" else \
        shown.store.weft("import", tmp_path / "out", "--name", f"again/{spec}", "--dataset")
    assert shown.store.json("info", f"again/{spec}")["manifest"] == shown.store.json("info", spec)["manifest"]


@pytest.mark.parametrize("place", ["models/org/m/1", "datasets/org/d/1"])
def test_a_published_program_runs(shown, place):
    for name in ("model.llamafile", "weights/large.llamafile"):
        path = shown.mount / place / name
        assert os.access(path, os.X_OK)
        assert subprocess.run([path], capture_output=True, check=False).stdout.startswith(b"runs"), path
    assert not os.access(shown.mount / place / "config.json", os.X_OK)


def test_nothing_can_be_written_whatever_the_modes_say(shown):
    version = shown.mount.version("org/m", 1)
    assert stat.S_IMODE(version.stat().st_mode) == 0o755
    assert not os.access(version, os.W_OK) and not os.access(version / "config.json", os.W_OK)
    refused_by(30, open, version / "config.json", "a")  # EROFS
    refused_by(30, os.mkdir, version / "new")
    refused_by(30, os.chmod, version / "config.json", 0o777)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
@pytest.mark.parametrize("place", ["models/org/m/1", "datasets/org/d/1", "layers/org/m/1", "tensors/org/m/1"])
def test_a_user_can_change_and_remove_his_copy(shown, tmp_path_factory, place):
    home = shown.area / place.replace("/", "-")
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    shown.mount.let_in()

    def copies():
        source = shown.mount / place
        shutil.copytree(source, home / "tree")
        (home / "tree/added").write_text("mine")
        some = next(path for path in sorted((home / "tree").rglob("*")) if path.is_file() and path.name != "added")
        some.write_text("changed")
        shutil.copy(some, home / "one")
        shutil.copy(some, home / "one")
        shutil.rmtree(home / "tree")
        subprocess.run(["cp", "-r", source, home / "second"], check=True)
        subprocess.run(["rm", "-rf", home / "second"], check=True)

    act_as(NOBODY, copies)
    assert os.listdir(home) == ["one"]


@pytest.mark.parametrize(("umask", "directory", "file", "program"), [("027", 0o750, 0o640, 0o750),
                                                                   ("0222", 0o555, 0o444, 0o555),
                                                                   ("011", 0o744, 0o644, 0o744),
                                                                   ("027,announce", 0o770, 0o660, 0o770)])
def test_umask_takes_bits_away(shown, tmp_path, umask, directory, file, program):
    with Mount(shown.store, tmp_path / "mnt", options=f"umask={umask}") as mount:
        version = mount.version("org/m", 1)
        modes = [stat.S_IMODE((version / name).stat().st_mode) for name in (".", "config.json", "model.llamafile")]
        assert modes == [directory, file, program]


def test_an_empty_directory_is_another_version_and_is_inherited(store, tmp_path):
    write_tree(tmp_path / "m")
    store.publish(tmp_path / "m", name="m")
    (tmp_path / "m/1").rmdir()
    store.publish(tmp_path / "m", name="m")
    assert "1/" in store.weft("diff", "m@1", "m@2").stdout
    (tmp_path / "part").mkdir()
    (tmp_path / "part/config.json").write_text("[]")
    store.weft("import", tmp_path / "part", "--name", "m", "--inherit", "m@1")
    with Mount(store, tmp_path / "mnt") as mount:
        assert [(mount.version("m", number) / "1").is_dir() for number in (1, 2, 3)] == [True, False, True]
        assert [(mount.version("m", number) / "a/empty").is_dir() for number in (1, 2, 3)] == [True] * 3
    store.weft("fsck", "--rebuild")
    store.assert_sound()
    store.weft("export", "m@3", tmp_path / "out")
    assert os.listdir(tmp_path / "out/1") == []


def test_a_data_set_of_large_files_keeps_its_empty_directories(store, tmp_path):
    """It has no table of small files."""
    (tmp_path / "d/train").mkdir(parents=True)
    (tmp_path / "d/validation").mkdir()
    (tmp_path / "d/train/large.bin").write_bytes(random_bytes(5 << 20, "only"))
    store.weft("import", tmp_path / "d", "--name", "d", "--dataset")
    store.weft("export", "d", tmp_path / "out")
    with Mount(store, tmp_path / "mnt") as mount:
        for place in (mount.version("d", 1, "datasets"), tmp_path / "out"):
            assert sorted(os.listdir(place)) == ["train", "validation"] and os.listdir(place / "validation") == []


def test_other_modes_of_the_same_bytes_are_another_version(store, tmp_path):
    """The x bits are content: the second publish has no new byte, and still makes a version."""
    write_tree(tmp_path / "m")
    store.publish(tmp_path / "m", name="m")
    (tmp_path / "m/config.json").chmod(0o755)
    (tmp_path / "m/model.llamafile").chmod(0o644)
    store.publish(tmp_path / "m", name="m")
    assert len(store.json("ls", "m")["versions"]) == 2
    with Mount(store, tmp_path / "mnt") as mount:
        for number, modes in ((1, (0o644, 0o755)), (2, (0o755, 0o644))):
            assert tuple(stat.S_IMODE((mount.version("m", number) / name).stat().st_mode)
                         for name in ("config.json", "model.llamafile")) == modes
    said = store.weft("diff", "m@1", "m@2").stdout
    assert "config.json" in said and "model.llamafile" in said and "empty.sh" not in said
