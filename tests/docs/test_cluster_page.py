"""The commands of weft-cluster(7), in their order, on machines with a real etcd. They print what the page shows."""
import contextlib
import os
import re
import sys

import pytest
from machines import Machine
from sessions import words
from test_man_pages import commands, help_of, options_defined, rendered

from weftlib import PATIENCE, TOP, random_tensors, wait_until, write_model

sys.path.insert(0, str(TOP / "tests/cluster"))
from clusterlib import Network, can_make_networks  # noqa: E402

PROMPT = re.compile(r"(?:(\w+)@)?(node\d)[#$] (.*)")
SETTING = re.compile(r"\[\w+\]$|\w+ = ")
# Commands that change nothing are repeated until they print what the page shows: nodes hear of a change a little later.
READS = re.compile(r"(weft (ls|status|health|node list)\b|ls |curl |grep |etcdctl (endpoint|alarm list))")
SECONDS_MAX = 60 * PATIENCE
SHOWN, THERE = "10.0.0.", "10.77.0."  # addresses in the page and in the network of the tests
VARIES = {
    r"weft1\.\S+": "TOKEN",
    r"[+-]?\d+\.\d+ (ms|s)\b": "TIME",
    r"\b\d+(\.\d+)? ([KMGT]i)?B\b": "SIZE",
    r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b": "ID",
    r"\b[0-9a-f]{16}\b": "KEY",
    r"lost history \(.*?\), so": "lost history (...), so",
}


def displays():
    """The displays of the page and what else is indented as they are, each a list of lines without the indent."""
    blocks = re.findall(r"(?:^ {10,}\S.*\n)+", rendered("weft-cluster.7"), flags=re.M)
    return [[line.strip() for line in block.splitlines()] for block in blocks]


def steps():
    """What the page does: (user, machine, command, lines that it prints), or the lines of settings of a display."""
    found = []
    for display in displays():
        if SETTING.match(display[0]):
            found.append(display)
        if not PROMPT.match(display[0]):
            continue
        continued = False
        for line in display:
            prompt = PROMPT.match(line)
            if continued:
                found[-1][2] += " " + line.removesuffix("\\")
            elif prompt:
                found.append([prompt[1] or "root", prompt[2], prompt[3].removesuffix("\\"), []])
            else:
                found[-1][3].append(line)
            continued = (continued or bool(prompt)) and line.endswith("\\")
    return found


def masked(lines):
    """The words of each line without those that vary. Nodes are listed in the order of their ids, so the order is free."""
    for pattern, instead in VARIES.items():
        lines = [re.sub(pattern, instead, line) for line in lines]
    return sorted(" ".join(words(line)) for line in lines if line.strip())


class Site:
    """The machines of the page."""

    def __init__(self, stack, area):
        self.token, self.exports = "", {}
        network = stack.enter_context(Network())
        (area / "lustre").mkdir()
        self.machines = {name: stack.enter_context(Machine(network.host(), name, area, area / "lustre"))
                         for name in ("node1", "node2", "node3", "node4", "node5")}
        for name in ("node1", "node2"):
            for model in ("minilm", "tuned"):
                write_model(self.machines[name].file(f"/mnt/{model}"), random_tensors(4, 1 << 20, seed=model))

    def set(self, lines):
        """Adds settings on each node: a table at the end of the file, others before the first table."""
        for name in ("node1", "node2", "node3"):
            path = self.machines[name].file("/etc/weft/weft.conf")
            text, added = path.read_text(), "".join(f"{line}\n" for line in lines)
            path.write_text(f"{text}\n{added}" if lines[0].startswith("[") else added + text)

    def run(self, user, name, command):
        """(exit code, lines that it printed)"""
        if command.startswith("export "):
            self.exports.setdefault(name, []).append(command.replace(SHOWN, THERE))
            return 0, []
        given = re.sub(r"weft1\.\S+", self.token, command).replace(SHOWN, THERE)
        code, printed = self.machines[name].run("\n".join([*self.exports.get(name, []), given]), user)
        made = re.search(r"weft1\.\S+", printed)
        self.token = made[0] if made else self.token
        return code, printed.replace(THERE, SHOWN).splitlines()


# What happens before a command of the page that the page tells of in words.
BEFORE = {
    ("node1", "weft health", 2): lambda site: site.machines["node2"].turn_off(),
    ("node1", "tar -C / -xf /mnt/lustre/backup/node1.tar", 1): lambda site: site.machines["node1"].replace(),
    ("node4", "weft cluster init --origin /mnt/lustre/weft", 1): lambda site: site.machines["node1"].turn_off(),
}


def follow(site, user, name, command, shown):
    """Runs a command of the page, and compares what it prints."""
    done = []

    def matches():
        done[:] = site.run(user, name, command)
        code, printed = done
        verdict = next((line.split()[1].rstrip(":") for line in shown if line.startswith("health ")), "well")
        expected = {"well": 0, "warning": 1, "trouble": 2}[verdict] if command == "weft health" else code_of(command, shown)
        return code == expected and (not shown or masked(printed) == masked(shown))

    try:
        if READS.match(command):
            wait_until(matches, seconds_max=SECONDS_MAX)
        else:
            assert matches()
    except AssertionError as error:
        log = site.machines[name].run("tail -n 20 /var/lib/units/weftd.service.log")[1]
        raise AssertionError(f"{name}: {command}\nprinted {done}\nfor {shown}\n{log}") from error


def code_of(command, shown):
    return 1 if "grep -c" in command and shown == ["0"] else 0


@pytest.mark.skipif(not can_make_networks() or os.geteuid() != 0, reason="needs root, network name spaces and etcd")
def test_the_page_is_followed(tmp_path):
    seen = {}
    with contextlib.ExitStack() as stack:
        site = Site(stack, tmp_path)
        for step in steps():
            if not isinstance(step[-1], list):
                site.set(step)
                continue
            user, name, command, shown = step
            seen[name, command] = seen.get((name, command), 0) + 1
            BEFORE.get((name, command, seen[name, command]), lambda site: None)(site)
            follow(site, user, name, command, shown)
    assert len(seen) > 50 and all(key[:2] in seen for key in BEFORE)


def test_commands_in_sentences():
    """Each command and each of its options exists."""
    source = (TOP / "man/weft-cluster.7").read_text(encoding="utf-8")
    known = commands()
    quoted = re.findall(r"^\.Ql weft (.*?)[ .,]*$", source, flags=re.M)
    assert len(quoted) > 5
    for text in quoted:
        name = next(one for one in sorted(known, key=len, reverse=True) if f"{text} ".startswith(f"{one} "))
        options = {word for word in text.split() if word.startswith("-")}
        assert options <= options_defined(help_of(name).split("Options:\n")[-1]), text
