"""Programs that walk a directory: what each of them finds. walk(directory, out) gives name -> content; `out` is a
directory that is there and empty."""
import glob
import hashlib
import os
import shutil
import subprocess
import tarfile
import zipfile

from weftlib import run


def tree_of(directory):
    """Relative path -> digest of a file, target of a link, or "/" of a directory. Links are not followed."""
    found = {}
    for at, directories, files in os.walk(directory):
        for name in directories + files:
            path = os.path.join(at, name)
            relative = os.path.relpath(path, directory)
            if os.path.islink(path):
                found[relative] = "-> " + os.readlink(path)
            elif os.path.isdir(path):
                found[relative] = "/"
            else:
                with open(path, "rb") as file:
                    found[relative] = hashlib.sha256(file.read()).hexdigest()
    return found


def copied_by(*words):
    def walk(directory, out):
        run([*words, f"{directory}/", f"{out}/"])
        return tree_of(out)
    return walk


def cp(directory, out):
    run(["cp", "-a", f"{directory}/.", out])
    return tree_of(out)


def tar(*options):
    def walk(directory, out):
        run(["tar", "--sort=name", *options, "-C", directory, "-cf", out / "it.tar", "."])
        with tarfile.open(out / "it.tar") as archive:
            return sorted((member.name, member.size, member.type, member.linkname) for member in archive)
    return walk


def zipped(directory, out):
    run(["zip", "-qr", out / "it.zip", "."], cwd=directory)
    with zipfile.ZipFile(out / "it.zip") as archive:
        return sorted((info.filename, info.file_size, info.CRC) for info in archive.infolist())


def copytree(directory, out):
    shutil.copytree(directory, out / "it")
    return tree_of(out / "it")


def globbed(directory, _):
    return sorted(os.path.relpath(path, directory) for path in glob.glob(f"{directory}/**", recursive=True))


def polars(directory, _):
    import polars as pl
    table = pl.scan_csv(f"{directory}/**/*.csv", include_file_paths="path").collect()
    return sorted((os.path.relpath(row["path"], directory), row["step"], row["loss"]) for row in table.iter_rows(named=True))


def pyarrow(directory, _):
    from pyarrow import dataset, fs
    found = fs.LocalFileSystem().get_file_info(fs.FileSelector(str(directory), recursive=True))
    paths = sorted(info.path for info in found)
    tables = [path for path in paths if path.endswith(".csv")]
    rows = dataset.dataset(tables, format="csv").to_table().num_rows if tables else 0
    return [os.path.relpath(path, directory) for path in paths], rows


def git_add(directory, out):
    run(["git", "init", "-q", out])
    git = ["git", f"--git-dir={out}/.git", f"--work-tree={directory}", "-c", "core.bare=false"]
    run([*git, "add", "-A"])
    return sorted(run([*git, "ls-files", "-s"]).stdout.splitlines())


def lines_of(*words):
    def walk(directory, _):
        return sorted(run(words, cwd=directory).stdout.splitlines())
    return walk


def du(directory, _):
    """Apparent sizes of files: a directory's own size is the file system's affair."""
    lines = run(["du", "-ab", "."], cwd=directory).stdout.splitlines()
    sizes = {path: size for size, path in (line.split("\t") for line in lines)}
    return sorted((path, size) for path, size in sizes.items() if not os.path.isdir(os.path.join(directory, path)))


def watchdog(directory, _):
    from watchdog.utils.dirsnapshot import DirectorySnapshot
    return sorted(os.path.relpath(path, directory) for path in DirectorySnapshot(str(directory), recursive=True).paths)


def imported(directory, out):
    """By another store, which has no mount: every byte is read."""
    from weftlib import Store
    store = Store(out / "store")
    store.publish(directory, name="it")
    store.weft("export", "it", out / "exported")
    return tree_of(out / "exported")


FOLLOWING = {"rsync -L": copied_by("rsync", "-aL"), "tar -h": tar("-h"), "zip -r": zipped, "copytree": copytree,
             "find -L": lines_of("find", "-L", "."), "glob": globbed}
STAYING = {"cp -a": cp, "rsync -aH": copied_by("rsync", "-aH"), "tar": tar(), "git add": git_add, "du": du,
           "find": lines_of("find", "."), "watchdog": watchdog, "polars": polars, "pyarrow": pyarrow}
ALL = FOLLOWING | STAYING


def outcome(walk, directory, out):
    """What the walk gives, or that it fails."""
    try:
        return walk(directory, out)
    except (AssertionError, OSError, ValueError, shutil.Error, subprocess.SubprocessError) as error:
        return type(error).__name__
