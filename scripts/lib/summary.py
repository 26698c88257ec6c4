"""Adds up the JUnit files of a folder, names the tests that passed only in a second run, and prints 'N passed, N failed'."""
import pathlib
import sys
import xml.etree.ElementTree as xml

EXPECTED = ("ctest.xml", "pytest.xml")
AGAIN = "ctest-again.xml"  # the tests that failed in ctest.xml, if any did; pytest runs a test again by itself


class Case:
    """One test of a JUnit file."""

    def __init__(self, element):
        self.name = "::".join(dict.fromkeys((element.get("classname", ""), element.get("name"))))  # ctest's are equal
        self.failed = any(element.find(kind) is not None for kind in ("failure", "error"))
        self.skipped = element.find("skipped") is not None
        # Of each run that failed.
        self.failures = [one.get("value") for one in element.iter("property") if one.get("name") == "failure"]


def cases_of(path):
    return {case.name: case for case in map(Case, xml.parse(path).iter("testcase"))}


def read(folder):
    """Every test in its last run, and how many files there was trouble with."""
    cases, broken = [], 0
    for name in EXPECTED:
        try:
            found = cases_of(folder / name)
        except (OSError, xml.ParseError) as error:
            print(f"summary: {name}: {error}")
            broken += 1
            continue
        if not found:
            print(f"summary: {name}: no test was run")
            broken += 1
        cases += found.values()
    again = cases_of(folder / AGAIN) if (folder / AGAIN).exists() else {}
    for case in cases:
        if case.failed and case.name in again:
            case.failed = again[case.name].failed
            case.failures = ["see ctest's output above"]
    return cases, broken


def main(folder, runners_broken):
    cases, broken = read(pathlib.Path(folder))
    defects = [case for case in cases if case.failures and not case.failed]
    for case in defects:
        print(f"DEFECT: {case.name} passed only in its second run; the first: {case.failures[0]}")
    skipped = sum(case.skipped for case in cases)
    # A runner may fail without a failed case: one that it could not start.
    failed = max(broken + sum(case.failed for case in cases), runners_broken)
    passed = len(cases) - skipped - sum(case.failed for case in cases)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")
          + (f", {len(defects)} passed only in a second run" if defects else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
