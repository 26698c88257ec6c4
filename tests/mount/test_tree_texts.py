"""Sentences of weft.7 about the tree, as a reader of a mount finds them."""
import json
import os
import re
import time

import pytest

from weftlib import Mount, files_below, random_tensors, run, safetensors_bytes, wait_until, write_model

VIEWS = ("models", "layers", "tensors", "safetensors", "lineage")


@pytest.fixture
def family(store, tmp_path):
    """org/base@1, and two versions of org/tuned made from it; mounted."""
    base = random_tensors(3, 8192, seed="base")
    store.publish(write_model(tmp_path / "1", base), name="org/base", tag="good")
    for number in (1, 2):
        tensors = base | random_tensors(1, 8192, seed=f"tuned {number}")
        store.publish(write_model(tmp_path / f"tuned{number}", tensors), name="org/tuned", parent="org/base@1")
    with Mount(store, tmp_path / "mnt") as mount:
        yield mount


def test_the_first_component_selects_a_view(family):
    assert sorted(os.listdir(family.path)) == sorted([".weft", "README", "datasets", "hub", "records", *VIEWS])
    assert sorted(os.listdir(family / ".weft")) == ["metrics", "peers", "status"]
    for view in VIEWS:
        names = set(os.listdir(family / view / "org/tuned"))
        assert names - {"versions.tsv"} == {"1", "2", "latest"}
        assert ("versions.tsv" in names) == (view == "lineage")
        assert os.readlink(family / view / "org/tuned/latest") == "2"
        assert os.readlink(family / view / "org/base/good") == "1"


def test_what_is_in_a_version(family, tmp_path):
    assert files_below(family / "models/org/base/1") == files_below(tmp_path / "1")
    assert sorted(os.listdir(family / "tensors/org/base/1")) == [f"layer.{number}.weight.npy" for number in range(3)]
    assert sorted(os.listdir(family / "layers/org/base/1/layer/0")) == ["layer.json", "weight.npy"]
    assert "0.safetensors" in os.listdir(family / "layers/org/base/1/layer")
    assert (family / "layers/org/base/1/layer.json").is_file()
    assert (family / "layers/org/base/1/layer/0/weight.npy").samefile(
        family / "tensors/org/base/1/layer.0.weight.npy")
    assert sorted(os.listdir(family / "lineage/org/tuned/1")) == [
        "SHA256SUMS", "ancestors", "children", "descendants", "diff", "graph.svg", "info.json", "log", "owners.tsv",
        "parents"]
    assert sorted(os.listdir(family / "hub")) == ["models--org--base", "models--org--tuned"]


def test_published_names_may_be_those_of_the_tree(store, tmp_path):
    """models/ has nothing but what was published, so nothing clashes."""
    names = ["info.json", "tensors/x", "layers/x", "lineage/log", "layer.json", "versions.tsv"]
    source = write_model(tmp_path / "m", random_tensors(1, 4096, seed="names"), files=[(name, b"mine") for name in names])
    store.publish(source, name="m")
    with Mount(store, tmp_path / "mnt") as mount:
        assert files_below(mount / "models/m/1") == files_below(source)
        assert run(["diff", "-r", source, mount / "models/m/1"]).stdout == ""
        assert json.loads((mount / "lineage/m/1/info.json").read_text())["model"] == "m"


def test_a_version_without_tensors(store, tmp_path):
    (tmp_path / "notes.txt").write_text("no tensor\n")
    store.publish(tmp_path / "notes.txt", name="m")
    with Mount(store, tmp_path / "mnt") as mount:
        assert os.listdir(mount / "layers/m/1") == os.listdir(mount / "tensors/m/1") == []


def test_two_files_with_tensors_of_one_name(store, tmp_path):
    source = write_model(tmp_path / "m", random_tensors(1, 4096, seed="a"))
    (source / "sub").mkdir()
    (source / "sub/z.safetensors").write_bytes(safetensors_bytes(random_tensors(1, 4096, seed="z")))
    store.publish(source, name="m")
    with Mount(store, tmp_path / "mnt") as mount:
        assert sorted(os.listdir(mount / "tensors/m/1")) == ["@sub%2Fz.safetensors", "layer.0.weight.npy"]
        flat = mount / "tensors/m/1/@sub%2Fz.safetensors/layer.0.weight.npy"
        assert flat.samefile(mount / "layers/m/1/@sub%2Fz.safetensors/layer/0/weight.npy")
        assert not flat.samefile(mount / "tensors/m/1/layer.0.weight.npy")


def test_versions_tsv(store, small_model, tmp_path):
    store.publish(small_model, name="m", tag=["a", "b"], message="tab\tline\nback\\slash", metric="loss=0.5")
    write_model(small_model, random_tensors(2, 4096, seed="second"))
    store.publish(small_model, name="m", parent="m@1")
    write_model(small_model, random_tensors(2, 4096, seed="third"))
    store.publish(small_model, name="m", parent="m@2")
    store.weft("rm", "--force", "m@2")
    with Mount(store, tmp_path / "mnt") as mount:
        head, *lines = (mount / "lineage/m/versions.tsv").read_text().splitlines()
        assert head.split("\t") == ["version", "time", "bytes", "new_bytes", "tags", "metrics", "parents", "message"]
        first, third = (dict(zip(head.split("\t"), line.split("\t"))) for line in lines)
        assert (first["version"], third["version"]) == ("1", "3")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", first["time"])
        assert (first["tags"], first["metrics"], first["parents"]) == ("a,b", "loss=0.5", "")
        assert first["message"] == r"tab\tline\nback\\slash"
        assert third["parents"] == "m@2"
        for row in (first, third):
            assert int(row["bytes"]) == sum(map(len, files_below(mount / "models/m" / row["version"]).values()))
        assert first["new_bytes"] == first["bytes"] and 8192 < int(third["new_bytes"]) < int(third["bytes"])


def test_kin_entries(family):
    """Named by model and number; those of removed versions go."""
    parents = family / "lineage/org/tuned/1/parents"
    assert os.listdir(parents) == os.listdir(family / "lineage/org/tuned/1/diff") == ["org%2Fbase@1"]
    assert (parents / "org%2Fbase@1").samefile(family / "models/org/base/1")
    children = family / "lineage/org/base/1/children"
    assert sorted(os.listdir(children)) == ["org%2Ftuned@1", "org%2Ftuned@2"]
    family.store.weft("rm", "--force", "org/tuned@1")
    wait_until(lambda: os.listdir(children) == ["org%2Ftuned@2"])
    assert "org/tuned@1" in (family / "lineage/org/base/1/descendants").read_text()


def later():
    time.sleep(0.01)


def times(mount, *paths):
    return {path: os.lstat(mount / path).st_mtime_ns for path in paths}


def test_times_of_directories(family, small_model):
    version = ("models/org/tuned/1", "layers/org/tuned/1", "tensors/org/tuned/1", "lineage/org/tuned/1",
               "models/org/tuned/1/config.json")
    namespace = ("models/org", "layers/org", "models", "tensors", "hub")
    model = tuple(f"{view}/org/tuned" for view in VIEWS)
    published, first = times(family, *version), times(family, *namespace, *model)
    assert len(set(published.values())) == 1

    later()
    family.store.weft("tag", "org/tuned@1", "prod")
    wait_until(lambda: all(times(family, *model)[path] > first[path] for path in model))
    assert times(family, *namespace) == {path: first[path] for path in namespace}
    tagged = times(family, *model)
    assert times(family, "models/org/tuned/prod")["models/org/tuned/prod"] == tagged["models/org/tuned"]
    newest = times(family, "models/org/tuned/2", "models/org/tuned/latest")
    assert len(set(newest.values())) == 1

    later()
    family.store.publish(small_model, name="org/other")
    with_other = ("models/org", "layers/org", "hub")  # the kernel forgets the times of one directory after the other
    wait_until(lambda: all(times(family, *with_other)[path] > first[path] for path in with_other))
    assert times(family, *model) == tagged

    later()
    family.store.weft("rm", "--force", "org/tuned@2")
    wait_until(lambda: all(times(family, *model)[path] > tagged[path] for path in model))
    assert times(family, *version) == published


def test_times_of_kin_directories(family, small_model):
    base = ("lineage/org/base/1/children", "lineage/org/base/1/parents", "lineage/org/base/1/diff")
    before = times(family, *base)
    later()
    family.store.publish(small_model, name="org/third", parent="org/base@1")
    wait_until(lambda: times(family, base[0])[base[0]] > before[base[0]])
    assert times(family, *base[1:]) == {path: before[path] for path in base[1:]}
    parents = ("lineage/org/third/1/parents", "lineage/org/third/1/diff")
    third = times(family, *parents)
    later()
    family.store.weft("rm", "--force", "org/base@1")
    wait_until(lambda: all(times(family, *parents)[path] > third[path] for path in parents))


def test_what_never_changes(family, small_model):
    """Files of a version, whatever is published and tagged beside it."""
    paths = [path for view in VIEWS for path in (family / view / "org/tuned/1").rglob("*")
             if path.is_file() and not path.is_symlink() and "parents" not in path.parts]
    lasting = [path for path in paths
               if path.name not in ("ancestors", "descendants", "log", "graph.svg")]
    assert len(lasting) > 10
    before = {path: (path.stat().st_ino, path.read_bytes()) for path in lasting}
    changing = family / "lineage/org/tuned/1/descendants"
    former = changing.stat().st_ino
    with changing.open("rb") as file:
        text = file.read()
        family.store.publish(small_model, name="org/tuned", parent="org/tuned@1")
        family.store.weft("tag", "org/tuned@1", "prod")
        wait_until(lambda: changing.stat().st_ino != former)
        assert b"org/tuned@3" in changing.read_bytes()
        file.seek(0)
        assert file.read() == text
    assert {path: (path.stat().st_ino, path.read_bytes()) for path in lasting} == before


def test_names_in_hub(store, small_model, tmp_path):
    refused = ["a/b/c", "x+y", "two--dashes", "two..dots", "it.git", "org/dash-", "dash-/m", "org/dot."]
    for name in ["fine", "org/fine", *refused]:
        store.publish(small_model, name=name)
    with Mount(store, tmp_path / "mnt") as mount:
        assert sorted(os.listdir(mount / "hub")) == ["models--fine", "models--org--fine"]
        assert all((mount / "models" / name / "1").is_dir() for name in refused)


def test_a_tag_named_versions_tsv(mounted):
    done = mounted.store.weft("tag", "org/small@1", "versions.tsv", check=False)
    assert done.returncode != 0 and "versions.tsv" in done.stderr
