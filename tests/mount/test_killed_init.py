"""A first init or import that is killed at any of its system calls leaves a directory that the next one takes over."""
import shutil
import signal

import pytest

from weftlib import WEFT, Store, files_below, run

CALLS = ["mkdir", "openat", "fcntl", "ftruncate", "fallocate", "pwrite64", "write", "fsync", "fdatasync", "rename"]


def kill_at(call, number, words):
    """The exit status of a weft that is killed as it begins its so manyth call of this name; 0 if it makes fewer."""
    inject = f"inject={call}:signal=KILL:when={number}"
    return run(["strace", "-f", "-o", "/dev/null", "-e", inject, *words], check=False).returncode


def kills(path, words):
    """Kills the command once at each of its calls until the store is made, each time in a directory that is empty."""
    for call in CALLS:
        for number in range(1, 500):
            path.mkdir()
            code = kill_at(call, number, words)
            assert code in (0, -signal.SIGKILL), code
            made = (path / "weft-store").exists()
            yield f"{call} {number}"
            shutil.rmtree(path)
            if made:
                break


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize("command", ["init", "import"])
def test_what_it_leaves_is_taken_over(tmp_path, command):
    path, model = tmp_path / "store", tmp_path / "model"
    model.mkdir()
    (model / "a.bin").write_bytes(b"content")
    publish = [WEFT, "--store", path, "import", model, "--name", "m"]
    first = publish if command == "import" else [WEFT, "--store", path, "init"]
    store = object.__new__(Store)
    store.path = path
    left = 0
    for at in kills(path, first):
        left += not (path / "weft-store").exists() and any(path.iterdir())
        again = run(publish, check=False)
        assert again.returncode == 0, f"{at}: {again.stderr}"
        store.assert_sound()
    assert left > 20


@pytest.mark.parametrize("file", ["cache/mine", "index/mine", "journal/mine", "tmp/mine", "packs/mine", "manifests/mine"])
def test_a_directory_of_another_kind_is_left_alone(tmp_path, file):
    """Names that a store's directories have too do not make it one that was left."""
    path = tmp_path / "store"
    (path / file).parent.mkdir(parents=True)
    (path / file).write_bytes(b"mine")
    before = files_below(path)
    for words in (["init"], ["import", path, "--name", "m"]):
        refused = run([WEFT, "--store", path, *words], check=False)
        assert refused.returncode == 1
    assert files_below(path) == before
