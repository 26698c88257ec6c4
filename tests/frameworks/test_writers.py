"""Frameworks save into new/ as they save anywhere, and one rename publishes: what they wrote, byte for byte."""
import contextlib
import json
import os
import pathlib
import shutil
import sys
import tempfile

import pytest
import torch
import writers
from safetensors.numpy import load_file
from transformers import AutoModel, AutoTokenizer
from writers import small_bert

from weftlib import TOP, Mount, Store, environment, overlay_over, programs_for_everybody, run

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(name="mounted", scope="module")
def a_mount_that_publishes(area):
    with Mount(Store(area / "store-written"), area / "mnt-written", "publish") as mount:
        yield mount
        mount.store.assert_sound()


@pytest.fixture(name="served", scope="module")
def a_mount_whose_server_writes(area):
    """On overlayfs, the kernel passes no write of a draft through."""
    with overlay_over(area / "lower", area / "layers") as merged, \
            Mount(Store(merged / "store"), area / "mnt-served", "publish") as mount:
        yield mount
        mount.store.assert_sound()


@contextlib.contextmanager
def shown_to_everybody(source, where):
    """Ordinary users reach it here, whoever may enter the directories that it lies in."""
    where.mkdir()
    run(["mount", "--bind", source, where])
    try:
        yield where
    finally:
        run(["umount", where])


@pytest.fixture(name="outcomes", scope="module")
def what_an_ordinary_user_gets(as_nobody):
    """Of each writer, what went wrong where an ordinary user has mounted, and writes and publishes. One process runs all.

    The user cannot keep compiled modules. The tests above have compiled those that the writers import."""
    home = pathlib.Path(tempfile.mkdtemp(prefix="weft-test-", dir="/tmp"))
    home.chmod(0o777)
    weft = [programs_for_everybody(home) / "weft", "--store", home / "store"]
    where, native = home / "mnt", home / "native"
    with shown_to_everybody(TOP / "tests", home / "tests") as tests, shown_to_everybody(sys.prefix, home / "venv") as venv:
        run([*weft, "init"], **as_nobody)
        run(["mkdir", where, native], **as_nobody)
        run([home / "mount.weft", home / "store", where, "-o", "publish"], **as_nobody)
        try:
            done = run([venv / "bin/python", tests / "frameworks/writers.py", where, native, *writers.NAMES, "trainer"],
                       timeout=600, env=environment(PYTHONPATH=str(tests), HOME=str(home)), **as_nobody)
        finally:
            run(["umount", where])
        run([*weft, "fsck"], **as_nobody)
    shutil.rmtree(home)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", writers.NAMES)
def test_what_a_framework_saves_is_published(name, mounted, served, tmp_path):
    writers.publish_what_is_saved(name, [mounted, served], tmp_path / name)


def test_a_trainer_publishes_while_it_runs(mounted):
    writers.publish_while_it_trains(mounted)
    assert '"epoch"' in json.dumps(mounted.store.json("log", "org/tuned@5"))


@pytest.mark.parametrize("name", [*writers.NAMES, "trainer"])
def test_an_ordinary_user_publishes_it(name, outcomes):
    assert not outcomes[name], outcomes[name]


def test_a_training_publishes_each_checkpoint_and_loads_it_back(mounted):
    model = small_bert()
    for step in range(3):
        with torch.no_grad():
            model.pooler.dense.weight.add_(0.01)
        draft = mounted / "new/org/run"
        draft.parent.mkdir(exist_ok=True)
        model.save_pretrained(draft)
        os.rename(draft, mounted / f"new/org/run@step-{step}")
        loaded = AutoModel.from_pretrained(mounted / "models/org/run/latest").state_dict()
        assert all(torch.equal(value, loaded[key]) for key, value in model.state_dict().items())
    assert sorted(name for name in os.listdir(mounted / "models/org/run") if name.isdigit()) == ["1", "2", "3"]
    changed = mounted.store.json("diff", "org/run@2", "org/run@3")
    assert "pooler.dense.weight" in str(changed)


def test_a_tokenizer_is_saved_into_the_same_draft(mounted, gallery):
    draft = mounted / "new/both"
    AutoModel.from_pretrained(gallery.sources["org/minilm", 1]).save_pretrained(draft)
    AutoTokenizer.from_pretrained(gallery.sources["org/minilm", 1]).save_pretrained(draft)
    os.rename(draft, mounted / "new/both@prod")
    tensors = load_file(mounted / "models/both/prod/model.safetensors")
    assert set(tensors) <= set(load_file(gallery.sources["org/minilm", 1] / "model.safetensors"))
    assert AutoTokenizer.from_pretrained(mounted / "models/both/prod")("weights are files")["input_ids"]
