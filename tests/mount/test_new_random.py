"""Random operations in new/ and on a model of it in memory: after each, tree and bytes are equal, and published versions are
what their drafts were."""
import contextlib
import errno
import mmap
import os
import posixpath
import random
import stat

import pytest

from weftlib import LENGTH, Mount, Store, files_below, overlay_over

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="needs root"), pytest.mark.long]
STEPS = int(400 * LENGTH)  # of each kind; scripts/campaign long makes ten times as many
SIZE_MAX = 200_000
NODES_MAX = 24
HANDLES_MAX = 3
NAMES = ["a", "b", "c.bin", "d", "ü", "e.json"]
MODELS = ["m", "n", "org/m"]
TAGS = ["", "prod", "next"]


class File:
    def __init__(self):
        self.bytes = bytearray()

    def write(self, offset, data):
        self.bytes.extend(bytes(max(0, offset - len(self.bytes))))
        self.bytes[offset:offset + len(data)] = data

    def truncate(self, size):
        del self.bytes[size:]
        self.bytes.extend(bytes(size - len(self.bytes)))


class Refused(Exception):
    def __init__(self, number):
        super().__init__(os.strerror(number))
        self.number = number


class Tree:
    """Path below new/ -> File, link target, or None for a directory. Each change is done as a file system does it."""

    def __init__(self):
        self.nodes = {}

    def below(self, path):
        return [one for one in self.nodes if one.startswith(path + "/")]

    def own(self, path):
        """The file for a change: with another name, this name gets a copy first."""
        file = self.nodes[path]
        if sum(one is file for one in self.nodes.values()) > 1:
            self.nodes[path] = File()
            self.nodes[path].bytes[:] = file.bytes
        return self.nodes[path]

    def of_kind(self, kind):
        return sorted(path for path, node in self.nodes.items() if isinstance(node, kind))

    def make(self, path, node):
        if path in self.nodes:
            raise Refused(errno.EEXIST)
        self.nodes[path] = node

    def unlink(self, path):
        if path not in self.nodes:
            raise Refused(errno.ENOENT)
        if self.nodes[path] is None:
            raise Refused(errno.EISDIR)
        del self.nodes[path]

    def rmdir(self, path):
        if path not in self.nodes:
            raise Refused(errno.ENOENT)
        if self.nodes[path] is not None:
            raise Refused(errno.ENOTDIR)
        if self.below(path):
            raise Refused(errno.ENOTEMPTY)
        del self.nodes[path]

    def rename(self, old, new):
        if old not in self.nodes:
            raise Refused(errno.ENOENT)
        if new == old or (isinstance(self.nodes[old], File) and self.nodes[old] is self.nodes.get(new)):
            return  # two names of one file
        if new.startswith(old + "/"):
            raise Refused(errno.EINVAL)
        if old.startswith(new + "/"):
            raise Refused(errno.ENOTEMPTY)
        if new in self.nodes:
            if self.nodes[old] is None and self.nodes[new] is not None:
                raise Refused(errno.ENOTDIR)
            if self.nodes[old] is not None and self.nodes[new] is None:
                raise Refused(errno.EISDIR)
            if self.below(new):
                raise Refused(errno.ENOTEMPTY)
        for path in [old, *self.below(old)]:
            self.nodes[new + path[len(old):]] = self.nodes.pop(path)

    def take(self, path):
        for one in [path, *self.below(path)]:
            del self.nodes[one]

    def files(self, root):
        """What a version of this directory or file has; Refused if it can be none."""
        if isinstance(self.nodes[root], File):
            return {posixpath.basename(root): bytes(self.nodes[root].bytes)}
        if self.nodes[root] is not None:
            raise Refused(errno.EINVAL)  # a link
        found = {path: self.file_at(path, root) for path in self.below(root) if self.nodes[path] is not None}
        if not found:
            raise Refused(errno.EINVAL)
        return {path[len(root) + 1:]: bytes(file.bytes) for path, file in found.items()}

    def file_at(self, path, root):
        """Links are followed, as long as no step leaves `root`, whose name the draft loses when it is published."""
        for _ in range(40):
            node = self.nodes.get(path)
            if isinstance(node, File):
                return node
            if node is None:
                break
            path = posixpath.dirname(path)
            for step in node.split("/"):
                path = posixpath.dirname(path) if step == ".." else f"{path}/{step}"
                if path != root and not path.startswith(root + "/"):
                    raise Refused(errno.EINVAL)
        raise Refused(errno.EINVAL)


class World:
    def __init__(self, mount, seed):
        self.mount, self.random = mount, random.Random(seed)
        self.new = mount / "new"
        self.tree, self.handles = Tree(), []  # (descriptor, File)
        self.versions = {model: {} for model in MODELS}  # number -> files
        self.tags = {}
        self.done = []
        os.makedirs(self.new / "org/m")  # org is a namespace from its first version on, and no draft
        (self.new / "org/m/x").write_bytes(b"x")
        os.rename(self.new / "org/m", self.new / "org/m@")
        self.versions["org/m"][1] = {"x": b"x"}

    def at(self, path):
        return self.new / path

    # Picks.

    def directory(self):
        """One of the tree; the only one at the top is the draft."""
        return self.random.choice(self.tree.of_kind(type(None)) or [self.begin()])

    def begin(self):
        self.both(self.tree.make, os.mkdir, "draft", None)
        return "draft"

    def place(self):
        return f"{self.directory()}/{self.random.choice(NAMES)}"

    def file(self):
        return self.random.choice(self.tree.of_kind(File) or [self.create()])

    def data(self):
        return self.random.randbytes(self.random.choice([1, 100, 4096, self.random.randrange(SIZE_MAX // 2)]))

    # Operations. Each is done on both sides.

    def both(self, model, real, path, *node):
        """The real call on the same path; both succeed, or fail with the same errno."""
        self.same(lambda: model(path, *node), lambda: real(self.at(path)))

    def same(self, model, real):
        expected = 0
        try:
            model()
        except Refused as refused:
            expected = refused.number
        outcome = 0
        try:
            real()
        except OSError as error:
            outcome = error.errno
        assert outcome == expected, self.done[-1]
        return outcome == 0

    def mkdir(self):
        self.both(self.tree.make, os.mkdir, self.place(), None)

    def create(self):
        if len(self.tree.nodes) >= NODES_MAX:
            self.tree_is_full()
        path = self.place()
        self.both(self.tree.make, lambda real: os.close(os.open(real, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o640)), path,
                  File())
        return path if isinstance(self.tree.nodes[path], File) else self.create()

    def tree_is_full(self):
        for path in sorted(self.tree.nodes, reverse=True)[:NODES_MAX // 2]:
            if self.tree.nodes[path] is None:
                self.both(self.tree.rmdir, os.rmdir, path)
            else:
                self.both(self.tree.unlink, os.unlink, path)

    def write(self):
        path, data = self.file(), self.data()
        if len(self.tree.nodes[path].bytes) > SIZE_MAX:
            return self.truncate()
        file = self.tree.own(path)
        file.write(len(file.bytes), data)
        with open(self.at(path), "ab") as real:
            real.write(data)

    def overwrite(self):
        path, data = self.file(), self.data()
        self.tree.own(path).bytes[:] = data
        self.at(path).write_bytes(data)

    def pwrite(self):
        path, data = self.file(), self.data()
        offset = self.random.randrange(SIZE_MAX)
        self.tree.own(path).write(offset, data)
        with open(self.at(path), "r+b") as real:
            os.pwrite(real.fileno(), data, offset)

    def truncate(self):
        path, size = self.file(), self.random.choice([0, 1, 4096, self.random.randrange(SIZE_MAX)])
        self.tree.own(path).truncate(size)
        os.truncate(self.at(path), size)

    def map_and_write(self):
        path = self.file()
        if not self.tree.nodes[path].bytes:
            return
        file = self.tree.own(path)
        offset = self.random.randrange(len(file.bytes))
        data = self.data()[:len(file.bytes) - offset]
        file.write(offset, data)
        with open(self.at(path), "r+b") as real, mmap.mmap(real.fileno(), 0) as mapping:
            mapping[offset:offset + len(data)] = data

    def fsync(self):
        path = self.file()
        self.tree.own(path)
        with open(self.at(path), "r+b") as real:
            os.fsync(real.fileno())

    def rename(self):
        old, new = self.random.choice(sorted(self.tree.nodes) or [self.create()]), self.place()
        self.same(lambda: self.tree.rename(old, new), lambda: os.rename(self.at(old), self.at(new)))

    def unlink(self):
        self.both(self.tree.unlink, os.unlink, self.random.choice([self.file(), self.place()]))

    def rmdir(self):
        self.both(self.tree.rmdir, os.rmdir, self.random.choice([self.directory(), self.place()]))

    def link(self):
        old = self.file()
        self.both(lambda path: self.tree.make(path, self.tree.nodes[old]), lambda real: os.link(self.at(old), real), self.place())

    def symlink(self):
        path = self.place()
        target = posixpath.relpath(self.file(), posixpath.dirname(path))
        self.both(self.tree.make, lambda real: os.symlink(target, real), path, target)

    def hold(self):
        if len(self.handles) < HANDLES_MAX:
            path = self.file()
            self.handles.append((os.open(self.at(path), os.O_RDWR), self.tree.own(path)))

    def write_held(self):
        """Whatever became of the name of the file."""
        if self.handles:
            descriptor, file = self.random.choice(self.handles)
            offset, data = self.random.randrange(SIZE_MAX), self.data()
            file.write(offset, data)
            os.pwrite(descriptor, data, offset)

    def publish(self):
        """The draft, a directory in it, or a file alone."""
        self.close()
        whole = self.random.random() < 0.5 and "draft" in self.tree.nodes
        path = "draft" if whole else self.random.choice([self.directory(), self.file()])
        model, tag = self.random.choice(MODELS), self.random.choice(TAGS)
        files = {}

        def act():
            files.update(self.tree.files(path))
            self.tree.take(path)

        if not self.same(act, lambda: os.rename(self.at(path), self.at(f"{model}@{tag}"))):
            os.unlink(self.at(path) / ".weft.error")
            return
        numbers = self.versions[model]
        newest = max(numbers, default=0)
        if not numbers or numbers[newest] != files:
            newest += 1
            numbers[newest] = files
        if tag:
            self.tags[model, tag] = newest
        self.check_version(model, newest)

    # Checks.

    def close(self):
        for descriptor, _ in self.handles:
            os.close(descriptor)
        self.handles.clear()

    def seen(self, directory="", found=None):
        found = {} if found is None else found
        for entry in os.scandir(self.at(directory)):
            path = f"{directory}/{entry.name}".lstrip("/")
            facts = os.lstat(self.at(path))
            if path == "org":
                continue
            if stat.S_ISDIR(facts.st_mode):
                found[path] = None
                self.seen(path, found)
            elif stat.S_ISLNK(facts.st_mode):
                found[path] = os.readlink(self.at(path))
            else:
                found[path] = self.at(path).read_bytes()
                assert facts.st_size == len(found[path])
        return found

    def check(self):
        expected = {path: bytes(node.bytes) if isinstance(node, File) else node for path, node in self.tree.nodes.items()}
        seen = self.seen()
        assert sorted(seen) == sorted(expected), self.done[-5:]
        assert [path for path in seen if seen[path] != expected[path]] == [], self.done[-5:]
        for descriptor, file in self.handles:
            assert os.pread(descriptor, len(file.bytes) + 1, 0) == file.bytes, self.done[-5:]

    def check_version(self, model, number):
        shown = files_below(self.mount / "models" / model / str(number))
        differ = sorted(name for name in shown | self.versions[model][number]
                        if shown.get(name) != self.versions[model][number].get(name))
        assert differ == [], (model, number, os.listdir(self.mount / "models" / model), self.done[-3:])

    def check_versions(self):
        for model, numbers in self.versions.items():
            shown = os.listdir(self.mount / "models" / model) if numbers else []
            assert {int(name) for name in shown if name.isdigit()} == set(numbers)
            for number in numbers:
                self.check_version(model, number)
        for (model, tag), number in self.tags.items():
            assert os.readlink(self.mount / "models" / model / tag) == str(number)


OPERATIONS = {World.mkdir: 2, World.create: 4, World.write: 4, World.overwrite: 2, World.pwrite: 4, World.truncate: 3,
              World.map_and_write: 3, World.fsync: 1, World.rename: 5, World.unlink: 2, World.rmdir: 1, World.link: 3,
              World.symlink: 1, World.hold: 2, World.write_held: 3, World.publish: 4}


@pytest.mark.parametrize("kind", ["passed through", "served"])
def test_random_operations(kind, tmp_path):
    with contextlib.ExitStack() as stack:
        area = stack.enter_context(overlay_over(tmp_path / "lower", tmp_path)) if kind == "served" else tmp_path
        mount = stack.enter_context(Mount(Store(area / "store"), tmp_path / "mnt", "publish"))
        world = World(mount, f"new {kind}")
        stack.callback(world.close)
        world.begin()
        for step in range(STEPS):
            operation = world.random.choices(list(OPERATIONS), OPERATIONS.values())[0]
            world.done.append((step, operation.__name__))
            operation(world)
            world.check()
        world.check_versions()
        assert sum(map(len, world.versions.values())) > STEPS // 50
        world.close()
        mount.store.assert_sound()
