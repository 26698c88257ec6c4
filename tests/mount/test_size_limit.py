"""A limit on the size of files (ulimit -f) is an error of one line, not a signal that ends a program without a word."""
from daemonlib import Daemon
from weftlib import MOUNT_WEFT, WEFT, Mount, random_tensors, run, write_model


def limited(blocks, *words):
    """Runs a program that may write `blocks` of 1,024 bytes to a file."""
    return run(["bash", "-c", 'ulimit -f "$1"; shift; exec "$@"', "bash", str(blocks), *words], check=False)


def assert_told(done, code=1):
    assert done.returncode == code, done
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and "File too large" in lines[0], done.stderr


def test_import(store, tmp_path):
    model = write_model(tmp_path / "model", random_tensors(2, 8 << 20, seed="large"))
    assert_told(limited(1024, WEFT, "--store", store.path, "import", model, "--name", "m"))
    store.assert_sound()
    store.publish(model, name="m")


def test_export(store, tmp_path):
    model = write_model(tmp_path / "model", random_tensors(2, 8 << 20, seed="large"))
    store.publish(model, name="m")
    assert_told(limited(1024, WEFT, "--store", store.path, "export", "m", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_mount(store, tmp_path):
    where = tmp_path / "mnt"
    where.mkdir()
    done = limited(1, MOUNT_WEFT, store.path, where)
    Mount(store, where).unmount()
    assert_told(done, code=32)


def test_daemon(store, tmp_path):
    """It goes on after a write that failed."""
    model = write_model(tmp_path / "model", random_tensors(2, 8 << 20, seed="large"))
    with Daemon(store, wrapper=["bash", "-c", 'ulimit -f 4096; exec "$@"', "bash"]) as daemon:
        assert_told(store.weft("import", model, "--name", "m", check=False))
        (tmp_path / "small.txt").write_text("small")
        store.publish(tmp_path / "small.txt", name="small")
        assert daemon.process.poll() is None
    store.assert_sound()
