"""scripts/bench plot: the headline figures of bench/RESULTS.md as one picture, bench/headline.svg.

Every number and every word of the picture comes from the first table of that file. The same version of matplotlib draws the
same bytes again."""

import argparse
import dataclasses
import pathlib
import re

BENCH = pathlib.Path(__file__).resolve().parent
HEAD = "| measure | weft | best peer | ratio | command | section |"
LOW, HIGH = 0.5, 16  # ends of the axis; a longer bar ends there, and its label has the number
FASTER, SLOWER = "#2f6f9f", "#c46a2b"


@dataclasses.dataclass(frozen=True)
class Headline:
    measure: str
    weft: str      # with its unit, as are all times here
    time: str      # the peer's
    peer: str
    ratio: str     # the peer's time ÷ weft's
    command: str
    section: str   # as `read`, for "## scripts/bench read"

    @property
    def factor(self):
        return float(self.ratio.replace(",", ""))

    @property
    def label(self):
        return f"{self.ratio}   weft {self.weft}, {self.peer} {self.time}"


def headlines(text):
    """The rows of the first table of RESULTS.md."""
    before, found, rest = text.partition(HEAD + "\n")
    if not found or "\n|" in before:
        raise SystemExit(f"bench: RESULTS.md: expected the first table to have the head {HEAD}")
    rows = []
    for line in rest.splitlines()[1:]:
        if not line.startswith("|"):
            break
        measure, weft, peer, ratio, command, section = (cell.strip() for cell in line.strip("|").split("|"))
        time, _, name = peer.partition(", ")
        rows.append(Headline(measure, weft, time, name, ratio, command.strip("`"), re.match(r"\[(\w+)\]", section)[1]))
    return rows


def draw(rows, out):
    import matplotlib  # pylint: disable=import-outside-toplevel

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "weft", "svg.fonttype": "none", "font.family": "DejaVu Sans", "font.size": 9})
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel

    figure, axes = pyplot.subplots(figsize=(11, 0.6 + 0.27 * len(rows)))
    places = range(len(rows))
    ends = [min(max(row.factor, LOW), HIGH) for row in rows]
    colors = [FASTER if row.factor >= 1 else SLOWER for row in rows]
    axes.barh(places, [end - 1 for end in ends], left=1, height=0.7, color=colors)
    for place, end, row in zip(places, ends, rows):
        axes.text(max(end, 1) * 1.04, place, row.label, va="center", fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_xlim(LOW, HIGH * 20)  # room for the labels
    ticks = [2.0**power for power in range(-1, 5)]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks(places, [row.measure for row in rows])
    axes.invert_yaxis()
    axes.set_title(f"The best peer's time ÷ weft's: right of 1, weft is faster. Bars end at {HIGH}.", fontsize=10)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.tight_layout()
    figure.savefig(out, format="svg", metadata={"Date": None}, facecolor="white")
    pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench plot", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, default=BENCH / "RESULTS.md")
    parser.add_argument("--out", type=pathlib.Path, default=BENCH / "headline.svg")
    args = parser.parse_args()
    draw(headlines(args.results.read_text(encoding="utf-8")), args.out)
    print(args.out)


if __name__ == "__main__":
    main()
