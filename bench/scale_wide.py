"""One version of a million tensors: what its import and its removal cost, and how long they stall those beside them."""

import json
import os
import struct

from scale_beside import Beside
from scale_store import MIB

TENSORS, TENSOR_BYTES = 1_000_000, 16
PEAK_MAX = 512 * MIB
STALL_SECONDS_MAX = 1


def write_wide_model(path):
    """As scale_store.write_model, of tensors that need not be in memory together."""
    with open(path, "wb") as file:
        file.write(bytes(8))
        for i in range(TENSORS):
            entry = {"dtype": "U8", "shape": [TENSOR_BYTES],
                     "data_offsets": [i * TENSOR_BYTES, (i + 1) * TENSOR_BYTES]}
            text = f'"layers.{i}.weight":{json.dumps(entry, separators=(",", ":"))}'
            file.write(("{" if i == 0 else ",").encode() + text.encode())
        file.write(b"}")
        length = file.tell() - 8
        file.write(os.urandom(TENSORS * TENSOR_BYTES))
        file.seek(0)
        file.write(struct.pack("<Q", length))
    return path


def run(store):
    """In a store of the few versions that it is filled with."""
    source = write_wide_model(store.directory / "wide.safetensors")
    beside = Beside(store)
    print(f"| one version of {TENSORS:,} tensors | time | processor | peak | written | writer's stall | reader's stall |\n"
          "|---|---|---|---|---|---|---|")
    peak, longest, failed = 0, 0.0, 0
    for name, words in (("import", ["import", source, "--name", "wide"]), ("rm", ["rm", "wide@1"]), ("gc", ["gc"])):
        cost, stalls = beside.stalls(lambda: store.cost(*words))
        writers = [stalls["tag"], stalls["import"]]
        stall = max(one.seconds for one in writers)
        longest, failed = max(longest, stall), failed + sum(one.failed for one in writers)
        peak = peak or cost.peak  # of the import
        print(f"| {name} † | {cost.seconds:.1f} s | {cost.processor_seconds:.1f} s | {cost.peak / MIB:.0f} MiB "
              f"| {cost.written / MIB:,.0f} MiB | {stall:.2f} s | {stalls['info'].seconds:.2f} s |", flush=True)
    print(f"\nThe import's peak is {peak / MIB:.0f} MiB; the goal is at most {PEAK_MAX // MIB} MiB: "
          f"{'yes' if peak <= PEAK_MAX else 'NO'}. Longest stall of a writer {longest:.2f} s, {failed} failed commits; the "
          f"goal is at most {STALL_SECONDS_MAX} s and none: "
          f"{'yes' if failed == 0 and longest <= STALL_SECONDS_MAX else 'NO'}.\n")
