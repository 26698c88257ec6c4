"""Data sets on a mount: the files as they were published, and the records of tar and LMDB files."""
import io
import os
import tarfile

import numpy as np
import pytest

import lmdblib
from weftlib import Mount, Store, files_below, random_bytes, run

SMALL = 3000
LMDB_RECORDS = 200
LMDB_BYTES = 20_000


def member_name(number):
    return f"class{number % 7}/{number:05}.jpg"


def write_tar(path):
    """1,000 members in directories, a long name, a link, and a device, which cannot be shown."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for number in range(1000):
            info = tarfile.TarInfo(member_name(number))
            info.size = 50 + number % 900
            tar.addfile(info, io.BytesIO(random_bytes(info.size, number)))
        long = tarfile.TarInfo("deep/" + "n" * 200)
        long.size = 4
        tar.addfile(long, io.BytesIO(b"long"))
        link = tarfile.TarInfo("linked.jpg")
        link.type, link.linkname = tarfile.LNKTYPE, member_name(3)
        tar.addfile(link)
        device = tarfile.TarInfo("dev/null")
        device.type, device.devmajor, device.devminor = tarfile.CHRTYPE, 1, 3
        tar.addfile(device)


def write_source(root):
    for number in range(SMALL):
        path = root / f"images/{number % 10}/{number:05}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random_bytes(number % 400, number))
    (root / "images/3/large.bin").write_bytes(random_bytes(5 << 20, "large"))
    (root / "empty").write_bytes(b"")
    write_tar(root / "shards/train.tar")
    lmdblib.write(root / "lm", LMDB_RECORDS, LMDB_BYTES)
    (root / "broken.tar").write_bytes((root / "shards/train.tar").read_bytes()[:2000])


@pytest.fixture(name="published", scope="module")
def fixture_published(tmp_path_factory):
    area = tmp_path_factory.mktemp("datasets")
    write_source(area / "source")
    store = Store(area / "store")
    store.weft("import", "--dataset", area / "source", "--name", "org/set", "--tag", "prod")
    return store, area / "source"


@pytest.fixture(name="mount", scope="module")
def fixture_mount(published, tmp_path_factory):
    with Mount(published[0], tmp_path_factory.mktemp("mnt")) as mount:
        yield mount


def test_the_files_are_what_was_published(mount, published):
    shown = mount.version("org/set", 1, "datasets")
    assert files_below(shown) == files_below(published[1])
    run(["diff", "-r", shown, published[1]])
    assert os.listdir(shown / "images/3") == sorted(os.listdir(published[1] / "images/3"))
    assert sorted(os.listdir(mount / "datasets/org/set")) == ["1", "latest", "prod"]
    assert not (mount / "models/org").exists()
    assert (mount / "lineage/org/set/1").is_dir()


def test_attributes_of_small_files(mount, published):
    shown = mount.version("org/set", 1, "datasets")
    for number in (0, 1, 399):
        name = f"images/{number % 10}/{number:05}.txt"
        status = (shown / name).lstat()
        assert status.st_size == (published[1] / name).stat().st_size == number % 400
        assert (status.st_nlink, status.st_blocks) == (1, 1 if number else 0)
        assert status.st_mtime_ns == shown.lstat().st_mtime_ns


def test_a_tar_has_its_members_as_files_and_rows(mount, published):
    records = mount.version("org/set", 1, "records") / "shards/train.tar"
    assert sorted(os.listdir(records)) == ["files", "index.npy", "keys.txt", "order", "part", "skipped.txt"]
    index = np.load(records / "index.npy", mmap_mode="r")
    keys = (records / "keys.txt").read_text().splitlines()
    content = (mount.version("org/set", 1, "datasets") / "shards/train.tar").read_bytes()
    with tarfile.open(published[1] / "shards/train.tar") as tar:
        members = [member for member in tar if member.isreg()]
        assert len(index) == len(keys) == len([member for member in members if not member.islnk()])
        for row, key in zip(index, keys):
            expected = tar.extractfile(key).read()
            assert content[row["offset"]:row["offset"] + row["length"]] == expected
            assert (records / "files" / key).read_bytes() == expected
        assert (records / "files/linked.jpg").read_bytes() == tar.extractfile(member_name(3)).read()
    assert sum(1 for path in (records / "files").rglob("*") if path.is_file()) == len(keys) + 1
    assert (records / "skipped.txt").read_text().startswith("dev/null\t")


def test_an_lmdb_has_rows_and_no_files(mount, published):
    directory = mount.version("org/set", 1, "records") / "lm"
    assert os.listdir(directory) == ["data.mdb"]
    records = directory / "data.mdb"
    assert sorted(os.listdir(records)) == ["index.npy", "keys.txt", "order", "part"]
    index, keys = np.load(records / "index.npy"), (records / "keys.txt").read_text().splitlines()
    content = (published[1] / "lm/data.mdb").read_bytes()
    assert sorted(keys) == [lmdblib.key_of(number).decode() for number in range(LMDB_RECORDS)]
    for row, key in zip(index, keys):
        expected = lmdblib.value_of(int(key), LMDB_BYTES)
        assert content[row["offset"]:row["offset"] + row["length"]] == expected
    lmdblib.read(mount.version("org/set", 1, "datasets") / "lm", 1, range(LMDB_RECORDS), LMDB_BYTES)


def test_small_files_are_rows_of_their_own(mount, published):
    records = mount.version("org/set", 1, "records") / "@files"
    assert sorted(os.listdir(records)) == ["keys.txt", "order", "part"]
    keys = (records / "keys.txt").read_text().splitlines()
    assert len(keys) == SMALL + 1  # and the empty file
    assert all((published[1] / key).is_file() for key in keys)
    rows = np.concatenate([np.load(records / f"order/5/4/{rank}.npy") for rank in range(4)])
    assert sorted(rows) == list(range(len(keys)))


@pytest.mark.parametrize("container", ["shards/train.tar", "lm/data.mdb", "@files"])
def test_shares_are_all_rows_once(mount, container):
    records = mount.version("org/set", 1, "records") / container
    count = len((records / "keys.txt").read_text().splitlines())
    for directory in ("part", "order/7"):
        rows = [np.load(records / directory / f"3/{rank}.npy") for rank in range(3)]
        assert all(share.dtype == np.dtype("<u8") for share in rows)
        assert sorted(np.concatenate(rows)) == list(range(count))
    assert (np.load(records / "order/1/1/0.npy") != np.load(records / "order/2/1/0.npy")).any()
    assert os.listdir(records / "part") == os.listdir(records / "order") == os.listdir(records / "part/3") == []
    for name in ("part/0", "part/4097", "part/03", "part/3/3.npy", "part/3/0", "order/65536", "order/-1", "order/1/0"):
        with pytest.raises(FileNotFoundError):
            os.stat(records / name)


def test_only_what_has_records_is_below_records(mount):
    records = mount.version("org/set", 1, "records")
    assert sorted(os.listdir(records)) == ["@files", "lm", "shards"]
    for name in ("broken.tar", "images", "empty"):
        with pytest.raises(FileNotFoundError):
            os.stat(records / name)


def test_hub_has_data_sets(mount):
    revision = (mount / "hub/datasets--org--set/refs/main").read_text()
    snapshot = mount / "hub/datasets--org--set/snapshots" / revision
    run(["diff", "-r", snapshot, mount.version("org/set", 1, "datasets")])
