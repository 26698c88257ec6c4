"""`weft advise` of the versions of a store and of CSV files."""
import json
import math
import os
import re
import signal
import subprocess

import pytest

from weftlib import WEFT, Follower, Store, run

ASKED = ["--until", "3456", "--requests", "50000", "--rate", "100"]
TIMES = ["--t-train", "0.07", "--t-save", "1.375"]
ANSWER_SECONDS_MAX = 60


def loss_at(step):
    return 2.2 * math.exp(-step / 900) + 0.35


def csv_lines(steps):
    return "".join(f"{step},{loss_at(step)}\n" for step in steps)


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("step,loss\n" + csv_lines(range(1, 217)), encoding="utf-8")
    return path


def advise(*words, check=True, **options):
    return run([WEFT, "advise", *words], check=check, **options)


def follow(*words, **options):
    return Follower("advise", "--follow", *words, **options)


def publish(store, area, step, loss=None, model="m", **options):
    path = area / "weights.bin"
    path.write_bytes(os.urandom(64))
    metrics = [f"step={step}", f"loss={loss_at(step) if loss is None else loss}"]
    store.publish(path, name=model, metric=metrics + options.pop("more", []), **options)


def test_csv(csv):
    shown = advise("--csv", csv, *ASKED, *TIMES, "--epoch", "216").stdout
    assert re.search(r"^loss +exp3  0\.35 \+ 2\.198\*exp\(-0\.001111\*x\), x = step - 1$", shown, flags=re.M)
    assert [line.split()[0] for line in shown.splitlines()[3:]] == ["SCHEDULE", "epoch", "fixed", "greedy", "best", "save"]


def test_json(csv):
    told = json.loads(advise("--csv", csv, *ASKED, *TIMES, "--epoch", "216", "--json").stdout)
    assert (told["losses"], told["step"], told["last_save"], told["t_infer"]) == (216, 216, 216, 0.01)
    assert told["fit"]["curve"] == told["least_error"] == "exp3"
    assert told["fit"]["c"] == pytest.approx(0.35, rel=1e-3)
    epoch, fixed, greedy, best = told["schedules"]
    assert [each["schedule"] for each in (epoch, fixed, greedy, best)] == ["epoch", "fixed", "greedy", "best"]
    assert epoch["steps"] == list(range(432, 3457, 216))
    assert fixed["steps"] == list(range(216 + fixed["interval"], 3457, fixed["interval"]))
    assert best["loss"] <= min(each["loss"] for each in (epoch, fixed, greedy)) * 1.0001
    assert best["stall_seconds"] == pytest.approx(1.375 * len(best["steps"]))
    assert told["next"] == best["steps"][0]
    other = json.loads(advise("--csv", csv, *ASKED, *TIMES, "--schedule", "fixed", "--json").stdout)
    assert other["next"] == 216 + fixed["interval"]


def test_standard_input(csv):
    shown = advise("--csv", csv, *ASKED, *TIMES).stdout
    assert advise("--csv", "-", *ASKED, *TIMES, stdin=None, input=csv.read_text()).stdout == shown


def test_versions(tmp_path):
    """Removed ones count too; what lacks a metric does not."""
    store = Store(tmp_path / "store")
    for step in range(24, 217, 24):
        publish(store, tmp_path, step, more=["save_seconds=0.5"])
    (tmp_path / "other.bin").write_bytes(b"without metrics")
    store.publish(tmp_path / "other.bin", name="m")
    store.weft("rm", "m@1")
    told = store.json("advise", "m", *ASKED, "--t-train", "0.07")
    assert (told["losses"], told["step"], told["last_save"]) == (9, 216, 216)
    assert (told["t_train"], told["t_save"]) == (0.07, pytest.approx(0.5))
    assert told["fit"]["c"] == pytest.approx(0.35, rel=0.05)
    assert store.weft("advise", "nowhere", *ASKED, *TIMES, check=False).returncode == 1


def test_hostile_metrics(tmp_path):
    store = Store(tmp_path / "store")
    publish(store, tmp_path, 1, loss="nan")
    done = store.weft("advise", "m", *ASKED, *TIMES, check=False)
    assert (done.returncode, done.stderr) == (1, 'weft: m@1: metric loss: expected a number, got "nan"\n')


@pytest.mark.parametrize("words, message", [
    ([], "expected either MODEL or --csv FILE"),
    (["m", "--csv", "x"], "expected either MODEL or --csv FILE"),
    (["m"], "expected --until ITERATION"),
    (["m", "--until", "9"], "expected --requests N"),
    (["m", "--until", "0", "--requests", "1", "--rate", "1"], '--until: expected a whole number from 1 to '),
    (["m", "--until", "9", "--requests", "1"], "expected either --rate R or --t-infer SECONDS"),
    (["m", "--until", "9", "--requests", "1", "--rate", "0"], "--rate: expected a number from "),
    (["m", *ASKED, "--t-train", "nan"], "--t-train: expected a number from "),
    (["m", *ASKED, "--t-save", "-1"], "--t-save: expected a number from 0 to "),
    (["m", *ASKED, "--fit", "exp9"], "--fit: expected exp2, exp3, expd3, lin2 or pow3"),
    (["m", *ASKED, "--schedule", "epoch"], "--schedule: expected fixed, greedy or best"),
])
def test_usage(words, message):
    done = advise(*words, check=False)
    assert done.returncode == 2 and message in done.stderr


def test_missing_times_are_named(csv):
    done = advise("--csv", csv, *ASKED, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--t-train" in done.stderr and "--t-save" in done.stderr
    done = advise("--csv", csv, *ASKED, "--t-train", "1", check=False)
    assert done.returncode == 2 and "--t-train" not in done.stderr and "--t-save" in done.stderr


def test_no_advice(tmp_path):
    path = tmp_path / "run.csv"
    for text, message in [("step,loss\n" + csv_lines(range(7)), "expected at least 8 losses, got 7"),
                          ("step,loss\n" + "".join(f"{step},1\n" for step in range(90)), "does not fall"),
                          ("step,loss\n5,nan\n", 'line 2: loss: expected a number, got "nan"'),
                          ("a,b\n", 'line 1: no column "loss"; it has a, b'),
                          ("step,loss\n" + csv_lines(range(3440, 3470)), "is not before the last iteration, 3456")]:
        path.write_text(text, encoding="utf-8")
        done = advise("--csv", path, *ASKED, *TIMES, check=False)
        assert done.returncode == 1 and message in done.stderr and done.stdout == ""


def test_follow_a_file(csv):
    """The next advice comes once the whole line of the advised iteration is there. A file that became shorter is read
    anew."""
    with follow("--csv", csv, *ASKED, *TIMES) as follower:
        first = int(follower.line())
        assert 216 < first < 3456
        with open(csv, "a", encoding="utf-8") as file:
            file.write(csv_lines(range(217, first + 1))[:-1])
            file.flush()
            assert follower.says_nothing()
            file.write("\n")
        second = int(follower.line())
        assert second > first
        csv.write_text("step,loss\n" + csv_lines(range(1, 150)), encoding="utf-8")
        assert 149 < int(follower.line()) < second
        follower.process.send_signal(signal.SIGINT)
        out, err = follower.process.communicate(timeout=ANSWER_SECONDS_MAX)
        assert follower.process.returncode == 130, (out, err)
        assert err == "weft: interrupted, nothing was changed\n"


def test_follow_a_pipe():
    """Waits for enough losses, says why, and ends with the pipe."""
    with follow("--csv", "-", *ASKED, *TIMES, stdin=subprocess.PIPE) as follower:
        pipe = follower.process.stdin
        pipe.write("step,loss\n" + csv_lines(range(1, 7)))
        pipe.flush()
        assert follower.says_nothing()
        pipe.write(csv_lines(range(7, 217)))
        pipe.flush()
        assert follower.line() == "216\n"  # the first loss is taken for the last save, and that is long ago
        out, err = follower.process.communicate(timeout=ANSWER_SECONDS_MAX)
        assert follower.process.returncode == 0
        assert "no advice: expected at least 8 losses, got 6" in err


def test_follow_versions(tmp_path):
    store = Store(tmp_path / "store")
    for step in range(24, 217, 24):
        publish(store, tmp_path, step)
    with follow("--store", store.path, "m", *ASKED, *TIMES, "--json") as follower:
        first = json.loads(follower.line())
        assert (first["step"], first["last_save"]) == (216, 216) and first["next"] > 216
        publish(store, tmp_path, first["next"])
        second = json.loads(follower.line())
        assert (second["step"], second["last_save"]) == (first["next"], first["next"])
        assert second["next"] > first["next"]
        publish(store, tmp_path, 5000, model="other")
        assert follower.says_nothing()
        publish(store, tmp_path, 3456)
        assert follower.says_nothing()
        follower.process.send_signal(signal.SIGTERM)
        assert follower.process.wait(timeout=ANSWER_SECONDS_MAX) == 143
        assert "step 3456 is not before the last iteration, 3456" in follower.process.stderr.read()
