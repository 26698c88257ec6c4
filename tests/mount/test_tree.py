"""The mounted tree: what is where, and what may be relied on (weft.7)."""
import errno
import json
import os
import pathlib
import time

import pytest

from weftlib import (Mount, Store, files_below, random_tensors, run, safetensors_bytes, wait_until,
                     write_model)


TREES = ["layers", "lineage", "models", "safetensors", "tensors"]


def attributes(root):
    """Path -> what stays the same as long as a version is there."""
    return {path.relative_to(root).as_posix(): (status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode,
                                                status.st_nlink, status.st_blocks)
            for path in sorted(root.rglob("*")) for status in [path.lstat()]}


def test_version_directory(mounted, small_model):
    version, layers, tensors = (mounted.version("org/small", 1, tree) for tree in ("models", "layers", "tensors"))
    assert sorted(os.listdir(version)) == ["1_Pooling", "config.json", "model.safetensors"]
    run(["diff", "-r", version, small_model])
    assert sorted(os.listdir(tensors)) == [f"layer.{i}.weight.npy" for i in range(4)]
    assert sorted(os.listdir(layers)) == ["layer", "layer.json", "layer.safetensors"]
    assert (layers / "layer/2/weight.npy").samefile(tensors / "layer.2.weight.npy")
    assert (layers / "layer/2/layer.json").is_file()
    assert (layers / "layer/2.safetensors").is_file()
    assert sorted(os.listdir(mounted.lineage("org/small", 1))) == [
        "SHA256SUMS", "ancestors", "children", "descendants", "diff", "graph.svg", "info.json", "log", "owners.tsv",
        "parents"]


def test_root(mounted):
    assert sorted(os.listdir(mounted.path)) == sorted([".weft", "README", "datasets", "hub", "records", *TREES])
    readme = (mounted / "README").read_text()
    assert all(f"{name}/" in readme for name in ("datasets", "hub", "records", *TREES)) and len(readme.splitlines()) <= 20
    assert json.loads((mounted / ".weft/status").read_text())["daemon"] is None
    assert sorted(os.listdir(mounted / ".weft")) == ["metrics", "peers", "status"]
    assert json.loads((mounted / ".weft/peers").read_text()) is None
    assert (mounted / ".weft/metrics").read_text() == "# no daemon answers\n"


def test_links(mounted, small_model):
    """latest and tags are links in each tree."""
    def targets(*names):
        found = {tuple(os.readlink(mounted / tree / "org/small" / name) for name in names) for tree in TREES}
        assert len(found) == 1
        return found.pop()

    write_model(small_model, random_tensors(2, 4096, seed="second"))
    mounted.store.publish(small_model, name="org/small", tag="best")
    assert targets("latest") == ("2",)
    mounted.store.weft("tag", "org/small@1", "stable")
    assert targets("best", "stable") == ("2", "1")
    mounted.store.weft("tag", "org/small@1", "best")
    assert targets("best") == ("1",)


def test_inodes_and_times_are_stable_across_remounts(store, small_model, tmp_path):
    store.publish(small_model, name="org/small")
    store.publish(small_model, name="other")
    with Mount(store, tmp_path / "mnt") as mount:
        first = [attributes(mount / tree) for tree in (*TREES, "hub")]
    time.sleep(0.01)
    with Mount(store, tmp_path / "elsewhere") as mount:
        assert [attributes(mount / tree) for tree in (*TREES, "hub")] == first


def test_mtime_is_the_time_of_the_publish(store, small_model, tmp_path):
    before = time.time()
    store.publish(small_model, name="org/small")
    after = time.time()
    with Mount(store, tmp_path / "mnt") as mount:
        times = {path.lstat().st_mtime for tree in TREES for path in mount.version("org/small", 1, tree).rglob("*")}
        assert len(times) == 1 and before - 1 <= times.pop() <= after + 1


def test_no_file_with_bytes_is_without_blocks(mounted):
    for path in mounted.path.rglob("*"):
        status = path.lstat()
        if path.is_file() and not path.is_symlink() and status.st_size and ".weft" not in path.parts:
            assert status.st_blocks > 0, path


def test_large_published_files_are_asked_for_in_large_parts(store, tmp_path):
    """By what goes by st_blksize: cat, cp, Python's files. Not tensors, of which often the head alone is read."""
    store.publish(write_model(tmp_path / "m", random_tensors(1, 8 << 20, seed="large"), files=[("config.json", b"{}")]),
                  name="m")
    with Mount(store, tmp_path / "mnt") as mount:
        version = mount.version("m", 1)
        large = version / "model.safetensors"
        asked = {path: path.stat().st_blksize for tree in TREES for path in mount.version("m", 1, tree).rglob("*")
                 if path.is_file()}
        twin = mount.version("m", 1, "safetensors") / "model.safetensors"
        assert asked.pop(large) == asked.pop(twin) == 1 << 20
        assert set(asked.values()) == {4096}
        with large.open("rb") as file:
            assert os.fstat(file.fileno()).st_blksize == 1 << 20


def test_sizes_are_exact(mounted):
    for path in mounted.path.rglob("*"):
        if path.is_file() and not path.is_symlink() and ".weft" not in path.parts:
            assert path.stat().st_size == len(path.read_bytes()), path


def test_owned_bytes_pass_on(store, tmp_path):
    """st_blocks of a file is what it was the first to bring; the next holder inherits it."""
    tensors = random_tensors(4, 1 << 20, seed="owned")
    store.publish(write_model(tmp_path / "a", tensors), name="first")
    store.publish(write_model(tmp_path / "b", tensors | random_tensors(1, 1 << 20, seed="own", prefix="x")),
                  name="second")
    with Mount(store, tmp_path / "mnt") as mount:
        first, second = (mount.version(name, 1) / "model.safetensors" for name in ("first", "second"))
        assert first.stat().st_blocks * 512 >= 4 << 20
        assert 1 << 20 <= second.stat().st_blocks * 512 < 2 << 20
        store.weft("rm", "--force", "first@1")
        wait_until(lambda: second.stat().st_blocks * 512 >= 5 << 20)


def test_published_names_clash_with_nothing(store, tmp_path):
    """Published files may be called as the generated ones are."""
    model = write_model(tmp_path / "m", random_tensors(1, 4096, seed="clash"),
                        files=[(name, b"mine") for name in ("info.json", "tensors/mine.txt", "lineage", "layers/layer.json",
                                                            "latest", "versions.tsv")])
    store.publish(model, name="m")
    with Mount(store, tmp_path / "mnt") as mount:
        run(["diff", "-r", mount.version("m", 1), model])
        assert json.loads((mount.lineage("m", 1) / "info.json").read_text())["model"] == "m"
        assert os.listdir(mount.tensors("m", 1)) == ["layer.0.weight.npy"]
        assert (mount.layers("m", 1) / "layer/0/weight.npy").is_file()


def test_a_version_without_tensors(store, tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/config.json").write_bytes(b"{}")
    store.publish(tmp_path / "plain", name="plain")
    with Mount(store, tmp_path / "mnt") as mount:
        assert os.listdir(mount.version("plain", 1)) == ["config.json"]
        assert os.listdir(mount.layers("plain", 1)) == [] == os.listdir(mount.tensors("plain", 1))


def test_each_directory_has_a_number_of_its_own(mounted, small_model):
    """Also the same one in another tree, and each link."""
    write_model(small_model, random_tensors(2, 4096, seed="second"))
    mounted.store.publish(small_model, name="org/small", parent="org/small@1", tag="best")
    places, files = {}, {}
    for path in mounted.path.rglob("*"):
        kinds = places if path.is_symlink() or path.is_dir() else files
        kinds.setdefault(path.lstat().st_ino, []).append(path)
    assert len(places) > 50
    assert {ino: paths for ino, paths in places.items() if len(paths) > 1} == {}
    for paths in files.values():
        assert {path.lstat().st_nlink for path in paths} == {len(paths)}, paths


def test_hub(mounted, small_model):
    """The layout of huggingface_hub's cache, of which main is the newest version or the tag of that name."""
    hub = mounted / "hub/models--org--small"
    assert os.listdir(mounted / "hub") == ["models--org--small"]
    write_model(small_model, random_tensors(2, 4096, seed="second"))
    mounted.store.publish(small_model, name="org/small", tag="best")
    mounted.store.publish(small_model, name="a/b/c")
    assert os.listdir(mounted / "hub") == ["models--org--small"]
    refs = {name: (hub / "refs" / name).read_text() for name in os.listdir(hub / "refs")}
    assert sorted(refs) == ["1", "2", "best", "main"] and refs["main"] == refs["2"] == refs["best"] != refs["1"]
    assert sorted(os.listdir(hub / "snapshots")) == sorted({refs["1"], refs["2"]})
    for number in (1, 2):
        snapshot = hub / "snapshots" / refs[str(number)]
        assert files_below(snapshot) == files_below(mounted.version("org/small", number))
        assert (snapshot / "config.json").samefile(mounted.version("org/small", number) / "config.json")
    mounted.store.weft("tag", "org/small@1", "main")
    assert (hub / "refs/main").read_text() == refs["1"]


def test_versions_table(mounted, small_model):
    """Open it again to see what changed: it is never kept."""
    table = mounted / "lineage/org/small/versions.tsv"

    def rows():
        head, *lines = table.read_text().splitlines()
        return [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]

    [first] = rows()
    assert list(first) == ["version", "time", "bytes", "new_bytes", "tags", "metrics", "parents", "message"]
    assert (first["version"], first["tags"], first["parents"]) == ("1", "", "")
    assert int(first["bytes"]) == int(first["new_bytes"]) == sum(map(len, files_below(small_model).values()))
    (small_model / "config.json").write_bytes(b"[7]")
    mounted.store.publish(small_model, name="org/small", parent="org/small@1", metric=["loss=0.5", "steps=7"],
                          message="again\tand\nagain", tag=["a", "b"])
    second = rows()[1]
    assert int(second["new_bytes"]) == 3
    assert int(second["bytes"]) == sum(map(len, files_below(small_model).values()))
    assert (second["tags"], second["metrics"], second["parents"]) == ("a,b", "loss=0.5,steps=7", "org/small@1")
    assert second["message"] == "again\\tand\\nagain"
    mounted.store.weft("tag", "org/small@1", "a")
    assert [row["tags"] for row in rows()] == ["a", "b"]
    mounted.store.weft("rm", "--force", "org/small@1")
    assert [row["version"] for row in rows()] == ["2"]
    assert len(table.read_bytes()) == table.stat().st_size


def test_xattrs(store, small_model, tmp_path):
    store.publish(small_model, name="org/small")
    view = "layer.0.weight.npy"
    with Mount(store, tmp_path / "mnt") as mount, pytest.raises(OSError) as refused:
        os.getxattr(mount.tensors("org/small", 1) / view, "user.weft.dtype")
    assert refused.value.errno == errno.ENOTSUP
    with Mount(store, tmp_path / "mnt", options="xattr") as mount:
        path = mount.tensors("org/small", 1) / view
        assert {"user.weft.dtype", "user.weft.shape", "user.weft.hash"} <= set(os.listxattr(path))
        assert os.getxattr(path, "user.weft.dtype") == b"F32"
        assert b"65536" in os.getxattr(path, "user.weft.shape")
        assert "F32" in run(["getfattr", "-d", path]).stdout


def test_statfs_is_the_store_s(mounted):
    ours, theirs = os.statvfs(mounted.path), os.statvfs(mounted.store.path)
    assert ours.f_blocks * ours.f_frsize == theirs.f_blocks * theirs.f_frsize
    assert 0 < ours.f_bavail * ours.f_frsize <= ours.f_blocks * ours.f_frsize


WRITES = {
    "create": lambda d: os.open(d / "new", os.O_CREAT | os.O_WRONLY),
    "open for writing": lambda d: os.open(d / "config.json", os.O_WRONLY),
    "open for both": lambda d: os.open(d / "config.json", os.O_RDWR),
    "truncate": lambda d: os.truncate(d / "config.json", 0),
    "unlink": lambda d: os.unlink(d / "config.json"),
    "rename": lambda d: os.rename(d / "config.json", d / "other"),
    "mkdir": lambda d: os.mkdir(d / "new"),
    "rmdir": lambda d: os.rmdir(d / "1_Pooling"),
    "symlink": lambda d: os.symlink("config.json", d / "new"),
    "link": lambda d: os.link(d / "config.json", d / "new"),
    "mknod": lambda d: os.mkfifo(d / "new"),
    "chmod": lambda d: os.chmod(d / "config.json", 0o600),
    "chown": lambda d: os.chown(d / "config.json", 1, 1),
    "utime": lambda d: os.utime(d / "config.json", (1, 1)),
    "setxattr": lambda d: os.setxattr(d / "config.json", "user.x", b"y"),
    "removexattr": lambda d: os.removexattr(d / "config.json", "user.x"),
    "create in the root": lambda d: os.open(d.parents[3] / "new", os.O_CREAT | os.O_WRONLY),
    "new model": lambda d: os.mkdir(d.parents[2] / "new"),
    "remove a version": lambda d: os.rmdir(d),
    "unlink latest": lambda d: os.unlink(d.parent / "latest"),
}


@pytest.mark.parametrize("operation", WRITES.values(), ids=WRITES.keys())
def test_writes_are_refused(mounted, small_model, operation):
    version = mounted.version("org/small", 1)
    with pytest.raises(OSError) as refused:
        operation(version)
    assert refused.value.errno == errno.EROFS
    assert files_below(version / "1_Pooling") == files_below(small_model / "1_Pooling")


def test_names_that_are_not_there(mounted):
    for name in ("models/none", "models/org/small/7", "models/org/small/01", "models/org/small/none",
                 "models/org/small/1/none", "tensors/org/small/1/none.npy", "layers/org/small/1/none"):
        with pytest.raises(FileNotFoundError):
            os.stat(mounted / name)
    with pytest.raises(NotADirectoryError):
        os.stat(mounted / "models/org/small/1/config.json/x")


def test_published_subdirectories_and_empty_files(store, tmp_path):
    model = write_model(tmp_path / "m", random_tensors(1, 64, seed="sub"),
                        files=[("a/b/c/d.txt", b"deep"), ("empty", b""), ("a/name with spaces and ü.txt", b"x")])
    store.publish(model, name="m")
    with Mount(store, tmp_path / "mnt") as mount:
        assert files_below(mount.version("m", 1)) == files_below(model)


def test_directory_of_links_is_followed(store, tmp_path):
    """The hub cache's snapshots are directories of links into a folder of blobs."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots/0123abcd"
    blobs.mkdir()
    (snapshot / "1_Pooling").mkdir(parents=True)
    contents = {"config.json": b"{}\n", "1_Pooling/config.json": b'{"a": 1}\n',
                "model.safetensors": safetensors_bytes(random_tensors(2, 4096, seed="links"))}
    for i, (name, data) in enumerate(contents.items()):
        (blobs / str(i)).write_bytes(data)
        (snapshot / name).symlink_to(os.path.relpath(blobs / str(i), (snapshot / name).parent))
    store.publish(snapshot, name="hub")
    with Mount(store, tmp_path / "mnt") as mount:
        version = mount.version("hub", 1)
        assert files_below(version) == contents
        assert not any(path.is_symlink() for path in version.rglob("*"))


def test_many_readers_at_once(mounted, small_model):
    """Each gets the right bytes at each offset, from containers and from views."""
    from concurrent.futures import ThreadPoolExecutor
    version = mounted.version("org/small", 1)
    paths = {version / "model.safetensors": (small_model / "model.safetensors").read_bytes()}
    paths |= {path: path.read_bytes() for path in mounted.tensors("org/small", 1).iterdir()}

    def read_pieces(seed):
        path, expected = list(paths.items())[seed % len(paths)]
        with open(path, "rb", buffering=0) as file:
            for step in range(100):
                offset = (seed * 7919 + step * 104729) % (len(expected) + 10)
                piece = os.pread(file.fileno(), 1 + (seed * step) % 5000, offset)
                assert piece == expected[offset:offset + 1 + (seed * step) % 5000]
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read_pieces, range(40)))


def test_relative_paths(store, small_model, tmp_path):
    """The server goes to the background: what was relative to the caller's directory still holds."""
    store.publish(small_model, name="m")
    relative = Store.__new__(Store)
    relative.path = pathlib.Path("store")
    (tmp_path / "mnt").mkdir()
    mount = Mount(relative, tmp_path / "mnt", cwd=tmp_path)
    with mount:
        assert (mount.version("m", 1) / "config.json").is_file()


def test_info_takes_paths_of_the_mount(mounted):
    """Of a version, of a file in it, of its tensors; a tag's link leads to the version."""
    store = mounted.store
    first = store.weft("info", "org/small@1").stdout
    assert first.startswith("org/small@1\n")
    store.weft("tag", "org/small@1", "here")
    first = store.weft("info", "org/small@1").stdout
    for tree in TREES:
        assert store.weft("info", mounted / tree / "org/small/1").stdout == first
        assert store.weft("info", mounted / tree / "org/small/here").stdout == first
    some = next(path for path in (mounted / "models/org/small/1").iterdir())
    assert store.weft("info", some).stdout == first
    assert store.weft("info", "small/1", cwd=mounted / "models/org").stdout == first
    refused = store.weft("info", mounted / "models", check=False)
    assert refused.returncode == 1 and "expected the path of a version in a mount of" in refused.stderr
