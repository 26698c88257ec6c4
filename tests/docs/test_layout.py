"""scripts/layout finds what it is there to find."""
import pytest

from weftlib import TOP, run

GOOD = {
    "src/model/README.md": "# Models\n",
    "src/model/CMakeLists.txt": "weft_library(model tree.cc)\n",
    "src/model/tree.cc": '#include "model/tree.h"\n\n#include "base/text.h"\n',
    "src/model/tree.h": "#pragma once\n",
}
SPACE = "#pragma once\nnamespace weft {{\n{}\n}}  // namespace weft\n"
MAP = "## Folders\n\n    {}/ x\n\n## Limits\n"
# What is changed -> what is said about it.
BROKEN = {
    "arrow": ({"src/model/tree.cc": '#include "model/tree.h"\n#include "store/pack.h"\n'}, "tree.cc:2"),
    "contract that includes a folder": ({"include/weft/x.h": '#pragma once\n#include "base/text.h"\n'}, "x.h:2"),
    "third-party header": ({"src/model/tree.h": "#pragma once\n#include <lmdb.h>\n"}, "lmdb.h"),
    "errno": ({"src/model/tree.h": "#pragma once\nint f() { return ENOENT; }\n"}, "ENOENT"),
    "own header": ({"src/model/tree.cc": '#include <vector>\n#include "model/tree.h"\n'}, "own header"),
    "pragma once": ({"src/model/tree.h": "\n"}, "#pragma once"),
    "source that is not listed": ({"src/model/new.cc": "\n"}, "new.cc"),
    "two types of one name": ({"src/model/tree.h": SPACE.format("struct Table {};"),
                               "src/store/table.h": SPACE.format("class Table final : public X {};")}, "weft::Table"),
    "folder without a README": ({"src/store/table.h": "#pragma once\n"}, "src/store: no README.md"),
    "crowded folder": ({f"src/model/x{n}.h": "#pragma once\n" for n in range(45)}, "src/model: 47 files"),
    "folder that README.md does not list": ({"README.md": MAP.format("include/weft")}, "src/model"),
    "folder that is not there": ({"README.md": MAP.format("src/model/ x\n    src/none")}, "src/none"),
    "glob": ({"src/model/CMakeLists.txt": "file(GLOB S *.cc)\nweft_library(model tree.cc)\n"}, "globbed"),
}


def layout_of(directory, files):
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return run([TOP / "scripts/layout", directory], check=False)


def test_this_project():
    assert run([TOP / "scripts/layout"], check=False).stdout.startswith("layout: ")


def test_good(tmp_path):
    assert layout_of(tmp_path, GOOD).returncode == 0


def test_types_that_nobody_else_can_name_may_be_called_alike(tmp_path):
    hidden = SPACE.format("namespace {\nstruct Table {};\n}  // namespace\nstruct Row::Table {};\nstruct Table;")
    assert layout_of(tmp_path, GOOD | {"src/model/tree.h": hidden, "src/store/README.md": "# The store\n",
                                       "src/store/table.h": SPACE.format("struct Table {};")}).returncode == 0


def test_comments_and_texts_may_name_errno(tmp_path):
    text = '#pragma once\n// ENOENT /* EIO */\n/* EPERM\nEIO */ const char* t = "EROFS // x";\n'
    assert layout_of(tmp_path, GOOD | {"src/model/tree.h": text}).returncode == 0


@pytest.mark.parametrize("change, word", BROKEN.values(), ids=BROKEN.keys())
def test_broken(tmp_path, change, word):
    done = layout_of(tmp_path, GOOD | change)
    assert done.returncode == 1 and word in done.stdout


def test_large_tracked_file(tmp_path):
    """A large file is refused once it is tracked, and lies where it likes until then."""
    (tmp_path / "data.bin").write_bytes(bytes(200_001))
    (tmp_path / "small.bin").write_bytes(bytes(200_000))
    assert layout_of(tmp_path, GOOD).returncode == 0
    run(["git", "-C", tmp_path, "init", "-q"])
    run(["git", "-C", tmp_path, "add", "-A"])
    done = layout_of(tmp_path, GOOD)
    assert done.returncode == 1
    assert done.stdout == "data.bin: 200,001 bytes; a tracked file has at most 200,000\n"
