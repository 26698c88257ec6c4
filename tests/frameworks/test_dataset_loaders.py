"""Data sets through the mount, by the loaders that people train with: each gets what the source has."""
import errno
import io
import json
import os
import pathlib
import sys
import tarfile
import types

import lmdb
import numpy
import pytest
import webdataset
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from weftlib import NOBODY, TOP, Mount, Store, act_as, environment, files_below, run

WORKERS = 8
IMAGES = 40  # of each of two classes
RECORDS = 120


def picture(number):
    """A PNG of its own, as bytes."""
    pixels = numpy.random.default_rng(number).integers(0, 255, (24, 16 + number % 5, 3), numpy.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def write_images(directory):
    for number in range(IMAGES):
        for name in ("cat", "dog"):
            path = directory / name / f"{number:03}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(picture(number if name == "cat" else 1000 + number))


def write_shard(path):
    with tarfile.open(path, "w") as tar:
        for number in range(RECORDS):
            for suffix, content in (("png", picture(number)), ("cls", str(number % 7).encode())):
                member = tarfile.TarInfo(f"train/{number:05}.{suffix}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def write_lmdb(directory):
    with lmdb.open(str(directory), map_size=1 << 28) as env, env.begin(write=True) as txn:
        for number in range(RECORDS):
            txn.put(f"{number:05}".encode(), picture(number))


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A data set, published and mounted: .source, .path (datasets/), .records, .mount, .area."""
    area = tmp_path_factory.mktemp("sets")
    source = area / "source"
    write_images(source / "images")
    write_shard(source / "train.tar")
    write_lmdb(source / "lsun")
    (source / "table").mkdir()
    (source / "table/train.jsonl").write_text("".join(json.dumps({"n": n, "text": f"row {n}"}) + "\n" for n in range(50)))
    store = Store(area / "store")
    said = store.weft("import", "--dataset", source, "--name", "org/set").stderr
    assert "lock.mdb: left out" in said
    with Mount(store, area / "mnt") as mount:
        yield types.SimpleNamespace(source=source, path=mount.path / "datasets/org/set/1",
                                    records=mount.path / "records/org/set/1", mount=mount.path, area=area, store=store)


class Members(Dataset):
    """A tar's members as files."""

    def __init__(self, directory):
        self.paths = sorted(path for path in directory.rglob("*") if path.is_file())

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, number):
        return self.paths[number].name, self.paths[number].read_bytes()


class Rows(Dataset):
    """A container's records, by their offsets and lengths."""

    def __init__(self, container, records):
        self.container, self.index = container, numpy.load(records / "index.npy", mmap_mode="r")

    def __len__(self):
        return len(self.index)

    def __getitem__(self, number):
        with open(self.container, "rb") as file:
            offset, length = (int(value) for value in self.index[number])
            return os.pread(file.fileno(), length, offset)


def loaded(dataset):
    rows = DataLoader(dataset, batch_size=None, num_workers=WORKERS, timeout=120)
    return [tuple(row) if isinstance(row, list) else row for row in rows]


def members_of(path):
    with tarfile.open(path) as tar:
        return [(pathlib.Path(member.name).name, tar.extractfile(member).read()) for member in tar]


def test_what_was_published_is_there(shown):
    given = files_below(shown.source)
    del given["lsun/lock.mdb"]
    assert files_below(shown.path) == given


def test_members_of_a_tar_as_files(shown):
    assert sorted(loaded(Members(shown.records / "train.tar/files"))) == sorted(members_of(shown.source / "train.tar"))


def test_records_of_a_tar_by_index(shown):
    got = loaded(Rows(shown.path / "train.tar", shown.records / "train.tar"))
    assert got == [content for _, content in members_of(shown.source / "train.tar")]
    keys = (shown.records / "train.tar/keys.txt").read_text().splitlines()
    with tarfile.open(shown.source / "train.tar") as tar:
        assert keys == tar.getnames()


def test_records_of_an_lmdb_by_index(shown):
    rows = loaded(Rows(shown.path / "lsun/data.mdb", shown.records / "lsun/data.mdb"))
    keys = (shown.records / "lsun/data.mdb/keys.txt").read_text().splitlines()
    with lmdb.open(str(shown.source / "lsun"), readonly=True, lock=False) as env, env.begin() as txn:
        assert dict(zip(keys, rows)) == {key.decode(): bytes(value) for key, value in txn.cursor()}


@pytest.mark.parametrize("lock", [True, False])
def test_an_lmdb_opened_by_python_lmdb(shown, lock):
    with lmdb.open(str(shown.path / "lsun"), readonly=True, lock=lock, readahead=False) as env, env.begin() as txn:
        assert [bytes(txn.get(f"{number:05}".encode())) for number in range(RECORDS)] == \
            [picture(number) for number in range(RECORDS)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("user", [0, NOBODY])
def test_an_lmdb_of_a_mount_that_publishes(user, tmp_path):
    """LMDB makes a file for its locks beside the data, and goes on without if it gets EROFS, and no other error."""
    write_lmdb(tmp_path / "lsun")
    (tmp_path / "lsun/lock.mdb").unlink()
    store = Store(tmp_path / "store")
    store.publish(tmp_path / "lsun", name="as/model")
    store.weft("import", "--dataset", tmp_path / "lsun", "--name", "as/set")

    def read():
        for directory in (mount / "models/as/model/1", mount / "datasets/as/set/1"):
            with pytest.raises(OSError) as refused:
                os.open(directory / "lock.mdb", os.O_RDWR | os.O_CREAT)
            assert refused.value.errno == errno.EROFS
            with lmdb.open(str(directory), readonly=True, lock=True) as env, env.begin() as txn:
                assert bytes(txn.get(b"00007")) == picture(7)

    with Mount(store, tmp_path / "mnt", "publish") as mount:
        mount.let_in()
        act_as(user, read)


def seen_by_torchvision(shown, tmp_path, root):
    """What vision_client.py got of a data set: a digest of each image, with its label."""
    done = run([sys.executable, TOP / "tests/frameworks/vision_client.py", root], cwd=tmp_path, timeout=300,
               env=environment(PYTHONPATH=str(TOP / "build/venv-test/vision")))
    return json.loads(done.stdout.splitlines()[-1])


def test_torchvision(shown, tmp_path):
    """Its class for LMDB and its class for a directory of images, by a DataLoader of eight workers."""
    ours, theirs = (seen_by_torchvision(shown, tmp_path, root) for root in (shown.path, shown.source))
    assert len(ours["lsun"]) == RECORDS and len(ours["folder"]) == 2 * IMAGES
    assert ours == theirs


def test_webdataset(shown):
    def samples(path):
        return [(one["__key__"], one["png"], one["cls"])
                for one in webdataset.WebDataset(str(path), shardshuffle=False, empty_check=False)]

    assert len(samples(shown.path / "train.tar")) == RECORDS
    assert samples(shown.path / "train.tar") == samples(shown.source / "train.tar")


@pytest.mark.parametrize("container", ["train.tar", "lsun/data.mdb", "@files"])
def test_shares_are_all_rows_once(shown, container):
    directory = shown.records / container
    rows = len((directory / "keys.txt").read_text().splitlines())
    for kind in ("part", "order/3"):
        shares = [numpy.load(directory / kind / "5" / f"{rank}.npy") for rank in range(5)]
        assert sorted(numpy.concatenate(shares)) == list(range(rows))
    for absent in ("part/5/5.npy", "part/0/0.npy", "part/4097/0.npy", "order/65536/1/0.npy", "part/05/1.npy"):
        assert not (directory / absent).exists()


def program(shown, home, text):
    """What a Python program of its own prints, offline."""
    home.mkdir()
    env = environment(HF_HUB_CACHE=str(shown.mount / "hub"), HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1",
                      HF_HOME=str(home), HF_DATASETS_CACHE=str(home / "sets"), HOME=str(home))
    return run([sys.executable, "-c", text], env=env, timeout=300).stdout.splitlines()[-1]


def test_snapshot_download(shown, tmp_path):
    path = program(shown, tmp_path / "home", "from huggingface_hub import snapshot_download\n"
                   "print(snapshot_download('org/set', repo_type='dataset'))")
    assert path.startswith(str(shown.mount / "hub/datasets--org--set/snapshots"))
    assert files_below(pathlib.Path(path)) == files_below(shown.path)


def test_load_dataset(shown, tmp_path):
    rows = program(shown, tmp_path / "home", "import datasets, json\n"
                   f"print(json.dumps(datasets.load_dataset({str(shown.path / 'table')!r})['train'].to_list()))")
    assert json.loads(rows) == [{"n": n, "text": f"row {n}"} for n in range(50)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("options", ["publish", "announce", "publish,umask=077", "announce,umask=077",
                                     "publish,umask=027"])
def test_an_lmdb_with_its_lock_file(options, tmp_path):
    """LMDB opens the lock file that a model has beside its data for writing, and goes on if it gets EROFS."""
    source = tmp_path / "source"
    source.mkdir()
    write_lmdb(source / "dir")
    with lmdb.open(str(source / "one.lmdb"), subdir=False, map_size=1 << 28) as env, env.begin(write=True) as txn:
        txn.put(b"00007", picture(7))
    store = Store(tmp_path / "store")
    store.publish(source, name="as/model")
    said = store.weft("import", "--dataset", source, "--name", "as/set").stderr
    assert "lock.mdb: left out" in said and "one.lmdb-lock: left out" in said

    def read():
        for place in (mount / "models/as/model/1", mount / "datasets/as/set/1"):
            for name, subdir in (("dir", True), ("one.lmdb", False)):
                with lmdb.open(str(place / name), subdir=subdir, readonly=True) as env, env.begin() as txn:
                    assert bytes(txn.get(b"00007")) == picture(7)
        with pytest.raises(OSError) as refused:
            os.open(mount / "models/as/model/1/dir/lock.mdb", os.O_RDWR)
        assert refused.value.errno == errno.EROFS

    with Mount(store, tmp_path / "mnt", f"{options},uid={NOBODY},gid={NOBODY}") as mount:
        mount.let_in()
        act_as(NOBODY, read)
        assert sorted(path.name for path in (mount / "datasets/as/set/1").iterdir()) == ["dir", "one.lmdb"]
