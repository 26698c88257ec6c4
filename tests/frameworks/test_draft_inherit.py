"""`inherit` and `parents` in the .weft.json of a draft."""
import json
import os

import numpy
import pytest
from safetensors.numpy import load_file, save_file

from weftlib import Mount, Store

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def mount(tmp_path):
    with Mount(Store(tmp_path / "store"), tmp_path / "mnt", "publish") as mounted:
        yield mounted


def tensors(*seeds):
    return {f"h.{seed}.weight": numpy.random.default_rng(seed).normal(0, 1, (64, 64)) for seed in seeds}


def publish(mount, name, content, **facts):
    (mount / "new" / name).mkdir()
    save_file(content, mount / "new" / name / "model.safetensors")
    (mount / "new" / name / ".weft.json").write_text(json.dumps(facts))
    os.rename(mount / "new" / name, mount / "new" / f"{name}@")
    return json.loads((mount / "lineage" / name / "latest/info.json").read_text())


def test_a_draft_of_changed_tensors_inherits_the_others(mount):
    publish(mount, "base", tensors(1, 2, 3))
    changed = {"h.2.weight": tensors(9)["h.9.weight"]}
    info = publish(mount, "tuned", changed, inherit="base@1")
    got = load_file(mount / "models/tuned/1/model.safetensors")
    expected = tensors(1, 2, 3) | changed
    assert set(got) == set(expected) and all((got[name] == expected[name]).all() for name in got)
    assert [(parent["model"], parent["version"]) for parent in info["parents"]] == [("base", 1)]
    mount.store.assert_sound()


def test_a_draft_names_its_parents(mount):
    publish(mount, "a", tensors(1))
    publish(mount, "b", tensors(2))
    info = publish(mount, "merged", tensors(3), parents=["a@1", "b@1"])
    assert [(parent["model"], parent["version"], parent["declared"]) for parent in info["parents"]] == [
        ("a", 1, True), ("b", 1, True)]
    with pytest.raises(FileNotFoundError):
        publish(mount, "other", tensors(4), parents=["c@1"])
    assert "no model c" in (mount / "new/other/.weft.error").read_text()
