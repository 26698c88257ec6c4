"""What a campaign found so far: one line of JSON for each state, in a directory that a later run goes on with."""
import collections
import dataclasses
import json
import pathlib
import re

KINDS = ("lost", "wrong", "untrue", "stuck")
# How many states the project wants to have seen, over all runs: of crash on each file system.
GOALS = {"crash": 300, "kill": 2000, "fail": 2000, "damage": 1000}
HEAD = "## scripts/campaign"
FINDINGS_MAX = 30  # in the report; the most frequent ones


@dataclasses.dataclass
class Outcome:
    """One state, and how it came about, in words. `problems` is empty if all was well."""
    state: str
    problems: list
    how: str = ""


class Totals:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.path = self.directory / "states.jsonl"
        self.rows = []
        if self.path.exists():
            self.rows = [json.loads(line) for line in self.path.read_text().splitlines() if line.endswith("}")]

    def add(self, campaign, kind, seed, outcome):
        row = {"campaign": campaign, "fs": kind, "seed": seed, "state": outcome.state}
        if outcome.problems:
            row["how"] = outcome.how
            row["problems"] = [[problem.kind, problem.text] for problem in outcome.problems]
        self.append(row)

    def finish_seed(self, campaign, kind, seed):
        self.append({"campaign": campaign, "fs": kind, "seed": seed, "finished": True})

    def append(self, row):
        self.rows.append(row)
        with open(self.path, "a") as file:
            file.write(json.dumps(row) + "\n")

    def seeds(self, campaign, kind):
        """(seeds that were begun, those that were finished)."""
        rows = [row for row in self.rows if (row["campaign"], row["fs"]) == (campaign, kind)]
        return {row["seed"] for row in rows}, {row["seed"] for row in rows if row.get("finished")}

    def done(self, campaign, kind, seed):
        return {row["state"] for row in self.rows
                if (row["campaign"], row["fs"], row["seed"]) == (campaign, kind, seed) and "state" in row}

    def counts(self):
        """(campaign, file system) -> Counter of states, and of states with a problem of each kind."""
        found = collections.defaultdict(collections.Counter)
        for row in self.rows:
            if "state" in row:
                counter = found[row["campaign"], row["fs"]]
                counter["states"] += 1
                counter.update({kind for kind, _ in row.get("problems", [])})
        return found

    def findings(self):
        """Findings that differ in numbers and names alone are one: its text -> (how often, the first row)."""
        found = {}
        for row in self.rows:
            for kind, text in row.get("problems", [])[:1]:
                key = f"{row['campaign']}: {kind}: {general(text)}"
                count, first = found.get(key, (0, row))
                found[key] = (count + 1, first)
        return dict(sorted(found.items(), key=lambda item: -item[1][0]))


def general(text):
    """The text of a finding without what differs from run to run, and without all that fsck said in place of a name."""
    text = re.sub(r"(fsck does not name [^:]*).*", r"\1", text)
    text = re.sub(r"\S+/(?=\S)", "", text)
    text = re.sub(r"\b[abc]@\d+", "MODEL", text)
    text = re.sub(r"\b[0-9a-f]{12,}\b", "#", text)
    return re.sub(r"\d+", "#", text)


def replay_command(row):
    return f"scripts/campaign {row['campaign']} --fs {row['fs']} --seed {row['seed']} --state {row['state']}"


def table(totals):
    lines = ["| campaign | file system | states | goal | met | lost | wrong | fsck untrue | stuck |",
             "|---|---|---|---|---|---|---|---|---|"]
    counts = totals.counts()
    for (campaign, kind), counter in sorted(counts.items()):
        # The goal of crash is for each file system; the others count on all together.
        fellows = [key for key in counts if key[0] == campaign and (campaign != "crash" or key[1] == kind)]
        reached = sum(counts[key]["states"] for key in fellows)
        sound = all(counter[word] == 0 for word in ("lost", "wrong"))
        met = "yes" if reached >= GOALS[campaign] and sound else "NO"
        figures = " | ".join(f"{counter[word]:,}" for word in KINDS)
        goal = f"≥ {GOALS[campaign]:,}, 0 lost, 0 wrong"
        lines.append(f"| {campaign} | {kind} | {counter['states']:,} | {goal} | {met} | {figures} |")
    return "\n".join(lines)


def section(totals, commit=None):
    """The section of RESULTS.md."""
    code = f"All states are of the code of commit {commit}." if commit else "The commit of the code was not given."
    text = f"""{HEAD}

What a store of a few MiB was put through, over all runs: crash states of a recorded disk, commands killed before a system
call, system calls that failed, and damaged files. Lost: acknowledged, and not there. Wrong: shown and never acknowledged, or
other bytes. Untrue: fsck said something else than was so. Stuck: a command ended by a signal, did not end, or refused what it
must do. The goal of crash is for each file system, the others are for both together. {code}

    scripts/campaign all --minutes N; scripts/campaign report --commit COMMIT

{table(totals)}
"""
    findings = totals.findings()
    if findings:
        text += "\nFindings, with how often and the first one's replay:\n\n"
        text += "".join(f"- {count} × {key} ({row['how']}): `{replay_command(row)}`\n"
                        for key, (count, row) in list(findings.items())[:FINDINGS_MAX])
    return text


def put_section(path, text):
    """Replaces the section in a file, or appends it."""
    old = path.read_text()
    begin = old.find(HEAD + "\n")
    if begin < 0:
        path.write_text(old.rstrip("\n") + "\n\n" + text)
        return
    end = old.find("\n## ", begin + 1)
    path.write_text(old[:begin] + text + ("" if end < 0 else old[end:]))
