"""Part `touch`: what reading one tensor of a large model reads from the store's device (its own, a loop device)."""

import contextlib
import pathlib

from measure import drop_caches, median_text
from read_set import MIB

HEAD = "| what | tensor | read from the device: median (spread) | goal | met | times |\n|---|---|---|---|---|---|"
TENSORS = 64
WINDOW = 64 * MIB
SECTOR = 512


def bytes_read(device):
    return int(pathlib.Path("/sys/dev/block", device, "stat").read_text().split()[2]) * SECTOR


def bytes_of(device, way):
    drop_caches()
    before = bytes_read(device)
    way()
    return bytes_read(device) - before


def measured(bench, device, way):
    """Bytes that `way` reads from the device, time after time; the first, which reads the index too, does not count."""
    return [bytes_of(device, way) for _ in range(bench.pairs + 1)][1:]


def first_of_a_mount(bench, device, store, view):
    """Bytes that the first reader of each new mount makes it read: the index too, of which the caches hold nothing."""
    found = []
    for _ in range(bench.pairs):
        drop_caches()
        with contextlib.ExitStack() as undo:
            path = bench.mount_until(undo, store, "first") / view
            found.append(bytes_of(device, lambda: bench.read_seconds("read", path)))
    return found


def run(bench):
    disk, device = bench.loop_disk("disk", 2 * bench.size + (256 << 20))
    bench.same_read_ahead(device)
    store = bench.store(where=disk)
    bench.publish(store, bench.model("native", TENSORS, bench.size), "one")
    tensor = bench.size // TENSORS
    loader = bench.loader()
    near = 1.05 * tensor + MIB
    name = f"dense.{TENSORS * 2 // 3}.kernel"
    first = first_of_a_mount(bench, device, store, f"tensors/one/1/{name}.npy")
    mount = bench.mount(store)
    view = mount / f"tensors/one/1/{name}.npy"
    rows = [
        ("view, read", lambda: bench.read_seconds("read", view), near),
        ("view, mmap", lambda: bench.read_seconds("mmap", view), near),
        ("view, one page of an mmap", lambda: bench.read_seconds("touch", view), near),
        ("view, numpy.load", lambda: loader.seconds("npy", view), near),
        ("container, get_tensor", lambda: loader.seconds("get_tensor", mount / "models/one/1/native.safetensors", name),
         near + WINDOW),
    ]
    print(f"One tensor of {TENSORS}; the device's bytes\n\n" + HEAD)
    print(f"| view, read, the first of a mount | {tensor / MIB:.1f} MiB | {row(first, near)}", flush=True)
    for what, way, goal in rows:
        print(f"| {what} | {tensor / MIB:.1f} MiB | {row(measured(bench, device, way), goal)}", flush=True)


def row(found, goal):
    text, median = median_text([value / MIB for value in found], "MiB")
    return f"{text} | ≤ {goal / MIB:.1f} MiB | {'yes' if median * MIB <= goal else 'NO'} | {len(found)} |"
