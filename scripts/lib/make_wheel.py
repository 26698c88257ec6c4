#!/usr/bin/env python3
"""Makes a wheel of the static program, for `pip install`: weft, and mount.weft, which calls it. There is no Python in it.

    make_wheel.py PROGRAM VERSION ARCHITECTURE DIRECTORY

Prints the path of the wheel. SOURCE_DATE_EPOCH is the time of its files.
"""
import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

TOP = pathlib.Path(__file__).parents[2]
# A static program runs with any C library: those of the oldest tags that pip still knows are enough.
PLATFORMS = ("manylinux2014", "manylinux_2_17", "musllinux_1_1")
MOUNT_WEFT = """#!/bin/sh
exec "$(dirname -- "$(readlink -f -- "$0")")/weft" mount.weft "$@"
"""
METADATA = """Metadata-Version: 2.1
Name: weft
Version: {version}
Summary: Weights of deep-learning models as a file tree
Platform: Linux
Description-Content-Type: text/plain

weft and mount.weft as one static program. Ordinary users mount by fusermount3, which is in the package fuse3 of Debian.
"""
WHEEL = """Wheel-Version: 1.0
Generator: weft ({version})
Root-Is-Purelib: false
"""


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"{name},sha256={digest},{len(data)}\n"


def contents(program, version, tags):
    """Path in the wheel -> bytes and mode, in the order of the archive: RECORD is the last."""
    scripts, info = f"weft-{version}.data/scripts", f"weft-{version}.dist-info"
    wheel = WHEEL.format(version=version) + "".join(f"Tag: py3-none-{tag}\n" for tag in tags)
    files = {
        f"{scripts}/mount.weft": (MOUNT_WEFT.encode(), 0o755),
        f"{scripts}/weft": (program.read_bytes(), 0o755),
        f"{info}/METADATA": (METADATA.format(version=version).encode(), 0o644),
        f"{info}/WHEEL": (wheel.encode(), 0o644),
        f"{info}/copyright": ((TOP / "cmake/debian/copyright").read_bytes(), 0o644),
    }
    record = "".join(record_line(name, data) for name, (data, _) in files.items()) + f"{info}/RECORD,,\n"
    return files | {f"{info}/RECORD": (record.encode(), 0o644)}


def make_wheel(program, version, architecture, directory):
    tags = [f"{platform}_{architecture}" for platform in PLATFORMS]
    path = directory / f"weft-{version}-py3-none-{'.'.join(tags)}.whl"
    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), 315532800))[:6]  # zip begins in 1980
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (data, mode) in contents(program, version, tags).items():
            entry = zipfile.ZipInfo(name, when)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return path


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    print(make_wheel(pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])))
