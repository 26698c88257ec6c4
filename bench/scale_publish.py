"""Bytes that publishing writes: a fine-tune that changes 3 tensors of 100, against a model of 3 tensors."""

import os
import random
import statistics

from scale_store import write_model

TURNS = 21
TENSORS, CHANGED, TENSOR_BYTES = 100, 3, 64
RATIO_MAX = 1.5


def run(store):
    """In turn, in one store, each under a new name."""
    source = store.directory / "publish.safetensors"
    base = {f"layers.{i}.weight": os.urandom(TENSOR_BYTES) for i in range(TENSORS)}

    def written(name, tensors):
        return store.cost("import", write_model(source, tensors), "--name", name).written

    written("publish/base", base)
    tuned, alone = [], []
    for turn in range(TURNS):
        changed = {name: os.urandom(TENSOR_BYTES) for name in random.Random(turn).sample(sorted(base), CHANGED)}
        tuned.append(written(f"publish/tuned{turn}", base | changed))
        alone.append(written(f"publish/alone{turn}", {f"x{i}": os.urandom(TENSOR_BYTES) for i in range(CHANGED)}))
    ours, peer = statistics.median(tuned), statistics.median(alone)
    print(f"Publishing writes {ours / 1024:,.0f} KiB for a fine-tune that changes {CHANGED} tensors of {TENSORS}, and "
          f"{peer / 1024:,.0f} KiB for {CHANGED} tensors alone: {ours / peer:.2f} times as much; the goal is at most "
          f"{RATIO_MAX}: {'yes' if ours <= RATIO_MAX * peer else 'NO'}.\n")
