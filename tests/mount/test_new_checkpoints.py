"""Checkpoints that a training writes into new/ become versions by themselves, and stay where they are."""
import concurrent.futures
import contextlib
import json
import mmap
import os
import shutil
import signal
import time

import pytest

from daemonlib import Daemon
from weftlib import NOBODY, Mount, Store, files_below, process_of, random_bytes, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
FACTS = {"model": "org/m", "each": "checkpoint-*", "when": "trainer_state.json"}
MARK = ".weft.published"


@pytest.fixture
def mounted(tmp_path):
    with Mount(Store(tmp_path / "store"), tmp_path / "mnt", "publish") as mount:
        yield mount


@pytest.fixture
def training(mounted):
    return begin(mounted)


def begin(mount, **facts):
    training = mount / "new/run"
    training.mkdir()
    (training / ".weft.json").write_text(json.dumps(FACTS | facts))
    return training


def save(training, step, size=3_000_000):
    """As transformers' Trainer: the state comes last."""
    checkpoint = training / f"checkpoint-{step}"
    checkpoint.mkdir(exist_ok=True)
    (checkpoint / "optimizer.pt").write_bytes(random_bytes(size, f"optimizer {step}"))
    (checkpoint / "config.json").write_text("{}")
    (checkpoint / "parts").mkdir(exist_ok=True)
    (checkpoint / "parts/model.bin").write_bytes(random_bytes(size, f"model {step}"))
    state = {"log_history": [{"loss": 1 / step, "step": step}]}
    (checkpoint / "trainer_state.json").write_text(json.dumps(state))
    return checkpoint


def published(checkpoint):
    """The version that a checkpoint has become."""
    wait_until(lambda: os.path.exists(checkpoint / MARK))  # False as well while a server is replaced
    return (checkpoint / MARK).read_text().strip()


def complaint(directory):
    """What is wrong with it, once that is there."""
    lines = []

    def whole():
        if (directory / ".weft.error").exists():
            lines.append((directory / ".weft.error").read_text())
        return lines and lines[-1].endswith("\n")

    wait_until(whole)
    return lines[-1]


def content_of(checkpoint):
    files = files_below(checkpoint)
    return {name: content for name, content in files.items() if name != MARK}


def test_each_checkpoint_becomes_a_version_and_stays(mounted, training):
    for step in (1, 2, 3):
        checkpoint = save(training, step)
        before = content_of(checkpoint)
        assert published(checkpoint) == f"org/m@{step}"
        assert content_of(checkpoint) == before
        assert files_below(mounted / "models/org/m" / str(step)) == before
    log = json.dumps(mounted.store.json("log", "org/m@2"))
    assert '"loss"' in log and "0.5" in log
    shutil.rmtree(training / "checkpoint-1")
    assert (mounted / "models/org/m/1/optimizer.pt").stat().st_size == 3_000_000
    assert not list((mounted.store.path / "drafts/publishing").iterdir())
    mounted.store.assert_sound()


def test_the_other_facts_count_for_each(mounted):
    training = begin(mounted, tags=["newest"], message="of a run")
    for step in (1, 2):
        assert published(save(training, step)) == f"org/m@{step}"
        assert os.readlink(mounted / "models/org/m/newest") == str(step)
        assert "of a run" in json.dumps(mounted.store.json("log", f"org/m@{step}"))


def test_a_checkpoint_takes_no_space_of_its_own(mounted, training):
    checkpoint = save(training, 1)
    published(checkpoint)
    draft = (mounted.store.path / "drafts/tree/run/checkpoint-1/optimizer.pt").stat()
    assert draft.st_ino in {path.stat().st_ino for path in (mounted.store.path / "packs").iterdir()}


def test_what_is_written_again_is_a_file_of_its_own(mounted, training):
    """A training that resumes from an earlier checkpoint writes the later ones once more."""
    checkpoint = save(training, 1)
    assert published(checkpoint) == "org/m@1"
    before = files_below(mounted / "models/org/m/1")
    with open(checkpoint / "optimizer.pt", "r+b") as file:
        file.write(b"changed")
    assert (checkpoint / "optimizer.pt").read_bytes()[:7] == b"changed"
    os.truncate(checkpoint / "parts/model.bin", 5)
    os.chmod(checkpoint / "config.json", 0o600)
    (checkpoint / "parts/model.bin").write_bytes(b"anew")
    assert files_below(mounted / "models/org/m/1") == before
    assert published(checkpoint) == "org/m@1", "the state has not been written again"
    save(training, 1, 2_500_000)
    wait_until(lambda: (checkpoint / MARK).exists() and published(checkpoint) == "org/m@2")
    assert files_below(mounted / "models/org/m/1") == before
    assert files_below(mounted / "models/org/m/2") == content_of(checkpoint)
    mounted.store.assert_sound()


def test_a_checkpoint_waits_for_who_writes_to_it(mounted, training):
    checkpoint = training / "checkpoint-1"
    checkpoint.mkdir()
    with open(checkpoint / "late", "w+b") as file:
        file.write(b"begin")
        (checkpoint / "trainer_state.json").write_text("{}")
        os.fsync(file.fileno())
        file.truncate(4096)
        mapping = mmap.mmap(file.fileno(), 4096)
    mapping[4000] = 9
    assert not (checkpoint / MARK).exists()
    mapping.close()
    assert published(checkpoint) == "org/m@1"
    assert (mounted / "models/org/m/1/late").read_bytes()[4000] == 9


def test_a_reader_makes_nothing_busy(mounted, training):
    checkpoint = training / "checkpoint-1"
    checkpoint.mkdir()
    (checkpoint / "x").write_bytes(b"x" * 100_000)
    with open(checkpoint / "x", "rb") as reader:
        (checkpoint / "trainer_state.json").write_text("{}")
        assert published(checkpoint) == "org/m@1"
        assert reader.read() == b"x" * 100_000


def test_what_does_not_match_is_left_alone(mounted, training):
    (training / "other-1").mkdir()
    (training / "other-1/trainer_state.json").write_text("{}")
    (training / "checkpoint-file").write_bytes(b"x")
    assert published(save(training, 2)) == "org/m@1"
    assert os.listdir(training / "other-1") == ["trainer_state.json"]


def test_a_checkpoint_that_is_renamed_into_its_place(mounted, training):
    staged = training / "tmp-checkpoint-5"
    staged.mkdir()
    (staged / "trainer_state.json").write_text("{}")
    assert not (staged / MARK).exists()
    staged.rename(training / "checkpoint-5")
    assert published(training / "checkpoint-5") == "org/m@1"


def test_what_is_wrong_stands_in_the_checkpoint(mounted, training):
    checkpoint = training / "checkpoint-1"
    checkpoint.mkdir()
    (checkpoint / "m.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
    (checkpoint / "trainer_state.json").write_text("{}")
    assert "m.safetensors" in complaint(checkpoint)
    (checkpoint / "m.safetensors").unlink()
    (checkpoint / "trainer_state.json").write_text("{}")
    assert published(checkpoint) == "org/m@1"
    assert not (checkpoint / ".weft.error").exists()


MALFORMED = {"no JSON": ('{"model": ', ".weft.json: "), "another kind": (FACTS | {"each": 7}, '"each"'),
             "one is missing": ({"model": "org/m", "each": "checkpoint-*"}, '"when"'),
             "no model": ({"each": "checkpoint-*", "when": "trainer_state.json"}, '"model"'),
             "a path": (FACTS | {"when": "parts/model.bin"}, '"when": expected a name without a slash'),
             "too long": (json.dumps(FACTS) + " " * (1 << 20), ".weft.json: expected a file of at most 1048576 bytes")}


def test_facts_that_are_being_written_are_no_error(mounted):
    """A file that is closed beside them lets the mount look."""
    training = mounted / "new/run"
    training.mkdir()
    text = json.dumps(FACTS)
    with open(training / ".weft.json", "w") as file:
        file.write(text[:20])
        file.flush()
        for number in range(5):
            (training / f"log-{number}").write_text("x")
            time.sleep(.2)
            assert not (training / ".weft.error").exists()
        file.write(text[20:])
    assert published(save(training, 1)) == "org/m@1"
    assert not (training / ".weft.error").exists()


@pytest.mark.parametrize("what", MALFORMED)
def test_malformed_facts_stand_beside_them(what, mounted):
    """In the directory of the training. Nothing is published until they are mended, and nothing is lost."""
    facts, words = MALFORMED[what]
    training = begin(mounted)
    (training / ".weft.json").write_text(facts if isinstance(facts, str) else json.dumps(facts))
    checkpoint = save(training, 1)
    before = content_of(checkpoint)
    line = complaint(training)
    assert line.startswith(".weft.json: ") and words in line and line.count("\n") == 1, line
    assert content_of(checkpoint) == before and not (checkpoint / MARK).exists()
    assert mounted.store.state()[0] == []
    (training / ".weft.json").write_text(json.dumps(FACTS))
    assert published(checkpoint) == "org/m@1"
    assert not (training / ".weft.error").exists()


def test_a_name_that_no_model_can_have_stands_in_the_checkpoint(mounted):
    checkpoint = save(begin(mounted, model="a b"), 1)
    assert "a b" in complaint(checkpoint)


def test_a_new_server_goes_on(mounted, training):
    """A server is killed while it publishes: each checkpoint becomes one version."""
    for step in range(1, 6):
        checkpoint = save(training, step)
        server = json.loads((mounted / ".weft/status").read_text())["mount"]["pid"]
        os.kill(server, signal.SIGKILL)
        assert published(checkpoint) == f"org/m@{step}"
        assert content_of(checkpoint) == files_below(mounted / "models/org/m" / str(step))
    mounted.store.assert_sound()


def first_of(training):
    """The first checkpoint of a training that begins, published."""
    training.mkdir()
    (training / ".weft.json").write_text(json.dumps(FACTS))
    checkpoint = save(training, 1)
    wait_until((checkpoint / MARK).exists)
    return checkpoint


def test_a_users_training(mounted):
    """By the rights of the user whose checkpoint it is; nobody else's file says what becomes of it."""
    mounted.let_in()
    theirs = mounted / "new/theirs"

    def train(companion):
        checkpoint = first_of(theirs)
        (checkpoint / "optimizer.pt").write_bytes(b"again")
        (theirs / "seen").write_text((checkpoint / MARK).read_text())
        companion.is_ready()

    with Daemon(mounted.store, "--control-publish", NOBODY):
        with process_of(NOBODY, train):
            assert (theirs / "seen").read_text() == "org/m@1\n"
    assert (mounted / "models/org/m/1/optimizer.pt").stat().st_size == 3_000_000
    assert (theirs / "checkpoint-1/optimizer.pt").read_bytes() == b"again"
    assert {path.stat().st_uid for path in (mounted.store.path / "packs").iterdir()} == {0}


def owners_and_modes(store):
    return {path.name: (path.stat().st_uid, oct(path.stat().st_mode)) for path in (store.path / "packs").glob("*.pack")}


def test_a_link_to_a_pack_in_place_of_the_error_file_is_not_written_to(mounted, training):
    checkpoint = save(training, 1)
    assert published(checkpoint) == "org/m@1"
    before = content_of(mounted / "models/org/m/1")
    os.rename(checkpoint / "parts/model.bin", training / ".weft.error")
    (training / ".weft.json").write_text("no JSON")

    def is_replaced():
        with contextlib.suppress(FileNotFoundError):  # it goes before the next one comes
            return (training / ".weft.error").stat().st_size < 3_000_000
        return False

    wait_until(is_replaced)
    assert ".weft.json" in complaint(training)
    assert content_of(mounted / "models/org/m/1") == before
    mounted.store.assert_sound()


def test_a_user_reads_what_is_wrong_with_a_training(mounted):
    mounted.let_in()

    def train(companion):
        theirs = mounted / "new/theirs"
        theirs.mkdir()
        (theirs / ".weft.json").write_text("no JSON")
        save(theirs, 1)
        assert ".weft.json" in complaint(theirs)
        companion.is_ready()

    with Daemon(mounted.store, "--control-publish", NOBODY), process_of(NOBODY, train):
        pass


def test_a_failed_publish_gives_no_pack_to_the_user(mounted):
    mounted.let_in()
    theirs = mounted / "new/theirs"

    def train(companion):
        checkpoint = first_of(theirs)
        os.symlink("/nowhere", checkpoint / "dangling")
        (checkpoint / "trainer_state.json").write_text("{}")
        complaint(checkpoint)
        companion.is_ready()

    with Daemon(mounted.store, "--control-publish", NOBODY), process_of(NOBODY, train):
        packs = owners_and_modes(mounted.store)
        assert packs and all(uid == 0 for uid, _ in packs.values())
    mounted.store.assert_sound()


def test_a_directory_that_becomes_shared_leaves_packs_readable(mounted, training):
    published(save(training, 1))
    before = owners_and_modes(mounted.store)
    draft = training / "other"
    draft.mkdir()
    (draft / "x.bin").write_bytes(b"x")
    os.rename(training / "checkpoint-1/parts/model.bin", training / "moved.bin")
    os.rename(draft, training / "other@")
    assert (mounted / "models/run/other/1").is_dir()
    after = owners_and_modes(mounted.store)
    assert {name: after[name] for name in before} == before


def test_a_copy_has_no_name_before_it_is_whole(mounted, training):
    """A server that is killed meanwhile leaves nothing of it."""
    checkpoint = training / "checkpoint-1"
    checkpoint.mkdir()
    content = os.urandom(1 << 20) * 256
    (checkpoint / "model.bin").write_bytes(content)
    (checkpoint / "trainer_state.json").write_text("{}")
    assert published(checkpoint) == "org/m@1"
    sizes = {}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        opening = pool.submit(lambda: open(checkpoint / "model.bin", "r+b").close())
        while not opening.done():
            for name in os.listdir(checkpoint):
                with contextlib.suppress(FileNotFoundError):
                    sizes.setdefault(name, os.stat(checkpoint / name).st_size)
        opening.result()
    assert sizes.keys() >= {"model.bin", "trainer_state.json", MARK}
    assert {size for name, size in sizes.items() if name.startswith(".weft-")} <= {len(content)}
    assert (checkpoint / "model.bin").read_bytes() == content
