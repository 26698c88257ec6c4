"""What `weft advise` predicts of real training runs, compared with what their recorded times and losses give."""
import csv
import itertools
import json
import pathlib

import pytest

from weftlib import WEFT, run

RUNS = sorted((pathlib.Path(__file__).parent / "training_runs").glob("*.csv"))
WARM_UP = 500
REQUESTS = 50000
NEAR = 20


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def loss_of(rows, step):
    """Of the model after this step: the mean over the batches around it, since one batch tells it only within 4 %."""
    near = rows[max(step - 1 - NEAR, 0):step + NEAR]
    return sum(float(row["loss"]) for row in near) / len(near)


def resulting_loss(rows, last_save, steps, request_s):
    """What the requests would have met: each iteration took its recorded time, each save that of a recorded save in turn,
    and each model had its recorded loss."""
    times = [float(row["time"]) for row in rows]
    saves = [float(row["save_seconds"] or 0) for row in rows]
    save_s = itertools.cycle([seconds for seconds in saves if seconds > 0])
    clock, answered, total, live = 0.0, 0, 0.0, loss_of(rows, last_save)
    for step in range(last_save + 1, len(rows) + 1):
        clock += times[step - 1] - times[step - 2] - saves[step - 2]
        if step in steps:
            clock += next(save_s)
            by_then = min(int(clock / request_s), REQUESTS)
            total += (by_then - answered) * live
            answered, live = by_then, loss_of(rows, step)
    return total + (REQUESTS - answered) * live


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
@pytest.mark.parametrize("share", [0.7, 1.0])
def test_predicted_loss(path, share, tmp_path):
    """The requests end before the training, or with it, as it would go without saves. The advice does not know the losses
    and times after the warm-up."""
    rows = rows_of(path)
    assert len(rows) == 2000
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "warm_up.csv").write_text("".join(lines[:WARM_UP + 1]), encoding="utf-8")
    request_s = share * (float(rows[-1]["time"]) - float(rows[WARM_UP - 1]["time"])) / REQUESTS
    told = json.loads(run([WEFT, "advise", "--csv", tmp_path / "warm_up.csv", "--until", len(rows), "--requests", REQUESTS,
                           "--t-infer", request_s, "--epoch", 100, "--json"]).stdout)
    assert told["last_save"] == WARM_UP
    for schedule in told["schedules"]:
        result = resulting_loss(rows, WARM_UP, set(schedule["steps"]), request_s)
        assert schedule["loss"] == pytest.approx(result, rel=0.03), schedule["schedule"]
