"""lineage/ in the mount: links, trees, log, owners, diffs, the graph; while kin come and go."""
import mmap
import os
import threading
import xml.dom.minidom

import pytest

from weftlib import Mount, files_below, random_tensors, run, wait_until, write_model

FILES = ["SHA256SUMS", "ancestors", "descendants", "graph.svg", "info.json", "log", "owners.tsv"]


def chain_model(directory, number):
    """Four tensors; the one that `number` names differs from those of number - 1."""
    tensors = {}
    for i in range(4):
        last = max([n for n in range(1, number + 1) if n % 4 == i], default=0)
        tensors |= random_tensors(1, 4096, seed=f"chain {i} {last}", prefix=f"l{i}")
    return write_model(directory, tensors)


@pytest.fixture
def family(store, tmp_path):
    """org/base@1, @2 (found), tuned@1 of org/base@2 (declared), merged@1 of both; mounted."""
    store.publish(chain_model(tmp_path / "1", 1), name="org/base", message="as it came")
    store.publish(chain_model(tmp_path / "2", 2), name="org/base", message="second")
    store.publish(chain_model(tmp_path / "3", 3), name="tuned", parent="org/base@2", metric="loss=0.5")
    store.publish(chain_model(tmp_path / "4", 4), name="merged", parent=["tuned", "org/base@1"])
    with Mount(store, tmp_path / "mnt") as mount:
        yield mount


def names(text):
    """The versions of a tree, in its order, without branches and facts."""
    return [line.lstrip("│├└─ ").split("  ")[0] for line in text.splitlines()]


def test_entries(family):
    where = family.lineage("merged", 1)
    assert sorted(os.listdir(where)) == sorted([*FILES, "parents", "children", "diff"])
    for name in FILES:
        facts = (where / name).stat()
        assert len((where / name).read_bytes()) == facts.st_size > 0
        assert facts.st_blocks == 1 and facts.st_mtime_ns == family.version("merged", 1).stat().st_mtime_ns


def test_trees(family):
    assert names((family.lineage("merged", 1) / "ancestors").read_text()) == [
        "merged@1", "tuned@1", "org/base@2", "org/base@1", "org/base@1"]
    up = (family.lineage("merged", 1) / "ancestors").read_text()
    assert up.count("↑ above") == 1 and "as it came" in up
    lines = {name: line for name, line in zip(names(up), up.splitlines())}
    assert "declared, verified (3 of 4 tensors, 12.0 KiB)" in lines["tuned@1"]
    down = (family.lineage("org/base", 1) / "descendants").read_text()
    assert names(down) == ["org/base@1", "org/base@2", "tuned@1", "merged@1", "merged@1"]
    assert "  verified (3 of 4 tensors, 12.0 KiB)" in down


def test_found_parent_is_not_declared(family):
    line = (family.lineage("org/base", 2) / "ancestors").read_text().splitlines()[1]
    assert line.startswith("org/base@1 ") and "verified" in line and "declared" not in line


def test_log(family):
    text = (family.lineage("merged", 1) / "log").read_text()
    heads = [line.split()[0] for line in text.splitlines() if line and not line.startswith(" ")]
    assert heads == ["merged@1", "tuned@1", "org/base@2", "org/base@1"]
    assert "    metrics  loss=0.5\n" in text and "    second\n" in text
    assert family.store.weft("log", "merged@1").stdout == text


def test_owners(family):
    rows = [line.split("\t") for line in (family.lineage("tuned", 1) / "owners.tsv").read_text().splitlines()]
    assert rows == [["l0.0.weight", "org/base@1", "4096"], ["l1.0.weight", "org/base@1", "4096"],
                    ["l2.0.weight", "org/base@2", "4096"], ["l3.0.weight", "tuned@1", "4096"]]


def test_diff(family):
    where = family.lineage("merged", 1) / "diff"
    assert sorted(os.listdir(where)) == ["org%2Fbase@1", "tuned@1"]
    text = (where / "tuned@1").read_text()
    assert len(text.encode()) == (where / "tuned@1").stat().st_size
    assert "tuned@1 → merged@1\n" in text and "\n~ l0.0.weight" in text and "\n= l3.0.weight" in text
    assert family.store.weft("diff", "tuned@1", "merged@1").stdout == text
    with pytest.raises(FileNotFoundError):
        (where / "org%2fbase@1").read_text()
    with pytest.raises(FileNotFoundError):
        (where / "org%2Fbase@2").read_text()


def test_a_diff_reads_no_data_unless_it_is_asked_for_norms(family):
    packs = family.store.path / "packs"
    before = family.store.weft("diff", "tuned@1", "merged@1", "--norms").stdout
    plain = family.store.weft("diff", "tuned@1", "merged@1").stdout
    packs.rename(family.store.path / "away")
    packs.mkdir()
    try:
        assert family.store.weft("diff", "tuned@1", "merged@1").stdout == plain
        assert (family.lineage("merged", 1) / "diff/tuned@1").read_text() == plain
        failed = family.store.weft("diff", "tuned@1", "merged@1", "--norms", check=False)
        assert failed.returncode == 1 and "a pack for blob" in failed.stderr and "not there" in failed.stderr, failed.stderr
    finally:
        packs.rmdir()
        (family.store.path / "away").rename(packs)
    assert family.store.weft("diff", "tuned@1", "merged@1", "--norms").stdout == before


def test_graphs(family):
    where = family.lineage("tuned", 1)
    svg = xml.dom.minidom.parseString((where / "graph.svg").read_bytes())
    assert len(svg.getElementsByTagName("g")) == 4
    assert family.store.weft("lineage", "tuned@1", "--svg").stdout == (where / "graph.svg").read_text()
    dot = family.store.weft("lineage", "tuned@1", "--dot").stdout
    assert '"org/base@2" -> "tuned@1"' in dot and dot.count("->") == 4


def test_a_card_shows_tags_and_new_bytes(family):
    """Those of now, although nobody publishes a relative."""
    path = family.lineage("merged", 1) / "graph.svg"
    before = path.read_text()
    assert ">production</text>" not in before and before.count(" · +") + before.count(">+") == 4
    family.store.weft("tag", "tuned@1", "production")
    wait_until(lambda: ">production</text>" in path.read_text())
    assert path.stat().st_size == len(path.read_bytes())
    assert family.store.weft("lineage", "merged@1", "--svg").stdout == path.read_text()


def test_links_lead_into_models(family):
    """So who follows them never comes back."""
    where = family.lineage("merged", 1)
    assert os.path.samefile(where / "parents/org%2Fbase@1", family.version("org/base", 1))
    assert os.path.samefile(family.lineage("org/base", 2) / "children/tuned@1", family.version("tuned", 1))
    assert run(["sh", "-c", "cd parents/tuned@1 && pwd -P"], cwd=where).stdout == f"{family.version('tuned', 1)}\n"
    links = [path for path in (family / "lineage").rglob("*") if path.is_symlink()]
    assert len(links) == 3 + 2 * 4  # latest of each model; a link at each end of an edge
    for link in links:
        assert link.resolve().is_relative_to(family / "models") or link.resolve().parent == link.parent
    assert not [path for path in (family / "models").rglob("*") if path.is_symlink() and path.name != "latest"]


def test_cat_and_mmap_agree(family):
    for name in FILES:
        path = family.lineage("tuned", 1) / name
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            assert bytes(mapped) == path.read_bytes() == run(["cat", path], text=False).stdout


def test_a_child_shows_at_once(family, tmp_path):
    path = family.lineage("tuned", 1) / "descendants"
    before = path.read_text()
    inode = path.stat().st_ino
    family.store.publish(chain_model(tmp_path / "5", 5), name="late", parent="tuned@1")
    after = path.read_text()
    assert names(before) == ["tuned@1", "merged@1"] and names(after) == ["tuned@1", "merged@1", "late@1"]
    assert path.stat().st_size == len(after.encode()) and path.stat().st_ino != inode
    assert "late@1" in os.listdir(family.lineage("tuned", 1) / "children")


def test_files_stay_the_same_while_strangers_are_published(family, tmp_path):
    paths = [family.lineage("tuned", 1) / name for name in FILES]
    before = [(path.stat().st_ino, path.read_bytes()) for path in paths]
    family.store.publish(write_model(tmp_path / "s", random_tensors(1, 4096, seed="stranger")), name="stranger")
    assert [(path.stat().st_ino, path.read_bytes()) for path in paths] == before


def test_an_open_file_shows_one_rendering(family, tmp_path):
    path = family.lineage("org/base", 1) / "descendants"
    before = path.read_bytes()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        family.store.publish(chain_model(tmp_path / "5", 5), name="late", parent="org/base@1")
        assert path.read_bytes() != before
        assert file.read() == before == bytes(mapped)
        assert os.fstat(file.fileno()).st_size == len(before)


def test_readers_while_children_are_published(family, tmp_path):
    """Whatever is read is one whole state, of the size that its handle says."""
    path, problems, done = family.lineage("org/base", 1) / "descendants", [], threading.Event()

    def read():
        while not done.is_set():
            with path.open("rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                data = b"".join(iter(lambda: file.read(512), b""))
            if len(data) != size or not data.endswith(b"\n"):
                problems.append((size, data))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for i in range(20):
            family.store.publish(chain_model(tmp_path / "kid", i + 10), name="kids", parent="org/base@1")
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert problems == []
    assert len(names(path.read_text())) == 5 + 20


def test_a_removed_ancestor_stays_in_the_story(family):
    """Also after gc and rebuild; its children stay whole."""
    up = family.lineage("merged", 1) / "ancestors"
    open_before = up.open()
    files = files_below(family.version("tuned", 1))
    family.store.weft("rm", "--force", "org/base@2")
    family.store.weft("gc")
    text = up.read_text()
    assert "removed" not in open_before.read() and open_before.close() is None
    assert names(text) == ["merged@1", "tuned@1", "org/base@2", "org/base@1", "org/base@1"]
    tombstone = next(line for line in text.splitlines() if "org/base@2" in line)
    assert "removed 20" in tombstone and "verified (3 of 4 tensors" in tombstone
    assert os.listdir(family.lineage("tuned", 1) / "parents") == [] == os.listdir(family.lineage("tuned", 1) / "diff")
    assert files_below(family.version("tuned", 1)) == files
    assert "org/base@2" in (family.lineage("tuned", 1) / "owners.tsv").read_text()
    assert names(family.store.weft("lineage", "org/base@2", "--descendants").stdout)[0] == "org/base@2"
    family.store.assert_sound()


def test_rebuild_keeps_the_story(family):
    def story():
        return [family.store.weft("lineage", version, option).stdout for version in ("merged@1", "org/base@1")
                for option in ("--ancestors", "--descendants", "--dot", "--svg")] + [
                family.store.weft("lineage", "tuned", "--owners").stdout, family.store.json("log", "tuned")]
    family.store.weft("rm", "--force", "org/base@2")
    before = story()
    inodes = [(family.lineage("merged", 1) / name).stat().st_ino for name in FILES]
    family.store.weft("fsck", "--rebuild")
    assert story() == before
    assert [(family.lineage("merged", 1) / name).stat().st_ino for name in FILES] == inodes


def test_remount_keeps_inodes_and_bytes(family):
    where = family.lineage("merged", 1)
    before = [((where / name).stat().st_ino, (where / name).read_bytes()) for name in FILES]
    family.unmount()
    with family:
        assert [((where / name).stat().st_ino, (where / name).read_bytes()) for name in FILES] == before


@pytest.mark.parametrize("count", [30, 60])
def test_many_versions(store, tmp_path, count):
    """The graph has them all, or the nearest and says so; trees have all."""
    for number in range(1, count + 1):
        parents = {"parent": f"m@{max(1, number - 1 - number % 7)}"} if number > 1 else {}
        store.publish(chain_model(tmp_path / "m", number), name="m", **parents)
    with Mount(store, tmp_path / "mnt") as mount:
        where = mount.lineage("m", count // 2)
        cards = len(xml.dom.minidom.parseString((where / "graph.svg").read_bytes()).getElementsByTagName("g"))
        said = "the nearest 40 of 60 versions" in (where / "graph.svg").read_text()
        assert (cards, said) == ((30, False) if count == 30 else (40, True))
        assert ("the nearest 40 of 60" in store.weft("lineage", f"m@{count // 2}", "--dot").stdout) == said
        down = names((mount.lineage("m", 1) / "descendants").read_text())
        assert sorted(down) == sorted(f"m@{n}" for n in range(1, count + 1))
