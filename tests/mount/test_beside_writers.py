"""Long commands beside processes that import and tag all the while: nobody fails, whatever the other does."""
import subprocess
import threading

import pytest

from weftlib import WEFT, Mount, environment, random_tensors, write_model

MANY_TAGS = 4200  # more than one snapshot reads
VERSIONS = 12


class Writers:
    """Two processes after another that import, and as many that tag, until the block ends. A failure is raised then."""

    def __init__(self, store, sources):
        self.store, self.sources = store, sources
        self.done = threading.Event()
        self.failures, self.steps = [], {"import": 0, "tag": 0}

    def run(self, kind, words_of):
        while not self.done.is_set() and not self.failures:
            words = words_of(self.steps[kind])
            ran = subprocess.run([WEFT, "--store", self.store.path, *words], env=environment(), capture_output=True,
                                 text=True, check=False)
            if ran.returncode != 0:
                self.failures.append((words, ran.stderr))
            self.steps[kind] += 1

    def __enter__(self):
        def import_words(step):
            return ["import", self.sources[step % len(self.sources)], "--name", f"live/m{step % 3}"]

        def tag_words(step):
            return ["tag", "kept@1", f"now{step % 5}"]

        self.threads = [threading.Thread(target=self.run, args=("import", import_words)),
                        threading.Thread(target=self.run, args=("tag", tag_words))]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        for thread in self.threads:
            thread.join()
        assert not self.failures, self.failures
        assert all(self.steps.values()), self.steps


@pytest.fixture(name="filled")
def filled_store(store, tmp_path):
    """A model with more tags than a snapshot reads, one with some versions to remove, and sources for more."""
    base = random_tensors(6, 64 << 10, seed="base")
    sources = [write_model(tmp_path / f"source-{i}", base | random_tensors(1, 64 << 10, seed=f"changed {i}"))
               for i in range(4)]
    tags = [word for i in range(MANY_TAGS) for word in ("--tag", f"t{i}")]
    store.weft("import", sources[0], "--name", "kept", *tags)
    for i in range(VERSIONS):
        store.publish(sources[i % len(sources)], name="old")
    return store, sources


COMMANDS = {
    "ls": [["ls"], ["ls", "old"], ["ls", "kept"], ["ls", "kept", "--names"]],
    "tag": [["tag", "kept"]],
    "log": [["log", "old"]],
    "du": [["du"], ["du", "old"]],
    "find": [["find", "model = old"], ["find", "tensors > 1"]],
    "status": [["status"]],
    "fsck": [["fsck"], ["scrub"]],
    "gc": [["gc"], ["rm", "old@1"], ["gc"], ["gc", "--all"]],
    "rm": [["rm", "--all", "old"], ["gc"]],
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_command_beside_imports_and_tags(filled, kind):
    store, sources = filled
    with Writers(store, sources):
        for words in COMMANDS[kind]:
            store.weft(*words)
    store.assert_sound()


def test_a_walk_of_a_mount_beside_imports_and_tags(filled, tmp_path):
    store, sources = filled
    with Mount(store, tmp_path / "mnt") as mount, Writers(store, sources):
        for tree in ("models", "lineage", "hub"):
            subprocess.run(["find", mount / tree, "-maxdepth", "4"], check=True, capture_output=True)
        names = {entry.name for entry in (mount / "models/kept").iterdir()}
        assert {f"t{i}" for i in range(MANY_TAGS)} <= names
    store.assert_sound()
