"""Part `shared` of the publish bench: what part `delivery` measures, against the same save to a shared file system and a
reader that polls it. Once with all links alike, and once in the proportion of Viper's paper, whose nodes reach each other
faster than their file system."""

import contextlib
import os
import shutil
import statistics
import time

from measure import median_text, settle
from net_gluster import Gluster, NotHere
from net_nodes import MIB, Cluster, wait_until
from net_nodes import run as call
from publish_delivery import Saved, one_case, read_files

GBIT = 1e9 / 8
CASES = [(1, 1.0), (1, 0.25), (16, 1.0), (16, 0.25)]  # tensors, and how much of them is changed
POLLS = [0, 1, 5]  # seconds
LINKS = [1, 4]  # between our nodes, Gbit/s; that of the shared file system is 1


class SharedFiles(Gluster):
    """A directory of a third host that both nodes mount: what a trainer and a server use today."""

    @contextlib.contextmanager
    def both(self, writer_host):
        other = self.directory / "writer"
        other.mkdir(exist_ok=True)
        call([*writer_host.inside, "glusterfs", "-f", self.directory / "client.vol", "-l", self.directory / "client2.log", other])
        try:
            wait_until(other.is_mount, seconds_max=20, pause=0.05)
            with self.mounted():
                yield other, self.mount
        finally:
            call(["umount", other])


def polled(writer, reader, saved, number, every, phase):
    """A save to a shared directory, and a reader that looks every so many seconds for it, first at this part of them after
    the save begins; seconds."""
    saved.step()
    settle()
    begin = time.monotonic()
    saved.write(writer / f"draft-{number}")
    os.rename(writer / f"draft-{number}", writer / f"version-{number}")
    made = time.monotonic()
    looked = begin + phase * every
    while looked < made:
        looked += max(every, 0.001)
    time.sleep(max(0.0, looked - time.monotonic()))
    read_files(reader / f"version-{number}", saved.names)
    return time.monotonic() - begin


def ours(build, directory, args):
    """Median seconds by (tensors, changed, Gbit/s of the link)."""
    medians = {}
    for tensors, changed in CASES:
        for gbit in LINKS:
            where = directory / f"ours-{tensors}-{gbit}"
            case = one_case(build, where, args, tensors, changed, 1, f"{gbit}gbit")
            medians[tensors, changed, gbit] = statistics.median(row.whole for row in case.rows)
            shutil.rmtree(where)
    return medians


def row_of(saved, tensors, changed, every, times, medians):
    took, words = statistics.median(times), []
    for gbit in LINKS:
        mine = medians[tensors, changed, gbit]
        least = saved.changed_bytes / GBIT / gbit
        limit = (2 * saved.count * saved.each / GBIT + every / 2) / least
        words += [f"{mine:.3f} s", f"{took / mine:.2f}", f"{limit:.1f}"]
    return (f"| {tensors} tensor{'s' if tensors > 1 else ''}, {changed:.0%} changed | {every} s "
            f"| {median_text(times, 's')[0]} | " + " | ".join(words) + " |")


def run(build, directory, args):
    medians = ours(build, directory, args)
    print(f"{args.megabytes} MB saved through glusterfs, with a brick on a host of its own and links of 1 Gbit/s, and a reader that "
          "polls it.\nThe ratio is its time ÷ weft's, over links of 1 Gbit/s and of 4. weft publishes through a mount with options "
          "publish,durability=memory,\nand reads through one with default options. The limit is for a weft that does nothing but "
          "move the changed bytes, and for a glusterfs\nthat moves all of them twice and is polled.\n")
    print("| saved | poll | glusterfs | " + " | ".join(f"weft, {gbit} Gbit/s | ratio | limit" for gbit in LINKS) + " |")
    print("|---" * (3 + 3 * len(LINKS)) + "|", flush=True)
    with Cluster(directory, peers=True) as cluster:
        writer, reader, brick = (cluster.network.host() for _ in range(3))
        for host in (writer, reader, brick):
            host.shape("1gbit", burst="2m")
        model = directory / "first"
        model.mkdir()
        (model / "model.safetensors").write_bytes(b"x")
        try:
            with SharedFiles(brick, reader, directory, model) as shared, shared.both(writer) as (there, here):
                through_shared(there, here, args, medians)
        except NotHere as reason:
            print(f"| glusterfs was not run: {reason}" + " |" * (3 + 3 * len(LINKS)))
    print(flush=True)


def through_shared(there, here, args, medians):
    number = 0
    for tensors, changed in CASES:
        saved = Saved(tensors, args.megabytes * MIB, changed)
        for every in POLLS:
            times, turns = [], args.pairs
            for turn in range(turns):
                number += 1
                times.append(polled(there, here, saved, number, every, (turn + 0.5) / turns))
                shutil.rmtree(there / f"version-{number}")
            print(row_of(saved, tensors, changed, every, times, medians), flush=True)
