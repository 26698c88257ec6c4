"""The completions, asked by the shells that they are for."""
import os
import pty
import select
import shutil
import time

import pytest

from weftlib import TOP, Mount, environment, random_tensors, run, store_with

SCRIPTS = TOP / "scripts/completions"
ANSWER_SECONDS_MAX = 30

# A line -> one answer that it has and one that it has not. STORE stands for a store with other@1 and org/small@1,
# and gone@1, which is removed. MOUNT is where a mount of the store is. AREA, its directory, has another one, AREA/model.
LINES = {
    "command": ("weft stat", "status", "tag"),
    "option": ("weft tag --d", "--delete", "--all"),
    "model": ("weft --store STORE info oth", "other", "org/small"),
    "model, store after the command": ("weft info --store STORE oth", "other", "org/small"),
    "model, store in one word": ("weft info --store=STORE oth", "other", "org/small"),
    "value of an option": ("weft import . --store STORE --parent org/s", "org/small", "other"),
    "tag after @": ("weft info --store STORE org/small@st", "org/small@stable", "org/small@1"),
    "number after @": ("weft info --store STORE other@1", "other@1", "other@latest"),
    "durability": ("weft import . --durability or", "origin", "local"),
    "choice": ("weft info . --graph js", "json", "dot"),
    "removed version": ("weft undelete --store STORE gone", "gone@1", "other@1"),
    "mount": ("weft umount AREA/mo", "MOUNT", "AREA/model"),
    "shell": ("weft completion fi", "fish", "zsh"),
}
lines = pytest.mark.parametrize("line, answer, other", LINES.values(), ids=LINES.keys())


@pytest.fixture(name="fill", scope="module")
def fixture_fill(tmp_path_factory):
    """Puts the paths of a store into a text."""
    area = tmp_path_factory.mktemp("completions")
    store = store_with(area, random_tensors(1, 4096, seed="completion"), name="org/small", tag="stable")
    store.publish(area / "model", name="other")
    store.publish(area / "model", name="gone")
    store.weft("rm", "gone@1")
    with Mount(store, area / "mounted") as mount:
        yield lambda text: text.replace("STORE", str(store.path)).replace("MOUNT", str(mount.path)).replace("AREA", str(area))


def needs(shell):
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"no {shell} here")


def ask_bash(line):
    script = ('source "$1"; COMP_WORDBREAKS=${COMP_WORDBREAKS//@/}; COMP_LINE=$2; COMP_POINT=${#COMP_LINE}; _weft; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    return run(["bash", "-c", script, "bash", SCRIPTS / "weft.bash", line]).stdout.split()


def ask_fish(line):
    done = run(["fish", "--no-config", "-c", 'source $argv[1]; complete -C $argv[2]', SCRIPTS / "weft.fish", line])
    return [answer.split("\t")[0] for answer in done.stdout.splitlines()]


class Terminal:
    """An interactive shell on a terminal of its own."""

    def __init__(self, *command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, environment(TERM="dumb", COLUMNS="400"))

    def type(self, text, until):
        """Types, and reads until a text comes."""
        os.write(self.fd, text.encode())
        shown, deadline = "", time.monotonic() + ANSWER_SECONDS_MAX
        while until not in shown:
            ready, _, _ = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{text!r}: {shown!r}, and no {until!r}"
            shown += os.read(self.fd, 4096).decode(errors="replace")
        return shown

    def close(self):
        os.close(self.fd)  # the shell is hung up
        os.waitpid(self.pid, 0)


@pytest.fixture(scope="module")
def zsh():
    terminal = Terminal("zsh", "-f", "-i")
    try:
        terminal.type(f"PS1=; autoload -Uz compinit && compinit -u -D; source {SCRIPTS}/weft.zsh; "
                      "bindkey '^X' kill-whole-line; print ready''now\n", until="readynow")
        yield terminal
    finally:
        terminal.close()


@lines
def test_bash(fill, line, answer, other):
    answers = ask_bash(fill(line))
    assert fill(answer) in answers and fill(other) not in answers


@needs("fish")
@lines
def test_fish(fill, line, answer, other):
    answers = ask_fish(fill(line))
    assert fill(answer) in answers and fill(other) not in answers


@needs("zsh")
@lines
def test_zsh(fill, zsh, line, answer, other):
    """It has one answer, and the tab key puts it into the line."""
    line = fill(line)
    zsh.type(line + "\t", until=line[:line.rindex(" ")] + " " + fill(answer))
    zsh.type("\x18: em''pty\n", until="em''pty")
