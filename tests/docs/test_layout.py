"""scripts/layout finds what it is there to find."""
import pytest

from weftlib import TOP, run

GOOD = {
    "src/model/README.md": "# Models\n\nIt knows: base. Pure.\n",
    "src/model/CMakeLists.txt": "weft_library(model tree.cc)\n",
    "src/model/tree.cc": '#include "model/tree.h"\n\n#include "base/text.h"\n',
    "src/model/tree.h": "#pragma once\n",
    "tests/unit/model/CMakeLists.txt": "weft_test(unit_model SOURCES tree_test.cc)\n",
    "tests/unit/model/tree_test.cc": "\n",
}
SPACE = "#pragma once\nnamespace weft {{\n{}\n}}  // namespace weft\n"
METHODS = "".join(f"  int f{n}(int a, std::function<void()> b = [] {{}}) const {{ return a; }}\n" for n in range(41))
LARGE = SPACE.format(f"class Large {{\n{METHODS}}};")
SPREAD = {f"src/model/part{n}.cc": SPACE[len("#pragma once\n"):].format(f"int Wide::f{n}() {{ return 0; }}")
          for n in range(3)}
SPREAD |= {"src/model/tree.h": SPACE.format("struct Wide {\n  int f0(), f1(), f2();\n};"),
           "src/model/CMakeLists.txt": "weft_library(model tree.cc part0.cc part1.cc part2.cc)\n"}
LOCAL = "namespace {{\n\nint depth_of(int node, {}) {{\n  return node;\n}}\n\n}}  // namespace\n"
TWO_LOCAL = {"src/model/tree.cc": '#include "model/tree.h"\n' + LOCAL.format("long at"),
             "src/model/deep.cc": LOCAL.format("std::pair<int, int> at"),
             "src/model/CMakeLists.txt": "weft_library(model tree.cc deep.cc)\n"}
CALLS = "#pragma once\ninline int f() { return ::getpid() + x::y() + ::getppid(); }  // ::getuid()\n"
NOTES = "bool f(Txn& t) { return put_note(t, kCached, 1); }\nbool g(Txn& t) { return erase_note(t, kPinned, 1); }\n"
RIDDLE = "#pragma once\n// It is what they have of it when those that had it before give\n// it to another one.\n"
HEADLESS = "#pragma once\nint a;  // Whoever opens the model reads its tensors.\n"
MAP = "## Folders\n\n    {}/ x\n\n## Limits\n"
# What is changed -> what is said about it.
BROKEN = {
    "arrow": ({"src/model/tree.cc": '#include "model/tree.h"\n#include "store/pack.h"\n'}, "tree.cc:2"),
    "contract that includes a folder": ({"include/weft/x.h": '#pragma once\n#include "base/text.h"\n'}, "x.h:2"),
    "contract that climbs": ({"include/weft/model/x.h": '#pragma once\n#include "weft/store/store.h"\n'}, "x.h:2"),
    "third-party header": ({"src/model/tree.h": "#pragma once\n#include <lmdb.h>\n"}, "lmdb.h"),
    "errno": ({"src/model/tree.h": "#pragma once\nint f() { return ENOENT; }\n"}, "ENOENT"),
    "errno that is read": ({"src/model/tree.h": "#pragma once\nint f() { return errno; }\n"}, "tree.h:2: errno"),
    "unchecked mutex": ({"src/fetch/x.h": "#pragma once\n// std::mutex\ninline std::mutex m;\n"}, "x.h:3: std::mutex"),
    "note of a version": ({"src/fetch/x.h": "#pragma once\n" + NOTES}, "x.h:3: the note kPinned"),
    "own header": ({"src/model/tree.cc": '#include <vector>\n#include "model/tree.h"\n'}, "own header"),
    "pragma once": ({"src/model/tree.h": "\n"}, "#pragma once"),
    "source that is not listed": ({"src/model/new.cc": "\n"}, "new.cc"),
    "two types of one name": ({"src/model/tree.h": SPACE.format("struct Table {};"),
                               "src/store/table.h": SPACE.format("class Table final : public X {};")}, "weft::Table"),
    "folder without a README": ({"src/store/table.h": "#pragma once\n"}, "src/store: no README.md"),
    "crowded folder": ({f"src/model/x{n}.h": "#pragma once\n" for n in range(45)}, "src/model: 47 files"),
    "folder that README.md does not list": ({"README.md": MAP.format("include/weft")}, "src/model"),
    "folder that is not there": ({"README.md": MAP.format("src/model/ x\n    src/none")}, "src/none"),
    "large class": ({"src/model/tree.h": LARGE}, "weft::Large: 41 methods"),
    "class in many sources": (SPREAD, "weft::Wide: methods in 3 sources"),
    "local functions of one name in a library": (TWO_LOCAL, "depth_of() with 2 parameters"),
    "system call": ({"src/model/tree.h": CALLS}, "tree.h:2: ::getpid"),
    "comment that names nothing": ({"src/model/tree.h": RIDDLE}, "tree.h:2: a comment names nothing: It is"),
    "comment without its subject": ({"src/model/tree.h": HEADLESS}, "tree.h:2: a comment begins without its subject"),
    "schema's comment": ({"src/model/tree.fbs": "// What the model is, and which layers it has.\n"}, "tree.fbs:1"),
    "room without unit tests": ({"src/store/table.h": "#pragma once\n"}, "src/store: no folder tests/unit/store"),
    "contract without its source": ({"include/weft/x.h": "// Trees.\n#pragma once\n"}, "include/weft/x.h:1"),
    "contract whose source is gone": ({"include/weft/x.h": "// Trees (model/gone.cc).\n#pragma once\n"}, "x.h:1"),
    "README that knows too much": ({"src/model/README.md": "It knows: base, os.\n"}, "It knows: base."),
    "README that does not say what it knows": ({"src/model/README.md": "# Models\n"}, "It knows: base."),
    "too high an allowance": ({"src/model/tree.h": CALLS, "scripts/allowed": "calls src/model/tree.h 3\n"}, "2 left"),
    "too low an allowance": ({"src/model/tree.h": CALLS, "scripts/allowed": "calls src/model/tree.h 1\n"}, "getppid"),
    "allowance without a case": ({"scripts/allowed": "methods weft::Gone 50\n"}, "none left"),
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
    table = {"src/model/table.h": SPACE.format("struct Table {};")}
    assert layout_of(tmp_path, GOOD | table | {"src/model/tree.h": hidden}).returncode == 0


def test_comments_and_texts_may_name_errno(tmp_path):
    text = '#pragma once\n// ENOENT /* EIO */\n/* EPERM\nEIO */ const char* t = "EROFS // x";\n'
    assert layout_of(tmp_path, GOOD | {"src/model/tree.h": text}).returncode == 0


def test_local_functions_of_one_name_may_have_other_parameters(tmp_path):
    files = TWO_LOCAL | {"src/model/deep.cc": LOCAL.format("int at, int end")}
    assert layout_of(tmp_path, GOOD | files).returncode == 0


def test_what_counts_as_no_method_and_as_no_call(tmp_path):
    """Data, friends, types, annotations, deleted and defaulted functions; methods and names of other classes."""
    free = ("  Large(const Large&) = delete;\n  Large& operator=(Large&&) = default;\n  friend void g(Large&);\n"
            "  using F = int (*)(int);\n  int (*p)(int) = nullptr;\n  std::map<int, void()> m{f(1), {2}};\n"
            "  std::mutex mutex WEFT_GUARDED_BY(f());\n  struct Row { int f(); };\n  enum class E { a, b };\n")
    large = LARGE.replace("  int f0(", free + "  // int f0(").replace("::getpid", "getpid")
    text = large.replace("// namespace", "\ninline int f(int a) { return weft::g() + a::b() + ::htons(1); }\n// namespace")
    assert layout_of(tmp_path, GOOD | {"src/model/tree.h": text}).returncode == 0


def test_constructors_and_operators_are_methods(tmp_path):
    more = ("  Large() : a_{1}, b_(2) { f(); }\n  ~Large();\n  bool operator()(int a) const;\n"
            "  operator bool() const { return a_; }\n")
    text = LARGE.replace("class Large {\n", "class Large final : public X<int> {\n public:\n" + more)
    assert "weft::Large: 45 methods" in layout_of(tmp_path, GOOD | {"src/model/tree.h": text}).stdout


def test_allowances(tmp_path):
    """What is listed passes, and --lower leaves what is left of the list."""
    (tmp_path / "scripts").mkdir()
    listed = tmp_path / "scripts/allowed"
    listed.write_text("# Why.\ncalls src/model/tree.h 3\nmethods weft::Gone 50\n")
    assert layout_of(tmp_path, GOOD | {"src/model/tree.h": CALLS}).returncode == 1
    assert run([TOP / "scripts/layout", "--lower", tmp_path], check=False).returncode == 0
    assert listed.read_text() == "# Why.\ncalls src/model/tree.h 2\n"


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
