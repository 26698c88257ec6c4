"""The Python part of `scripts/demo sparse`: trains a small language model on the text of this repository, with AdamW and
masters of fp32, and writes a checkpoint in bf16 after each step.

    demo_training.py DIRECTORY STEPS RATE      a line for each checkpoint; goes on when a line comes in
"""
import json
import pathlib
import struct
import sys

import numpy

TOP = pathlib.Path(__file__).parents[2]
CONTEXT, EMBEDDING, BATCH = 16, 64, 128
WIDTHS = [CONTEXT * EMBEDDING, 4096, 2048, 256]
WARM_UP, WARM_RATE = 20, 1e-3  # so that the moments of AdamW are those of training


def text():
    files = sorted([*TOP.glob("src/**/*.cc"), *TOP.glob("src/**/*.h"), TOP / "README.md"])
    return numpy.frombuffer(b"".join(path.read_bytes() for path in files), dtype=numpy.uint8)


class Model:
    """Bytes before -> the next byte: an embedding and three layers."""

    def __init__(self, random):
        self.weights = {"embedding.weight": random.normal(0, 0.1, (256, EMBEDDING)).astype(numpy.float32)}
        for number, (width, out) in enumerate(zip(WIDTHS, WIDTHS[1:])):
            self.weights[f"layers.{number}.weight"] = random.normal(0, width**-0.5, (width, out)).astype(numpy.float32)
        self.moments = {name: (numpy.zeros_like(w), numpy.zeros_like(w)) for name, w in self.weights.items()}
        self.steps = 0

    def gradients(self, before, after):
        """Those of the cross entropy, and its mean."""
        layers = [self.weights[f"layers.{number}.weight"] for number in range(len(WIDTHS) - 1)]
        values = [self.weights["embedding.weight"][before].reshape(len(before), -1)]
        for number, layer in enumerate(layers):
            out = values[-1] @ layer
            values.append(numpy.maximum(out, 0) if number + 1 < len(layers) else out)
        odds = numpy.exp(values[-1] - values[-1].max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        loss = -numpy.log(odds[numpy.arange(len(after)), after] + 1e-9).mean()
        odds[numpy.arange(len(after)), after] -= 1
        back, found = odds / len(after), {}
        for number in reversed(range(len(layers))):
            found[f"layers.{number}.weight"] = values[number].T @ back
            back = back @ layers[number].T
            if number:
                back *= values[number] > 0
        found["embedding.weight"] = numpy.zeros_like(self.weights["embedding.weight"])
        numpy.add.at(found["embedding.weight"], before.reshape(-1), back.reshape(-1, EMBEDDING))
        return found, loss

    def step(self, gradients, rate):
        """AdamW: betas 0.9 and 0.999, decay 0.01."""
        self.steps += 1
        for name, gradient in gradients.items():
            first, second = self.moments[name]
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient * gradient - second)
            change = (first / (1 - 0.9**self.steps)) / (numpy.sqrt(second / (1 - 0.999**self.steps)) + 1e-8)
            self.weights[name] -= rate * (change + 0.01 * self.weights[name])

    def write(self, directory):
        """model.safetensors, in bf16."""
        header, data, at = {}, [], 0
        for name, weight in self.weights.items():
            bits = numpy.ascontiguousarray(weight).view(numpy.uint32)
            rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
            header[name] = {"dtype": "BF16", "shape": list(weight.shape), "data_offsets": [at, at + rounded.nbytes]}
            data.append(rounded.tobytes())
            at += rounded.nbytes
        head = json.dumps(header).encode()
        head += b" " * (-len(head) % 8)
        directory.mkdir(exist_ok=True)
        (directory / "model.safetensors").write_bytes(b"".join([struct.pack("<Q", len(head)), head, *data]))


def main():
    directory, steps, rate = pathlib.Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    random = numpy.random.default_rng(1)
    data, model = text(), Model(random)

    def train(by):
        starts = random.integers(0, len(data) - CONTEXT - 1, BATCH)
        before = data[starts[:, None] + numpy.arange(CONTEXT)]
        gradients, loss = model.gradients(before, data[starts + CONTEXT])
        model.step(gradients, by)
        return loss

    for _ in range(WARM_UP):
        loss = train(WARM_RATE)
    for number in range(steps):
        model.write(directory)
        print(f"step {number}: loss {loss:.3f}", flush=True)
        sys.stdin.readline()
        loss = train(rate)


if __name__ == "__main__":
    main()
