"""Each option of the programs is in its man page, and no page speaks of one that is not there."""
import re

import pytest

from daemonlib import WEFTD
from weftlib import MOUNT_WEFT, TOP, WEFT, run

MAN = TOP / "man"
PAGES = ["weft.1", "mount.weft.8", "weftd.8", "weft.conf.5", "weft-store.5", "weft.7", "weft-find.7",
         "weft-registry.7", "weft-cluster.7"]
GROUPS = ["bundle", "cluster", "node"]
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]+|-[a-zA-Z])(?![\w-])")


def rendered(page):
    """The page as a terminal shows it, without its bold and underline."""
    return re.sub(".\b", "", run(["mandoc", "-T", "utf8", "-O", "width=160", MAN / page]).stdout)


def sections(page):
    """Heading -> text; subsections by their own heading."""
    found, heading = {}, ""
    for line in rendered(page).splitlines():
        if re.match(r" {0,4}\S", line):
            heading = line.strip()
            found[heading] = ""
        else:
            found[heading] = found.get(heading, "") + line + "\n"
    return found


def options_defined(text):
    """Options at the start of a paragraph's line: `-o, --options OPTIONS   what it does`."""
    defined = set()
    for line in text.splitlines():
        match = re.match(r"\s+(-\w|--[a-z][\w-]*)\b", line)
        if match:
            # What follows two spaces is the description, which may name other options.
            defined |= set(OPTION.findall(re.split(r" {2,}", line.strip())[0]))
    return defined


def help_of(*command):
    done = run([WEFT, *" ".join(command).split(), "--help"])
    assert done.stderr == ""
    return done.stdout


def commands(group=""):
    """The names in the table of `weft --help`, and "GROUP NAME" of those in the tables of its groups."""
    parts = re.split(r"^Commands:\n", help_of(group), flags=re.M)
    if len(parts) == 1:
        return [group]
    names = re.findall(r"^  ([a-z-]+) ", parts[1].split("\n\n")[0], flags=re.M)
    return [found for name in names for found in commands(f"{group} {name}".strip())]


@pytest.mark.parametrize("page", PAGES)
def test_lint(page):
    assert run(["mandoc", "-T", "lint", "-W", "warning", MAN / page], check=False).stdout == ""


def test_help_names_the_commands_of_the_contract():
    assert {"import", "ls", "info", "log", "tag", "rm", "gc", "export", "du", "fsck", "mount", "umount", "status",
            "init"} <= set(commands())


def test_every_command_has_its_section():
    headings = set(sections("weft.1"))
    missing = [command for command in commands() if not any(re.fullmatch(rf"(weft )?{command}\b.*", heading)
                                                            for heading in headings)]
    assert missing == []


def section_of(command):
    return next(text for heading, text in sections("weft.1").items()
                if re.fullmatch(rf"(weft )?{command}\b.*", heading))


def test_options_of_every_command():
    """A command's section and the common OPTIONS together say what --help says, nothing less, nothing more."""
    common = options_defined(sections("weft.1")["OPTIONS"])
    problems = []
    for command in commands():
        helped = options_defined(help_of(command).split("Options:\n")[-1])
        described = options_defined(section_of(command))
        assert helped, command
        problems += [f"{command}: {option} is in --help alone" for option in sorted(helped - described - common)]
        problems += [f"{command}: {option} is in weft.1 alone" for option in sorted(described - helped)]
    assert problems == []


def test_common_options():
    common = options_defined(sections("weft.1")["OPTIONS"])
    program = options_defined(help_of().split("Options:\n")[-1])
    assert program <= common
    assert common <= program.union(*(options_defined(help_of(command)) for command in commands()))


def words_of(text):
    return set(re.findall(r"[\w-]+", text))


def in_braces(text):
    """The parts of the text inside of braces, without those in parentheses."""
    depth, inside = 0, []
    for part in re.split(r"([{}])", re.sub(r"\([^()]*\)", "", text)):
        depth += {"{": 1, "}": -1}.get(part, 0)
        inside += [part] * (depth > 0)
    assert depth == 0, text
    return " ".join(inside)


def test_json_of_every_command():
    """The keys that --help names are in the command's section."""
    problems = []
    for command in commands():
        _, json, keys = help_of(command).partition("\nJSON:\n")
        problems += [f"{command}: {key} is in --help alone"
                     for key in sorted(words_of(in_braces(keys)) - words_of(section_of(command)))]
        assert bool(json) == ("JSON: " in section_of(command)), command
    assert problems == []


def test_examples_are_understood():
    """No command or option of an example is unknown."""
    lines = re.findall(r"(?<![/\w])weft ([a-z]+ ?[^|)\n]*)", sections("weft.1")["EXAMPLES"])
    assert len(lines) > 10
    for line in lines:
        command, *words = line.split(" -- ")[0].split()
        if command in GROUPS:
            command = f"{command} {words.pop(0)}"
        known = options_defined(help_of(command).split("Options:\n")[-1])
        assert {word.split("=")[0] for word in words if word.startswith("-")} <= known, line


def test_mount_weft():
    """Both the flags and the words after -o."""
    helped = run([MOUNT_WEFT, "--help"]).stdout
    page = rendered("mount.weft.8")
    lines = helped.split("Mount options:\n")[1].split("\n\n")[0].splitlines()
    words = {word.split("=")[0] for line in lines for word in re.split(r" {2,}", line.strip())[0].split(", ")}
    assert {"allow_other", "uid", "gid", "umask", "cold", "xattr", "log"} <= words
    assert [word for word in sorted(words) if not re.search(rf"^ +(.*, )?{word}\b", page, flags=re.M)] == []
    assert options_defined(helped) == options_defined(page)


def test_weftd():
    """Options, and the settings that each of them is."""
    helped = options_defined(run([WEFTD, "--help"]).stdout)
    assert helped == options_defined(rendered("weftd.8"))
    settings = helped - {"-c", "--config", "--check", "-h", "--help", "-V", "--version"}
    keys = {re.sub("^--(etcd|hub|join|control|rate)-", r"--\1.", option) for option in settings}
    described = words_of_keys(rendered("weft.conf.5"))
    assert {key[2:].replace("-", "_") for key in keys} == described


def words_of_keys(text):
    """The keys at the start of paragraphs."""
    lines = [line for line in text.splitlines() if re.match(r" {5}[a-z_.]+(, [a-z_.]+)*( {2,}|$)", line)]
    return {key for line in lines for key in re.split(r" {2,}", line.strip())[0].split(", ")}


@pytest.mark.parametrize("page", PAGES)
def test_pages_that_are_named_exist(page):
    """References to our own pages lead somewhere."""
    named = set(re.findall(r"\b((?:mount\.)?weft(?:-store|-find|-registry|-cluster)?|weftd|weft\.conf)\((\d)\)", rendered(page)))
    assert [f"{name}.{section}" for name, section in sorted(named) if not (MAN / f"{name}.{section}").exists()] == []
