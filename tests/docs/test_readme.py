"""The commands of README.md print what README.md shows.

One shell runs the commands of "Five minutes" in their order, in a folder whose scripts/ is this one's. After `python`,
doctest runs the lines that begin with `>>>`. Each command must succeed, and its output must have the words of the README.
These parts vary:
- Dates and times: any will do.
- The path of the source folder, which the README shows as /home/me/weft.
- The width of columns, which depends on the terminal, and progress bars, which only a terminal shows.
- `scripts/demo --prepare` and `pip`: what they install depends on the machine. Here scripts/demo uses the programs and
  the Python of the tests, and pip does not run.
"""
import re
import subprocess
import sys

import pytest

from weftlib import BUILD, PATIENCE, TOP, Mount, Store, environment

README = (TOP / "README.md").read_text()
TOUR_SECONDS_MAX = 300 * PATIENCE
TIME = re.compile(r"\d{4}-\d\d-\d\d(T[\d:]+Z)?|\d\d:\d\d")
MARK = "\x1e"


def section(heading):
    return re.search(rf"^## {heading}\n(.*?)(?=^## )", README, flags=re.M | re.S)[1]


def commands():
    """(command, lines that follow it) of the blocks of the tour, in order."""
    found = []
    for line in re.findall(r"^    (.*)$", section("Five minutes"), flags=re.M):
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def script(area):
    """The shell's input: each command, with what marks the end of its output."""
    lines = []
    for number, (command, shown) in enumerate(commands()):
        if command == "python":
            session = area / f"session{number}.txt"
            session.write_text("\n".join(shown) + "\n")
            command = f"python -m doctest '{session}'"
        elif command.startswith("pip "):
            command = ":"
        lines.append(f"{{ {command}\n}}; printf '{MARK}%d{MARK}' $?")
    return "\n".join(lines)


def words(text):
    return TIME.sub("TIME", text).split()


def expected(command, shown):
    return [] if command == "python" else words("\n".join(shown))


def printed(command, output, area):
    return [] if command.startswith("scripts/demo ") else words(output.replace(str(area), "/home/me/weft"))


@pytest.fixture
def output(tmp_path):
    """What the shell printed, in pieces: the output of a command, its exit code, the output of the next."""
    (tmp_path / "scripts").symlink_to(TOP / "scripts")
    (tmp_path / "build").mkdir()
    try:
        done = subprocess.run(["bash", "-c", script(tmp_path)], cwd=tmp_path, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=TOUR_SECONDS_MAX,
                              env=environment(WEFT_BUILD=str(BUILD), WEFT_VENV=sys.prefix))
    finally:
        Mount(None, tmp_path / "build/tour/mnt").unmount()
    print(done.stderr)
    return done.stdout.split(MARK)


def test_tour(output, tmp_path):
    assert len(commands()) > 20
    for number, (command, shown) in enumerate(commands()):
        assert (command, output[2 * number + 1]) == (command, "0")
        assert (command, printed(command, output[2 * number], tmp_path)) == (command, expected(command, shown))


def test_files_that_are_named_exist():
    """Of scripts, and of links."""
    named = re.findall(r"\bscripts/\w+", README) + re.findall(r"\]\(([^#)]+)\)", README)
    assert len(named) > 10
    assert [name for name in named if not (TOP / name).exists()] == []


def test_commands_that_are_named_exist(tmp_path):
    known = Store(tmp_path / "store").weft("--help").stdout
    named = set(re.findall(r"`weft ([a-z]+[a-z-]*)", README))
    assert len(named) > 10
    assert [name for name in sorted(named) if f"\n  {name} " not in known] == []
