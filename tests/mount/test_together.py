"""Importers, a remover, a collector, a checker and readers of a mount, each a process or thread of its own, at once."""
import random
import threading
import time

import pytest

from weftlib import Mount, files_below, random_tensors, rounds, write_model

SECONDS = rounds(3, 60)
MODELS = ("a/one", "a/two")


class Workers:
    """Threads that run a step until time is up; the first failure is kept and ends them all."""

    def __init__(self):
        self.end = time.monotonic() + SECONDS
        self.failures, self.steps, self.threads = [], {}, []

    def start(self, name, step):
        def loop():
            while time.monotonic() < self.end and not self.failures:
                try:
                    step()
                except Exception as failure:  # pylint: disable=broad-except
                    self.failures.append((name, failure))
                    return
                self.steps[name] = self.steps.get(name, 0) + 1

        self.threads.append(threading.Thread(target=loop))
        self.threads[-1].start()

    def join(self):
        for thread in self.threads:
            thread.join()
        assert not self.failures, self.failures
        return self.steps


@pytest.mark.long
def test_two_imports_rm_gc_fsck_and_readers(store, tmp_path):
    """Variants share most tensors, so that imports rely on packs that gc wants to empty."""
    pool = [random_tensors(8, 96 << 10, seed=f"pool {i}") for i in range(3)]
    variants = []
    for i in range(6):
        chosen = {name: pool[(i + at) % 3 if at < 2 else i % 3][name] for at, name in enumerate(pool[0])}
        variants.append(write_model(tmp_path / f"variant-{i}", chosen))
    contents = [files_below(variant) for variant in variants]
    for model in MODELS:
        store.publish(variants[0], name=model)

    with Mount(store, tmp_path / "mnt") as mount:
        workers = Workers()

        def importer(model):
            return lambda: store.publish(random.choice(variants), name=model)

        def remove():
            model = random.choice(MODELS)
            numbers = [entry["version"] for entry in store.json("ls", model)["versions"]]
            if len(numbers) > 2:
                store.weft("rm", "--force", f"{model}@{random.choice(numbers[:-1])}")

        def read():
            version = (mount / "models" / random.choice(MODELS) / "latest").resolve()
            try:
                with open(version / "model.safetensors", "rb") as file:
                    config = (version / "config.json").read_bytes()
                    got = {"config.json": config, "model.safetensors": file.read()}
            except FileNotFoundError:
                return  # removed since it was the latest
            assert got in contents, "a file that nobody published"

        for model in MODELS:
            workers.start(f"import {model}", importer(model))
        workers.start("rm", remove)
        workers.start("gc", lambda: store.weft("gc"))
        workers.start("fsck", store.assert_sound)
        for i in range(2):
            workers.start(f"read {i}", read)
        steps = workers.join()
        assert len(steps) == 7, steps

        store.weft("gc")
        store.assert_sound()
        for model in MODELS:
            for entry in store.json("ls", model)["versions"]:
                assert files_below(mount.version(model, entry["version"])) in contents
    assert not list((store.path / "tmp").iterdir())
