"""git and sqlite with as many rows: a commit with a packed ref, and a row of a table, for each version."""

import os
import sqlite3
import subprocess
import time


def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def commits(count):
    """The stream of git fast-import: each version a commit of one file, with a branch of its own."""
    for number in range(1, count + 1):
        message = b"loss 0.%06d" % (number * 7919 % 1_000_000)
        yield b"commit refs/heads/m%07d\ncommitter w <w@w> %d +0000\n" % (number, 1_700_000_000 + number)
        yield b"data %d\n%s\nM 100644 inline t\ndata 64\n%s\n" % (len(message), message, os.urandom(64))


def git(directory, count):
    repository = directory / "git"
    subprocess.run(["git", "init", "-q", "--bare", repository], check=True)

    def call(*words, **options):
        subprocess.run(["git", "-C", repository, *words], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, **options)

    call("fast-import", "--quiet", input=b"".join(commits(count)))
    call("pack-refs", "--all")
    removed = b"".join(b"delete refs/heads/m%07d\n" % number for number in range(1, count + 1))
    return [seconds(lambda: call("for-each-ref")),
            seconds(lambda: call("log", "--all", "--oneline", "--grep", "loss 0.0000")),
            seconds(lambda: call("-c", "core.fsync=all", "update-ref", "refs/tags/t", "refs/heads/m0000001")),
            seconds(lambda: call("fsck")),
            seconds(lambda: call("update-ref", "--stdin", input=removed)),
            seconds(lambda: call("gc", "--quiet", "--prune=now"))]


def sqlite(directory, count):
    table = sqlite3.connect(directory / "table.sqlite", isolation_level=None)
    table.execute("PRAGMA synchronous = FULL")
    table.execute("CREATE TABLE versions "
                  "(model TEXT, number INTEGER, digest BLOB, loss REAL, PRIMARY KEY (model, number))")
    rows = ((f"m{number:07}", 1, os.urandom(32), number * 7919 % 1_000_000 / 1e6) for number in range(1, count + 1))
    table.execute("BEGIN")
    table.executemany("INSERT INTO versions VALUES (?, ?, ?, ?)", rows)
    table.execute("COMMIT")

    def call(sql):
        return seconds(lambda: table.execute(sql).fetchall())

    times = [call("SELECT * FROM versions"), call("SELECT * FROM versions WHERE loss < 0.0001"),
             call("INSERT INTO versions VALUES ('new', 1, x'00', 0)"), call("PRAGMA integrity_check"),
             call("DELETE FROM versions"), call("VACUUM")]
    table.close()
    return times


def run(directory, count):
    names = ["list all", "find by a number", "one durable change", "check", "remove all", "free the space"]
    print(f"\n| {count:,} rows | git | sqlite |\n|---|---|---|")
    for name, theirs, other in zip(names, git(directory, count), sqlite(directory, count)):
        print(f"| {name} | {theirs:.3f} s | {other:.3f} s |", flush=True)
