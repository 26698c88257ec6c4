"""All that the campaign knows of a store's files: what kinds there are. The rest goes by `weft`."""
import pathlib

# The kind of a file -> patterns below the store. A file that fits none is of the kind "other".
KINDS = {
    "pack": ["packs/*.pack"],
    "toc": ["packs/*.toc"],
    "pack copy": ["packs/*.copy"],
    "assembled pack": ["cache/*.pack"],
    "assembled toc": ["cache/*.toc"],
    "manifest": ["manifests/*"],
    "log": ["journal/*.log"],
    "copy": ["journal/*.copy"],
    "index": ["index/data.mdb"],
    "identity": ["weft-store"],
    "identity copy": ["journal/weft-store"],
    "cluster": ["cluster", "origin", "registry"],
    "note": ["scrub", "cache/bytes_max"],
    "lock": ["index/*", "cache/lock", "daemon.lock", "maker.lock"],
}
# Files that have bytes of published files.
WITH_BYTES = ("pack", "assembled pack")
JOURNAL = ("log", "copy")
# Files that say who runs now, and nothing that lasts.
VOLATILE = {"index/readers", "index/writer", "index/gc", "index/open", "index/queue", "cache/lock", "daemon.lock", "maker.lock"}


def kind_of(relative):
    path = pathlib.PurePosixPath(relative)
    return next((kind for kind, patterns in KINDS.items() if any(matches(path, pattern) for pattern in patterns)), "other")


def matches(path, pattern):
    return path.match(pattern) and len(path.parts) == pattern.count("/") + 1


def files_of(store):
    """Relative path -> path of each regular file of a store, in order."""
    store = pathlib.Path(store)
    found = (path for path in sorted(store.rglob("*")) if path.is_file() and not path.is_symlink())
    return {path.relative_to(store).as_posix(): path for path in found}


def folders_of(store):
    """Relative paths of the directories of a store, in order."""
    store = pathlib.Path(store)
    return [path.relative_to(store).as_posix() for path in sorted(store.rglob("*")) if path.is_dir()]


def named_by(path):
    """The file whose bytes tell this one from others of its kind in the same way in every run: packs have random ids, and their
    tables of contents contain these."""
    pack = path.with_suffix(".pack")
    return pack if path.suffix in (".toc", ".copy") and pack.exists() else path


def manifest_of(store, digest):
    """The bytes of a manifest, of the digest that `weft import --json` prints."""
    return (pathlib.Path(store) / "manifests" / digest).read_bytes()


def journal_of(store):
    """The bytes of the journal: records are appended to it, so that what a command added is its record."""
    return b"".join(path.read_bytes() for name, path in files_of(store).items() if kind_of(name) == "log")
