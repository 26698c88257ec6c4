"""Sentences of weft.7 that no other test holds."""
import errno
import os
import time

import pytest

from weftlib import NOBODY, Mount, files_below, random_tensors, run, store_with, wait_until, write_model

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def other_model(tmp_path):
    """Shares no tensor with small_model."""
    return write_model(tmp_path / "other", random_tensors(2, 4096, seed="other"))


def test_a_version_never_changes(mounted, small_model, other_model):
    """Whatever is published, tagged, removed and collected beside it. Only lineage/ tells of that."""
    store = mounted.store

    def content():
        return [files_below(mounted.version("org/small", 1, tree)) for tree in ("models", "layers", "tensors", "safetensors")]

    before = content()
    store.publish(other_model, name="org/small", parent="org/small@1", tag="next")
    store.publish(small_model, name="twin")
    store.weft("tag", "org/small@1", "next")
    store.weft("rm", "--force", "org/small@2", "twin@1")
    store.weft("gc")
    wait_until(lambda: not mounted.version("org/small", 2).exists())
    assert content() == before


def test_latest_is_the_newest_that_is_left(mounted, other_model, small_model):
    for model in (other_model, small_model):
        mounted.store.publish(model, name="org/small")
    latest = mounted / "models/org/small/latest"
    wait_until(lambda: os.readlink(latest) == "3")
    mounted.store.weft("rm", "--force", "org/small@3")
    wait_until(lambda: os.readlink(latest) == "2")
    mounted.store.weft("rm", "--force", "org/small@1")
    assert os.readlink(latest) == "2"


def test_times_of_views_and_tags(mounted, small_model):
    """A view has the time of the first publish that had it, a tag that of its last change."""
    first = mounted.version("org/small", 1)
    published = (first / "config.json").stat().st_mtime_ns
    time.sleep(0.01)
    mounted.store.publish(small_model, name="twin", tag="good")
    twin = mounted / "models/twin"
    wait_until((twin / "1/config.json").is_file)
    assert (twin / "1/config.json").stat().st_mtime_ns > published
    assert (mounted.tensors("twin", 1) / "layer.0.weight.npy").stat().st_mtime_ns == published
    tagged = (twin / "good").lstat().st_mtime_ns
    assert tagged == (twin / "1").stat().st_mtime_ns
    (small_model / "config.json").write_text("{}\n")
    mounted.store.publish(small_model, name="twin", tag="good")
    wait_until(lambda: os.readlink(twin / "good") == "2" and (twin / "good").lstat().st_mtime_ns > tagged)


def test_generated_files_report_one_block(mounted):
    generated = [path for tree in ("layers", "tensors", "lineage")
                 for path in mounted.version("org/small", 1, tree).rglob("*") if path.is_file()]
    assert len(generated) > 10
    assert {path.stat().st_blocks for path in generated} == {1}


@needs_root
def test_umask_keeps_others_out(open_dir, small_model):
    """Who may not read is told so, also when they want to write; who may is told EROFS."""
    store = store_with(open_dir, small_model)

    def attempt(redirection, **who):
        path = mount.version("m", 1) / "config.json"
        return run(["sh", "-c", f"true {redirection} {path}"], check=False, **who).stderr

    with Mount(store, open_dir / "mnt", options="umask=077") as mount:
        nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        assert "Permission denied" in attempt("<", **nobody)
        assert "Permission denied" in attempt(">>", **nobody)
        assert attempt("<") == "" and "Read-only file system" in attempt(">>")


def test_names_longer_than_a_name_can_be(mounted):
    """255 bytes are a name that is not there; more are an error of their own, in each tree."""
    versions = [mounted.version("org/small", 1, tree) for tree in ("models", "layers", "tensors", "safetensors", "lineage")]
    trees = [mounted.path / tree for tree in ("models", "layers", "tensors", "safetensors", "lineage", "hub", ".weft")]
    for directory in (mounted.path, *trees, *versions, versions[-1] / "parents", versions[-1] / "diff"):
        with pytest.raises(FileNotFoundError):
            os.stat(directory / ("n" * 255))
        for length in (256, 300, 1000, 4000):
            with pytest.raises(OSError) as failed:
                os.stat(directory / ("n" * length))
            assert failed.value.errno == errno.ENAMETOOLONG, (directory, length)
