"""Listings of many versions and tags: what they show, and whom they hold up."""
import array
import fcntl
import json
import os
import subprocess
import termios

import numpy
import pytest
from safetensors.numpy import save_file

from weftlib import WEFT, Mount, environment, wait_until

PIPE_BYTES = 4096
VERSIONS, TAGS = 60, 40


@pytest.fixture
def source(tmp_path):
    def write(content):
        path = tmp_path / "model.txt"
        path.write_text(str(content))
        return path
    return write


@pytest.fixture
def many_versions(store, source):
    for number in range(VERSIONS):
        store.publish(source(f"{number}"), name="m", message=f"version {number + 1} {'m' * 60}")
    return store


def unread(pipe):
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def read_after_imports(store, source, *words):
    """What `weft` prints into a pipe that nobody reads until ten imports are done beside it."""
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    with subprocess.Popen([WEFT, "--store", store.path, *words], stdout=write_end,
                          env=environment()) as command, open(read_end, encoding="utf-8") as reader:
        os.close(write_end)
        wait_until(lambda: unread(read_end) == PIPE_BYTES)
        for number in range(10):
            store.publish(source(f"more {number}"), name="other")
        assert command.poll() is None
        text = reader.read()
        assert command.wait() == 0
    return text


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["table", "json"])
def test_a_listing_that_nobody_reads_holds_up_no_import(many_versions, source, options):
    text = read_after_imports(many_versions, source, "ls", "m", *options)
    if options:
        assert [version["version"] for version in json.loads(text)["versions"]] == list(range(1, VERSIONS + 1))
    else:
        lines = text.splitlines()
        assert [int(line.split()[0]) for line in lines[1:]] == list(range(1, VERSIONS + 1))


def test_a_version_of_many_tags_shows_the_first_and_how_many_more(store, source):
    names = [f"t{number:03}" for number in range(TAGS)]
    store.publish(source("a"), name="org/m", tag=names)
    store.publish(source("b"), name="org/m")
    for spec in ("org/m", "org", ""):
        first, *rest = store.weft("ls", *([spec] if spec else [])).stdout.splitlines()
        assert "TAGS" in first
        assert "t000" in rest[0] and f"t{TAGS - 1:03}" not in rest[0]
        shown = rest[0].count("t0")
        assert f"+{TAGS - shown} more" in rest[0]
    assert store.json("ls", "org/m")["versions"][0]["tags"] == names
    assert store.json("ls")["models"][0]["tags"] == {name: 1 for name in names}
    assert store.json("ls")["models"] == store.json("ls", "org")["models"]


def test_the_counts_of_a_model_follow_removals_and_tags(store, source):
    def counts():
        (model,) = store.json("ls")["models"]
        return model["versions"], len(model["tags"])

    store.publish(source("a"), name="m", tag=["x", "y"])
    store.publish(source("b"), name="m")
    assert counts() == (2, 2)
    store.weft("tag", "m@2", "x")
    store.weft("tag", "m@2", "z")
    assert counts() == (2, 3)
    store.weft("tag", "m", "z", "--delete")
    assert counts() == (2, 2)
    store.weft("rm", "--force", "m@1")
    assert counts() == (1, 1)
    store.weft("fsck", "--rebuild")
    assert counts() == (1, 1)
    store.weft("rm", "--force", "m@2")
    assert store.json("ls")["models"] == []


def test_a_listing_of_nothing_says_what_there_is(store, source):
    store.publish(source("a"), name="org/m")
    said = store.weft("ls", "or", check=False)
    assert said.returncode != 0 and "org/m" in said.stderr and not said.stdout
    said = json.loads(store.weft("ls", "or", "--json", check=False).stdout)
    assert said["error"] == "not_found" and "org/m" in said["message"]


def test_du_and_find_open_no_manifest_of_a_fine_tune(store, tmp_path):
    """The index has their figures, and one manifest stands for all versions of one outline."""
    def publish(value, name):
        path = tmp_path / "model.safetensors"
        tensors = {f"layer.{i}.weight": numpy.full((4, i + 1), value, numpy.float32) for i in range(3)}
        save_file(tensors, path)
        return store.publish(path, name=name)

    before = set((store.path / "manifests").iterdir())
    publish(1, "base")
    first = set((store.path / "manifests").iterdir()) - before
    publish(2, "tuned")
    (later,) = set((store.path / "manifests").iterdir()) - before - first
    later.unlink()
    assert [line["model"] for line in store.json("find", "tensors = 3 and layer ~ 'layer.*'")["versions"]] == [
        "base", "tuned"]
    assert store.json("find", "tensors = 4")["versions"] == []
    usage = {model["model"]: model for model in store.json("du")["models"]}
    assert usage["tuned"]["owned_bytes"] == 96
    assert usage["base"]["owned_bytes"] == usage["base"]["logical_bytes"]


def test_the_tags_of_a_version_are_the_same_everywhere(store, source, tmp_path):
    for number in range(3):
        store.publish(source(f"{number}"), name="m", tag=[f"a{number}", f"b{number}"])

    def check(expected):
        assert {version["version"]: version["tags"] for version in store.json("ls", "m")["versions"]} == expected
        logged = store.json("log", "m")["versions"]
        assert [version["version"] for version in logged] == [3, 2, 1]
        assert {version["version"]: version["tags"] for version in logged if not version["removed"]} == expected
        for number, tags in expected.items():
            for tag in tags:
                (found,) = store.json("find", f"tag = {tag}")["versions"]
                assert found["version"] == number
        with Mount(store, tmp_path / "mnt") as mount:
            rows = [line.split("\t") for line in (mount / "lineage/m/versions.tsv").read_text().splitlines()[1:]]
        assert {int(row[0]): row[4].split(",") if row[4] else [] for row in rows} == expected

    check({1: ["a0", "b0"], 2: ["a1", "b1"], 3: ["a2", "b2"]})
    store.weft("tag", "m@1", "b2")
    store.weft("tag", "m", "a1", "--delete")
    check({1: ["a0", "b0", "b2"], 2: ["b1"], 3: ["a2"]})
    store.weft("rm", "--force", "m@1")
    assert store.json("ls")["models"][0]["tags"] == {"b1": 2, "a2": 3}
    store.weft("tag", "m@3", "b0")
    check({2: ["b1"], 3: ["a2", "b0"]})
    store.weft("fsck")
    store.weft("fsck", "--rebuild")
    check({2: ["b1"], 3: ["a2", "b0"]})


def test_the_changes_of_tags_outlive_tags_versions_and_the_index(store, source):
    def changes(*tag):
        return [(change["tag"], change["before"], change["version"])
                for change in store.json("tag", "--log", "m", *tag)["changes"]]

    store.publish(source("a"), name="m", tag="x")
    store.publish(source("b"), name="m", tag=["x", "y"])
    store.weft("tag", "m@1", "x")
    store.weft("tag", "--delete", "m", "y")
    store.weft("rm", "--force", "m@1")
    expected = [("x", 1, None), ("y", 2, None), ("x", 2, 1), ("x", 1, 2), ("y", None, 2), ("x", None, 1)]
    store.weft("gc")
    # Changes of one moment stand in the order of the tags.
    assert changes() == expected and changes("y") == [change for change in expected if change[0] == "y"]
    store.weft("fsck")
    store.weft("fsck", "--rebuild")
    assert changes() == expected
    assert store.json("tag", "m")["tags"] == []


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["table", "json"])
def test_a_log_that_nobody_reads_holds_up_no_import(many_versions, source, options):
    text = read_after_imports(many_versions, source, "log", "m", *options)
    if options:
        numbers = [version["version"] for version in json.loads(text)["versions"]]
    else:
        numbers = [int(line.split()[0].split("@")[1]) for line in text.splitlines() if line.startswith("m@")]
    assert numbers == list(range(VERSIONS, 0, -1))
