"""Links as a cluster may have them, drawn from a seed: speeds, losses, a fault of the holder, and how many nodes read."""
import contextlib
import dataclasses
import os
import random
import signal
import time

MIB, MBIT = 1 << 20, 1_000_000
COLD = ("auto", "stream", "fetch")
READERS_MAX = 16
RATE_MIN, RATE_MAX = MBIT, 10_000 * MBIT  # bits a second
PERMILLE_MAX = 30  # of packets that are lost
LINK_SECONDS_MAX = 25  # of a case, if the holder sends a copy to each reader
MOVED_BYTES_MAX = 512 * MIB  # to all readers of a case: neither disks nor processors are to be tested
# 1 MiB to 256 MiB, each about 1.4 times the one before. Tensors of a file have whole numbers of four bytes.
SIZES = [int(MIB * 2 ** (step / 2)) // 16 * 16 for step in range(17)]
FAULT_SECONDS = 3
FAULTS = ("none", "stopped", "cut", "down")


def log_uniform(chance, low, high):
    return low * (high / low) ** chance.random()


@dataclasses.dataclass
class Case:
    """Rates are in bits a second, one for each reader."""
    seed: int
    cold: str
    size: int
    holder: int
    readers: list
    lossy: str
    permille: int
    fault: str
    fault_after: float

    def __str__(self):
        rates = [f"{rate / MBIT:.1f}" for rate in (self.holder, min(self.readers), max(self.readers))]
        losses = f"{self.permille / 10:.1f} % lost by {self.lossy}, " if self.permille else ""
        fault = f"holder {self.fault} after {self.fault_after:.1f} s" if self.fault != "none" else "no fault"
        return (f"WEFT_LINKS_SEED={self.seed}: {self.size / MIB:.1f} MiB, cold={self.cold}, {len(self.readers)} reading "
                f"with {rates[1]} to {rates[2]} Mbit/s from {rates[0]} Mbit/s, {losses}{fault}")

    def link_seconds(self, copies=1):
        """That the slowest link needs, if the holder sends so many copies."""
        return 8 * self.size * max(copies / self.holder, 1 / min(self.readers))

    def fits(self, seconds):
        """Whether it takes no longer, even if the holder sends a copy to each reader."""
        count = len(self.readers)
        return self.link_seconds(count) <= seconds and self.size * count <= MOVED_BYTES_MAX

    def sends_one_copy(self):
        """A single reader, and no packet that has to be sent again."""
        return len(self.readers) == 1 and self.permille == 0


def draw_rates(chance):
    """Of the holder and of READERS_MAX readers: all alike, readers alike, or each its own."""
    def draw_rate():
        return round(log_uniform(chance, RATE_MIN, RATE_MAX))
    holder, kind = draw_rate(), chance.choice(("alike", "readers alike", "own"))
    if kind == "own":
        return holder, [draw_rate() for _ in range(READERS_MAX)]
    return holder, [holder if kind == "alike" else draw_rate()] * READERS_MAX


def draw(seed):
    """The case of this seed. Slow links are as frequent as fast ones: the number of readers, and the size, follow them."""
    chance = random.Random(seed)
    holder, readers = draw_rates(chance)
    lossy = chance.choice(("nobody", "nobody", "the holder", "the readers"))
    permille = 0 if lossy == "nobody" else chance.randint(1, PERMILLE_MAX)
    smallest = Case(seed, chance.choice(COLD), SIZES[0], holder, readers, lossy, permille, chance.choice(FAULTS), 0)
    most = 1 if chance.random() < 0.4 else chance.randint(2, READERS_MAX)
    counts = [dataclasses.replace(smallest, readers=readers[:count]) for count in range(most, 0, -1)]
    first = next(case for case in counts if case.fits(LINK_SECONDS_MAX))
    sizes = [case for size in SIZES if (case := dataclasses.replace(first, size=size)).fits(LINK_SECONDS_MAX)]
    case = max(chance.choices(sizes, k=2), key=lambda case: case.size)
    return dataclasses.replace(case, fault_after=chance.random() * case.link_seconds())


@contextlib.contextmanager
def shaped(host, rate):
    host.shape(f"{rate}bit")
    try:
        yield
    finally:
        host.unshape()


@contextlib.contextmanager
def losing(host, permille):
    try:
        host.lose(permille)
        yield
    finally:
        host.lose(0)


@contextlib.contextmanager
def linked(case, holder, readers):
    """The hosts of these nodes have the links of the case."""
    lossy = {"nobody": [], "the holder": [holder], "the readers": readers}[case.lossy]
    with contextlib.ExitStack() as stack:
        for node, rate in zip([holder, *readers], [case.holder, *case.readers], strict=True):
            stack.enter_context(shaped(node.host, rate))
        for node in lossy:
            stack.enter_context(losing(node.host, case.permille))
        yield


@contextlib.contextmanager
def stopped(node):
    os.kill(node.daemon.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(node.daemon.pid, signal.SIGCONT)


@contextlib.contextmanager
def unplugged(host, pull):
    pull()
    try:
        yield
    finally:
        host.mend()


def fault_of(name, node):
    """As a context: the fault is there."""
    return {"none": contextlib.nullcontext, "stopped": lambda: stopped(node),
            "cut": lambda: unplugged(node.host, node.host.cut),
            "down": lambda: unplugged(node.host, node.host.down)}[name]()


def meet_fault(case, holder):
    """The fault comes and goes."""
    if case.fault != "none":
        time.sleep(case.fault_after)
        with fault_of(case.fault, holder):
            time.sleep(FAULT_SECONDS)
