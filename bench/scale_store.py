"""What the parts of scripts/bench scale share: the store of one shape, and what a command on it costs."""

import dataclasses
import json
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import threading
import time

MIB = 1 << 20
REPEAT_BELOW_SECONDS = 2  # a longer command runs once


def write_model(path, tensors):
    """A safetensors file of tensors of bytes, {name: bytes}."""
    header, end = {}, 0
    for name, data in tensors.items():
        header[name] = {"dtype": "U8", "shape": [len(data)], "data_offsets": [end, end + len(data)]}
        end += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensors.values()))
    return path


@dataclasses.dataclass
class Cost:
    seconds: float
    processor_seconds: float
    peak: int  # bytes of anonymous memory, sampled each millisecond; 0 if the command was shorter
    # Bytes that it gave to write calls. The pages that it made dirty are no measure: a large folio counts as a whole.
    written: int

    @classmethod
    def median(cls, costs):
        return cls(*(statistics.median(values) for values in zip(*map(dataclasses.astuple, costs))))


def anonymous_bytes(pid):
    """0 once the process has ended."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


class PeakSampler:
    """Samples a process's anonymous memory while it is entered."""

    def __init__(self, pid):
        self.peak, self.pid, self.ended = 0, pid, threading.Event()
        self.thread = threading.Thread(target=self.sample)

    def sample(self):
        while not self.ended.wait(0.001):
            self.peak = max(self.peak, anonymous_bytes(self.pid))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def cost_of(*command):
    """Runs a command that must succeed."""
    begin = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
    try:
        with PeakSampler(process.pid) as sampler:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            took = time.perf_counter() - begin
    except BaseException:
        process.kill()
        process.wait()
        raise
    io = dict(line.split(": ") for line in pathlib.Path(f"/proc/{process.pid}/io").read_text().splitlines())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(took, usage.ru_utime + usage.ru_stime, sampler.peak, int(io["wchar"]))


class ScaleStore:
    """COUNT versions of one SHAPE, in a store below `directory`. It is filled below `memory`, a tmpfs, where no publish
    waits for the disk, and then copied."""

    SHAPES = ("models", "chain", "fan")

    def __init__(self, build, directory, memory, shape, count):
        self.weft = build / "src/cli/weft"
        self.filler = build / "bench/weft_bench_scale_fill"
        self.directory, self.path, self.filled = directory, directory / "store", memory / "store"
        self.shape, self.count = shape, count
        middle = count // 2 + 1
        self.model = {"models": f"m{middle:07}", "chain": "chain", "fan": f"ft/t{middle:07}"}[shape]
        self.version = f"chain@{middle}" if shape == "chain" else f"{self.model}@1"
        self.largest_directory = {"models": "models", "chain": "models/chain", "fan": "models/ft"}[shape]

    def fill(self, shape):
        """Publishes COUNT versions. The store has what was filled, and no later change. Returns the seconds."""
        begin = time.perf_counter()
        subprocess.run([self.filler, shape, self.filled, str(self.count)], check=True)
        shutil.rmtree(self.path, ignore_errors=True)
        subprocess.run(["cp", "-a", self.filled, self.path], check=True)
        os.sync()  # no later command waits for these bytes
        return time.perf_counter() - begin

    def command(self, *words):
        return [self.weft, "--store", self.path, "--quiet", *words]

    def cost(self, *words):
        return cost_of(*self.command(*words))

    def repeat_for(self, least_seconds, *words):
        """Again and again for so many seconds, at least once."""
        end = time.perf_counter() + least_seconds
        self.cost(*words)
        while time.perf_counter() < end:
            self.cost(*words)

    def median_cost(self, *words, times=5):
        """Words may contain {}, the number of the turn."""
        costs = []
        for turn in range(times):
            costs.append(self.cost(*(str(word).replace("{}", str(turn)) for word in words)))
            if costs[-1].seconds > REPEAT_BELOW_SECONDS:
                break
        return Cost.median(costs)
