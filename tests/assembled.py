"""Models whose files lie in several packs, and what a mount says of assembling them."""
import contextlib
import json

from weftlib import random_tensors, wait_until, write_model

TENSOR_BYTES = 1 << 20


def publish_family(store, directory, names, tensors=8, changed=2):
    """A base model, and one of each name that shares all but its first tensors; name -> its container's bytes."""
    base = random_tensors(tensors, TENSOR_BYTES, seed="base")
    store.publish(write_model(directory / "base", base), name="base")
    containers = {}
    for name in names:
        own = random_tensors(changed, TENSOR_BYTES, seed=name)
        store.publish(write_model(directory / name, base | own), name=name)
        containers[name] = (directory / name / "model.safetensors").read_bytes()
    return containers


def container_of(mount, name):
    return mount.version(name, 1) / "model.safetensors"


def assembly(mount):
    return json.loads((mount / ".weft/status").read_text())["assembly"]


def open_again(path):
    """A mount of a file system that shares no blocks assembles only a file that is opened again after it was read."""
    with open(path, "rb"):
        pass


def assembled(mount, name, expected):
    """Reads the container, opens it again, and returns when its assembled file is there."""
    before = assembly(mount)["made"]
    assert container_of(mount, name).read_bytes() == expected
    open_again(container_of(mount, name))
    wait_until(lambda: assembly(mount)["made"] > before and assembly(mount)["waiting"] == 0, pause=0.01)


def pack_of(store, name):
    return store.path / "cache" / f"{name}.pack"


def cached_parts(store):
    """Names of the .pack and .toc files in the cache."""
    return {path.name for path in (store.path / "cache").iterdir() if path.suffix in (".pack", ".toc")}


def unfinished(store):
    """What makers are at, or have left."""
    parts = store.path / "cache/tmp"
    return {path.name for path in parts.iterdir()} if parts.is_dir() else set()


def whole_files(store):
    """Names of assembled files of which both parts are there."""
    parts = cached_parts(store)
    return {name.removesuffix(".pack") for name in parts if name.endswith(".pack") and f"{name[:-5]}.toc" in parts}


def assert_right(store, containers):
    """Each whole assembled file is one of these, byte for byte; they may come and go meanwhile."""
    for name in whole_files(store):
        with contextlib.suppress(FileNotFoundError):
            assert pack_of(store, name).read_bytes() in containers.values()
