"""The Python part of `scripts/demo publish`: a training that saves and publishes, and a server that follows it.

    demo_serving.py train MOUNT MODEL SAVES SECONDS
    demo_serving.py serve MOUNT MODEL SAVES
"""
import json
import os
import pathlib
import struct
import sys
import time

import numpy

from demo_training import BATCH, CONTEXT, Model, WARM_RATE, text

FILE = "model.safetensors"


def batch(random, data):
    starts = random.integers(0, len(data) - CONTEXT - 1, BATCH)
    return data[starts[:, None] + numpy.arange(CONTEXT)], data[starts + CONTEXT]


def train(mount, name, saves, seconds):
    random = numpy.random.default_rng(1)
    data, model = text(), Model(random)
    for _ in range(saves):
        end = time.time() + seconds
        while time.time() < end:
            gradients, _ = model.gradients(*batch(random, data))
            model.step(gradients, WARM_RATE)
        draft = mount / "new" / name
        draft.parent.mkdir(exist_ok=True)
        model.write(draft)
        (draft / "saved.json").write_text(json.dumps({"time": end, "step": model.steps}))
        os.rename(draft, f"{draft}@")


def versions(mount, name):
    """The directory of each version, as weft(7) shows it."""
    last = None
    with open(mount / ".weft/events", encoding="utf-8") as events:
        while True:
            path = os.path.realpath(mount / "models" / name / "latest")
            if path != last and os.path.exists(path):
                last = path
                yield pathlib.Path(path)
            while json.loads(next(events)).get("model", name) != name:
                pass


def load(directory, model):
    """Takes the weights of a checkpoint."""
    with open(directory / FILE, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header, body = json.loads(file.read(size)), file.read()
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        bits = numpy.frombuffer(body[begin:end], dtype=numpy.uint16).astype(numpy.uint32) << 16
        model.weights[name] = bits.view(numpy.float32).reshape(tensor["shape"])


def serve(mount, name, saves):
    random = numpy.random.default_rng(2)
    data, model, before = text(), Model(random), None
    questions = batch(random, data)
    print(f"\n{'version':<9}{'step':>6}{'loss':>8}{'age when it was swapped in':>28}{'age of the one before':>24}", flush=True)
    for path in versions(mount, name):
        saved = json.loads((path / "saved.json").read_text())
        load(path, model)
        now = time.time()
        _, loss = model.gradients(*questions)
        old = f"{now - before:.2f} s" if before else ""
        print(f"{path.name:<9}{saved['step']:>6}{loss:>8.3f}{now - saved['time']:>26.2f} s{old:>24}", flush=True)
        before = saved["time"]
        if int(path.name) == saves:
            return


def main():
    what, mount, name, saves = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3], int(sys.argv[4])
    train(mount, name, saves, float(sys.argv[5])) if what == "train" else serve(mount, name, saves)


if __name__ == "__main__":
    main()
