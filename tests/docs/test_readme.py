"""The commands of README.md print what README.md shows.

One shell runs the commands of "Five minutes" in their order, in a folder whose scripts/ is this one's. sessions.py says
how outputs are compared. These rules are added:
- After `python`, doctest runs the lines that begin with `>>>`. It prints nothing if they print what is shown.
- The path of the source folder is /home/me/weft in the README.
- What `scripts/demo --prepare` and `pip` install and print depends on the machine. Here scripts/demo uses the programs
  and the Python of the tests, and pip does not run.
"""
import re
import sys

import pytest
from sessions import commands, outputs, words

from weftlib import BUILD, TOP, Mount, Store

README = (TOP / "README.md").read_text()


def section(heading):
    return re.search(rf"^## {heading}\n(.*?)(?=^## )", README, flags=re.M | re.S)[1]


TOUR = commands(re.findall(r"^    (.*)$", section("Five minutes"), flags=re.M))


def command_here(area, number):
    """What runs in the place of a command."""
    command, shown = TOUR[number]
    if command == "python":
        session = area / f"session{number}.txt"
        session.write_text("\n".join(shown) + "\n")
        return f"python -m doctest '{session}'"
    return ":" if command.startswith("pip ") else command


@pytest.fixture
def printed(tmp_path):
    (tmp_path / "scripts").symlink_to(TOP / "scripts")
    (tmp_path / "build").mkdir()
    try:
        yield outputs([command_here(tmp_path, number) for number in range(len(TOUR))], tmp_path, WEFT_BUILD=str(BUILD),
                      WEFT_VENV=sys.prefix)
    finally:
        Mount(None, tmp_path / "build/tour/mnt").unmount()


def test_five_minutes(printed, tmp_path):
    assert len(TOUR) > 20 and len(printed) == len(TOUR)
    for (command, shown), (code, output) in zip(TOUR, printed):
        assert (command, code) == (command, 0)
        if not command.startswith("scripts/demo "):
            expected = [] if command == "python" else words("\n".join(shown))
            assert (command, words(output.replace(str(tmp_path), "/home/me/weft"))) == (command, expected)


def test_the_first_screen_shows_what_the_tour_shows():
    """Its commands print what the same commands of "Five minutes" print, which a test runs."""
    shown = commands(re.findall(r"^    (.*)$", section("Publish and mount"), flags=re.M))
    assert len(shown) > 3
    assert [session for session in shown if session not in TOUR] == []


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
