"""scripts/bench daemon: what a weftd that has nothing to do takes, of the processor and of memory."""

import argparse
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

from daemonlib import Daemon  # noqa: E402
from measure import end_by_signals, machine, processor_seconds  # noqa: E402
from weftlib import Store, random_tensors, write_model  # noqa: E402

CORE_PART_MAX = 0.01
MEMORY_MAX = 64 << 20


def resident(pid):
    """VmRSS in bytes: pages of the mapped index count too."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench daemon", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--versions", type=int, default=20, help="published through it before")
    options = parser.parse_args()
    end_by_signals()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        print(machine(place) + "\n")
        store = Store(pathlib.Path(place) / "store")
        with Daemon(store) as daemon:
            for i in range(options.versions):
                store.publish(write_model(pathlib.Path(place) / "model", random_tensors(8, 64 << 10, seed=f"{i}")),
                              name="m")
            before = processor_seconds(daemon.pid)
            time.sleep(options.seconds)
            part = (processor_seconds(daemon.pid) - before) / options.seconds
            memory = resident(daemon.pid)
    met = {True: "yes", False: "NO"}
    print(f"| weftd, idle for {options.seconds} s | value | goal | met |\n|---|---|---|---|")
    print(f"| of one core | {100 * part:.2f} % | ≤ 1 % | {met[part <= CORE_PART_MAX]} |")
    print(f"| resident | {memory / 2**20:.1f} MiB | ≤ 64 MiB | {met[memory <= MEMORY_MAX]} |")


if __name__ == "__main__":
    main()
