"""Runs the commands that a text shows, in one shell, and compares what they print with what the text shows.

These parts of an output vary:
- Dates, times, and the names of snapshots in hub/: any will do.
- Columns, whose width depends on the terminal: the output is compared by its words.
"""
import re
import subprocess

from weftlib import PATIENCE, environment

SECONDS_MAX = 300 * PATIENCE
TIME = re.compile(r"\d{4}-\d\d-\d\d(T[\d:]+Z)?|\d\d:\d\d")
SNAPSHOT = re.compile(r"\b[0-9a-f]{40}\b")
MARK = "\x1e"


def commands(lines):
    """(command, lines that it prints) of a text's lines. A command follows "$ "."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def words(text):
    return SNAPSHOT.sub("SNAPSHOT", TIME.sub("TIME", text)).split()


def outputs(shown, directory, **env):
    """(exit code, output) of each command. One shell runs them in their order, from this directory."""
    script = "\n".join(f"{{ {command}\n}}; printf '{MARK}%d{MARK}' $?" for command in shown)
    done = subprocess.run(["bash", "-c", script], cwd=directory, stdin=subprocess.DEVNULL, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS_MAX, env=environment(**env))
    print(done.stderr)
    pieces = done.stdout.split(MARK)
    return list(zip(map(int, pieces[1::2]), pieces[0::2], strict=False))
