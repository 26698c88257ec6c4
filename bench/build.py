"""scripts/bench build: what a cold build takes, and its most costly units and headers.

It is configured and built in a scratch directory, without ccache. A unit is one run of the compiler: a source, several sources
together (WEFT_UNITY), or a precompiled header. Its seconds are by the clock, from ninja's log, while as many compilers run at
once as --jobs says.

g++ does not tell what a header costs. So --headers builds once more with clang and -ftime-trace, not optimised, and adds up
over all units how long clang read each header: with the headers that it includes, and without them. Templates that a header
makes the compiler instantiate at the end of a unit are in neither."""

import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import tempfile
import time

import measure

TOP = pathlib.Path(__file__).resolve().parents[1]
MOST_COSTLY = 10  # units and headers listed
UNIT = re.compile(r"\.(o|gch|pch)$")
TRACED = ["-DCMAKE_CXX_COMPILER=clang++-14", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -ftime-trace"]


def took(words, source):
    """Runs a command in the source's directory: (seconds by the clock, of the processor in user mode, in kernel mode)."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([str(word) for word in words], cwd=source, check=False, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | {"CCACHE_DISABLE": "1"})
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout}\nbench: {' '.join(map(str, words))}: exit status {done.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - begin, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime


def built(build, args, *variables):
    """Configures and builds; returns (step, its seconds as took() gives them)."""
    targets = [] if args.targets == ["all"] else ["--target", *args.targets]
    return [("configure", took(["cmake", "--preset", args.preset, "-B", build, *variables], args.source)),
            ("build", took(["cmake", "--build", build, "-j", args.jobs, *targets], args.source))]


def units(build):
    """(seconds, output) of each unit in ninja's log, the most costly first."""
    found = {}
    for line in (build / ".ninja_log").read_text().splitlines():
        if not line.startswith("#"):
            begin, end, _, output, *_ = line.split("\t")
            if UNIT.search(output):
                found[output] = (int(end) - int(begin)) / 1000
    return sorted(((seconds, output) for output, seconds in found.items()), reverse=True)


def name_of(build, output):
    """Of a unit: its sources, as the folder has them."""
    folder, _, name = output.partition("CMakeFiles/")
    name = UNIT.sub("", name.partition(".dir/")[2])
    together = build / output.removesuffix(".o")
    if name.startswith("Unity/") and together.is_file():
        sources = re.findall(r'^#include "(?:.*/)?([^/"]+)"', together.read_text(), flags=re.M)
        name = "{" + ",".join(sources) + "}"
    return folder + name


def read_trace(events):
    """(header, microseconds, microseconds without the headers inside it) of each header that a unit read."""
    spans = sorted((event for event in events if event.get("name") == "Source" and event.get("ph") == "X"),
                   key=lambda event: (event["ts"], -event["dur"]))
    open_spans, own = [], [event["dur"] for event in spans]
    for number, event in enumerate(spans):
        while open_spans and spans[open_spans[-1]]["ts"] + spans[open_spans[-1]]["dur"] <= event["ts"]:
            open_spans.pop()
        if open_spans:
            own[open_spans[-1]] -= event["dur"]
        open_spans.append(number)
    return [(event["args"]["detail"], event["dur"], alone) for event, alone in zip(spans, own)]


def headers(build):
    """(seconds, without the headers inside, units, header) over all traces, the most costly first."""
    found = {}
    for path in build.glob("**/CMakeFiles/**/*.json"):
        trace = json.loads(path.read_text())
        for header, whole, alone in read_trace(trace.get("traceEvents", [])):
            row = found.setdefault(os.path.realpath(header), [0, 0, 0])
            for column, value in enumerate((whole, alone, 1)):
                row[column] += value
    return sorted(((whole / 1e6, alone / 1e6, count, header) for header, (whole, alone, count) in found.items()), reverse=True)


def print_steps(steps, args, compiler):
    print(f"{compiler}; preset {args.preset}, targets {' '.join(args.targets)}, {args.jobs} compilers at once, no ccache\n")
    print("| step | by the clock | processor, user | processor, kernel |\n|---|---|---|---|")
    for name, seconds in steps:
        print("| " + " | ".join([name, *(f"{value:.1f} s" for value in seconds)]) + " |")


def print_units(build):
    found = units(build)
    print(f"\n{len(found)} units, {sum(seconds for seconds, _ in found):.1f} s of compilers by the clock. The most costly:\n")
    print("| seconds | unit |\n|---|---|")
    for seconds, output in found[:MOST_COSTLY]:
        print(f"| {seconds:.1f} | `{name_of(build, output)}` |")


def print_headers(build, source):
    print("\n| seconds, over all units | without the headers inside | units | header |\n|---|---|---|---|")
    for whole, alone, count, header in headers(build)[:MOST_COSTLY]:
        name = os.path.relpath(header, source) if pathlib.Path(header).is_relative_to(source) else header
        print(f"| {whole:.1f} | {alone:.1f} | {count} | `{name}` |")


def compiler_of(build):
    cache = (build / "CMakeCache.txt").read_text()
    return measure.run(re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, flags=re.M)[1], "--version").splitlines()[0]


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench build", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=pathlib.Path, default=TOP, help="the checkout that is built; default this one")
    parser.add_argument("--preset", default="demo", help="of CMakePresets.json; default demo, what scripts/demo builds")
    parser.add_argument("--targets", nargs="+", default=["weft", "mount.weft"], help="default what scripts/demo builds; or all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at once; default one a core")
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"), help="where the scratch directory is made")
    parser.add_argument("--headers", action="store_true", help="builds with clang++-14 too, and prints the most costly headers")
    args = parser.parse_args()
    args.source = args.source.resolve()
    print(f"Taken on {measure.machine(args.dir)}.\n")
    with tempfile.TemporaryDirectory(prefix="weft-bench.", dir=args.dir) as directory:
        build = pathlib.Path(directory) / "build"
        steps = built(build, args)
        print_steps(steps, args, compiler_of(build))
        print_units(build)
        if args.headers:
            traced = pathlib.Path(directory) / "traced"
            print()
            steps = built(traced, args, *TRACED)
            print_steps(steps, args, compiler_of(traced) + ", not optimised")
            print_headers(traced, args.source)


if __name__ == "__main__":
    main()
