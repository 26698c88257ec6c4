"""Directories of several pages of the server: each entry that is there all the while is read once, whatever happens."""
import ctypes
import json
import os
import random
import signal

import pytest

from weftlib import Mount, Store, wait_until

TAGS = 2500  # a page has 1,024 entries
SEEKS = 40


class Dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64), ("length", ctypes.c_uint16),
                ("type", ctypes.c_uint8), ("name", ctypes.c_char * 256)]


class Directory:
    """An open directory as the C library reads it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.opendir.restype = ctypes.c_void_p
    libc.readdir64.restype = ctypes.POINTER(Dirent)
    libc.telldir.restype = ctypes.c_long

    def __init__(self, path):
        self.stream = ctypes.c_void_p(self.libc.opendir(os.fsencode(path)))
        assert self.stream

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.libc.closedir(self.stream)

    def next(self):
        """The next name; None at the end."""
        ctypes.set_errno(0)
        entry = self.libc.readdir64(self.stream)
        assert ctypes.get_errno() == 0, os.strerror(ctypes.get_errno())
        return entry.contents.name.decode() if entry else None

    def rest(self):
        return list(iter(self.next, None))

    def tell(self):
        return self.libc.telldir(self.stream)

    def seek(self, place):
        self.libc.seekdir(self.stream, ctypes.c_long(place))

    def rewind(self):
        self.libc.rewinddir(self.stream)


def tag(number):
    return f"t{number:04}"


@pytest.fixture(scope="module")
def mount(tmp_path_factory):
    area = tmp_path_factory.mktemp("large")
    (area / "config.json").write_text("{}")
    store = Store(area / "store")
    store.publish(area / "config.json", name="m", tag=[tag(number) for number in range(TAGS)])
    (area / "config.json").write_text('{"second": true}')
    store.publish(area / "config.json", name="m")
    with Mount(store, area / "mnt") as mounted:
        yield mounted


@pytest.fixture(params=["models/m", "hub/models--m/refs"])
def path(mount, request):
    return mount / request.param


def kill_server(mount):
    before = json.loads((mount / ".weft/status").read_text())["mount"]
    os.kill(before["pid"], signal.SIGKILL)
    wait_until(lambda: json.loads((mount / ".weft/status").read_text())["mount"]["pid"] != before["pid"])


def test_each_entry_is_listed_once(path):
    with Directory(path) as directory:
        names = directory.rest()
        assert len(names) == len(set(names)) > TAGS
        assert set(names) == {".", "..", *os.listdir(path)}
        directory.rewind()
        assert directory.rest() == names


def test_a_place_leads_on_to_the_same_entries(mount, path):
    with Directory(path) as directory:
        places, names = [directory.tell()], []
        while name := directory.next():
            names.append(name)
            places.append(directory.tell())
        assert len(set(places)) == len(places)
        chosen = random.Random(1).sample(range(len(places)), SEEKS)
        for turn, at in enumerate(chosen):
            if turn == SEEKS // 2:
                kill_server(mount)
            directory.seek(places[at])
            assert [directory.next() for _ in range(3)] == (names[at:at + 3] + [None] * 3)[:3]
    with Directory(path) as other:
        other.seek(places[TAGS // 2])
        assert other.rest() == names[TAGS // 2:]


@pytest.mark.parametrize("restarts", [False, True], ids=["", "restart"])
def test_what_stays_is_listed_once_while_others_come_and_go(mount, path, restarts):
    """The reader stands at an entry that goes."""
    store, moves, stays = mount.store, tag(7), {tag(number) for number in range(TAGS)}
    with Directory(path) as directory:
        names = []
        while tag(600) not in names:
            names.append(directory.next())
        place = directory.tell()
        store.weft("tag", "m", tag(600), "--delete")
        store.weft("tag", "m", tag(1700), "--delete")
        for name in ("a-new", "z-new", moves):
            store.weft("tag", "m@2", name)
        if restarts:
            kill_server(mount)
        os.listdir(path)
        directory.seek(place)
        names += directory.rest()
    stays -= {tag(600), tag(1700)}
    counts = {name: names.count(name) for name in stays}
    assert [name for name, count in counts.items() if count != 1] == []
    assert "z-new" in names and names.count("..") == 1
    for name in (tag(600), tag(1700)):
        store.weft("tag", "m@1", name)
    for name in ("a-new", "z-new"):
        store.weft("tag", "m", name, "--delete")
    with Directory(path) as directory:
        directory.seek(place)
        assert tag(601) in directory.rest()


def test_a_walk_opens_children_while_it_lists(mount, path):
    """The reader of a large directory keeps his place among the listings of others."""
    seen = 0
    with os.scandir(path) as entries:
        for entry in entries:
            os.listdir(mount / "models/m/1")
            seen += 1
    assert seen == len(os.listdir(path))
