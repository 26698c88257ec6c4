"""The last lines of scripts/test count every test in its last run, and name those that passed only in a second one."""
import sys

from weftlib import TOP, run

GOOD = '<testcase classname="{0}" name="{0}"/>'
BAD = '<testcase classname="{0}" name="{0}"><failure/></testcase>'


def said(directory, broken=0, **files):
    """What the summary prints of these JUnit files, and its exit code."""
    for name, cases in files.items():
        text = "<testsuite>" + "".join(cases) + "</testsuite>"
        (directory / f"{name.replace('_', '-')}.xml").write_text(text)
    done = run([sys.executable, TOP / "scripts/lib/summary.py", directory, broken], check=False)
    return done.stdout.splitlines(), done.returncode


def test_all_files_are_added_up(tmp_path):
    skipped = '<testcase classname="m" name="c"><skipped/></testcase>'
    lines, code = said(tmp_path, ctest=[GOOD.format("a")], pytest=[GOOD.format("b"), skipped])
    assert (lines, code) == (["2 passed, 0 failed, 1 skipped"], 0)


def test_a_failure_is_one(tmp_path):
    lines, code = said(tmp_path, broken=1, ctest=[GOOD.format("a")], pytest=[BAD.format("b")])
    assert (lines, code) == (["1 passed, 1 failed"], 1)


def test_a_runner_that_broke_is_a_failure(tmp_path):
    lines, code = said(tmp_path, broken=1, ctest=[GOOD.format("a")], pytest=[GOOD.format("b")])
    assert (lines, code) == (["2 passed, 1 failed"], 1)


def test_a_file_that_is_missing_or_empty_is_a_failure(tmp_path):
    lines, code = said(tmp_path, ctest=[GOOD.format("a")])
    assert lines[0].startswith("summary: pytest.xml: ") and lines[-1] == "1 passed, 1 failed" and code == 1
    lines, code = said(tmp_path, pytest=[])
    assert lines == ["summary: pytest.xml: no test was run", "1 passed, 1 failed"] and code == 1


def test_a_second_run_that_passed_is_a_defect(tmp_path):
    again = ('<testcase classname="m" name="b"><properties><property name="failure" value="call: late"/></properties>'
             '</testcase>')
    lines, code = said(tmp_path, ctest=[BAD.format("unit"), GOOD.format("a")], ctest_again=[GOOD.format("unit")],
                       pytest=[again])
    assert lines == ["DEFECT: unit passed only in its second run; the first: see ctest's output above",
                     "DEFECT: m::b passed only in its second run; the first: call: late",
                     "3 passed, 0 failed, 2 passed only in a second run"]
    assert code == 0


def test_a_second_run_that_failed_is_a_failure(tmp_path):
    lines, code = said(tmp_path, broken=1, ctest=[BAD.format("unit")], ctest_again=[BAD.format("unit")],
                       pytest=[GOOD.format("b")])
    assert (lines, code) == (["1 passed, 1 failed"], 1)
