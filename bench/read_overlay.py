"""Part `overlay`: as `warm`, with the store and the native file on overlayfs, as in a container."""

import shutil

import measure
import read_warm
from measure import PAIR_HEAD
from read_set import unmount


def run(bench):
    layers = [bench.dir / name for name in ("lower", "upper", "work", "merged")]
    for directory in layers:
        directory.mkdir()
    lower, upper, work, merged = layers
    measure.run("mount", "-t", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", "overlay", merged)
    bench.undo.callback(unmount, merged)
    source = bench.model("native", 300, bench.size)
    native = merged / source.name
    shutil.copyfile(source, native)
    store = bench.store(where=merged)
    bench.publish(store, native, "one")
    ours = bench.mount(store) / "models/one/1" / native.name
    print("Warm, on overlayfs; peer: the same file there\n\n" + PAIR_HEAD)
    read_warm.rows(bench, native, ours, store)
