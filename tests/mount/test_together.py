"""Several programs on one store at once."""
import random
import threading

from weftlib import Mount, files_below, random_tensors, write_model

ROUNDS = 6


def run_all(*jobs):
    """Runs the jobs at once; what one of them raised is raised here."""
    failures = []

    def guarded(job):
        try:
            job()
        except BaseException as failure:  # pylint: disable=broad-except
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=[job]) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_imports_rm_gc_and_fsck_at_once(store, tmp_path):
    """Two importers share tensors while versions go and space is collected; what stays is whole."""
    shared = random_tensors(3, 256 << 10, seed="shared", prefix="shared")
    stay, lost = threading.Event(), []

    def import_series(name):
        for i in range(ROUNDS):
            directory = write_model(tmp_path / f"{name}{i}",
                                    shared | random_tensors(2, 256 << 10, seed=f"{name} {i}", prefix="own"))
            store.publish(directory, name=name)
            if i % 2:
                store.weft("rm", f"{name}@{i}")

    def repeat(*words):
        while not stay.is_set():
            store.weft(*words)

    def read_along():
        chooser = random.Random(1)
        with Mount(store, tmp_path / "mnt", options="views=hidden") as mount:
            while not stay.is_set():
                name, i = chooser.choice("ab"), chooser.randrange(ROUNDS)
                try:
                    got = (mount.version(name, i + 1) / "model.safetensors").read_bytes()
                except FileNotFoundError:
                    continue
                if got != (tmp_path / f"{name}{i}" / "model.safetensors").read_bytes():
                    lost.append((name, i + 1))

    def importers():
        try:
            run_all(lambda: import_series("a"), lambda: import_series("b"))
        finally:
            stay.set()

    run_all(importers, lambda: repeat("gc"), lambda: repeat("fsck"), lambda: repeat("ls"), read_along)
    assert lost == []
    store.weft("gc")
    store.assert_sound()
    with Mount(store, tmp_path / "mnt", options="views=hidden") as mount:
        for name in "ab":
            for i in range(0, ROUNDS, 2):
                assert not mount.version(name, i + 1).exists()
            for i in range(1, ROUNDS, 2):
                assert files_below(mount.version(name, i + 1)) == files_below(tmp_path / f"{name}{i}")


def test_publishers_of_one_model(store, tmp_path):
    """Each gets a number of its own, none is lost."""
    directories = [write_model(tmp_path / f"m{i}", random_tensors(1, 4096, seed=f"race {i}")) for i in range(6)]
    run_all(*(lambda d=directory: store.publish(d, name="m") for directory in directories))
    with Mount(store, tmp_path / "mnt") as mount:
        contents = {(mount.version("m", i + 1) / "model.safetensors").read_bytes() for i in range(6)}
    assert contents == {(directory / "model.safetensors").read_bytes() for directory in directories}
