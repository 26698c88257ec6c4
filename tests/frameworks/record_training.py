"""Trains a small model and records each step: loss, time, and how long the saves took that were made on the way.

    python record_training.py FILE SEED     writes the CSV that `weft advise --csv` reads

training_runs has such records of the seeds 1, 2 and 3. test_training_runs.py replays them, so that its results do not depend on
the machine.
"""
import os
import pathlib
import sys
import tempfile
import time

import torch

STEPS = 2000
SAVE_EVERY = 25


def data():
    """Inputs and their classes, of which three in ten are wrong: the loss ends above zero, as it does for real data."""
    inputs = torch.randn(16384, 32)
    teacher = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 10))
    with torch.no_grad():
        classes = (4 * teacher(inputs)).argmax(dim=1)
    wrong = torch.rand(len(inputs)) < 0.3
    classes[wrong] = torch.randint(10, (int(wrong.sum()),))
    return inputs, classes


def main(path, seed):
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    inputs, classes = data()
    model = torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    rows, begin = ["step,loss,time,save_seconds"], time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        for step in range(1, STEPS + 1):
            chosen = torch.randint(len(inputs), (256,))
            loss = torch.nn.functional.cross_entropy(model(inputs[chosen]), classes[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ended, saved = time.perf_counter(), ""
            if step % SAVE_EVERY == 0:
                with open(pathlib.Path(directory) / "model.pt", "wb") as file:
                    torch.save(model.state_dict(), file)
                    os.fsync(file.fileno())
                saved = f"{time.perf_counter() - ended:.5f}"
            rows.append(f"{step},{loss.item():.4f},{ended - begin:.5f},{saved}")
    pathlib.Path(path).write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
