"""Runs the conformance suite's server scenarios of both eras against one replica and against two
in turn, and writes what came out: target/conformance/summary.json. Only what the suite itself
requires of a revision is scored; what must fail stands, with its reason, in expected-failures.yaml."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

SUITE, PACKAGE, TARGET = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
REVISIONS = ["2025-11-25", "2026-07-28"]
PLACES = {"one": os.environ["CAIRN_SUITE_ONE"], "two": os.environ["CAIRN_SUITE_BOTH"]}
EXPECTED = pathlib.Path(__file__).with_name("expected-failures.yaml")


def section(text, name):
    """The plain items of one list of a YAML file that holds nothing but lists of words."""
    block = re.search(rf"^{name}:\n((?:[ #].*\n|\n)*)", text, re.M)
    return re.findall(r"^\s+- ([^\s#]+)", block.group(1), re.M) if block else []


def expected(revision):
    return set(section(EXPECTED.read_text(), f'"{revision}"'))


def run(place, revision):
    """One run: what each scored scenario's checks came to, and whether it failed."""
    results = TARGET / "conformance" / place / revision
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    with open(results / "output.txt", "w") as output:
        subprocess.run(
            [SUITE, "server", "--url", f"{PLACES[place]}/mcp", "--requirements", revision, "-o", results],
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=900,
        )
    required = section((PACKAGE / "requirements" / f"{revision}.yaml").read_text(), "server")
    assert len(required) > 20, required
    found = {}
    for scenario in required:
        folders = [one for one in results.glob(f"server-{scenario}-20*") if one.is_dir()]
        assert len(folders) == 1, (scenario, folders, (results / "output.txt").read_text()[-3000:])
        checks = json.loads((folders[0] / "checks.json").read_text())
        found[scenario] = sorted((check["id"], check["status"]) for check in checks)
    return found


def main():
    runs = {place: {revision: run(place, revision) for revision in REVISIONS} for place in PLACES}
    passed, unexpected, known = [], [], []
    for place, of_revision in runs.items():
        for revision, scenarios in of_revision.items():
            may_fail = expected(revision)
            assert may_fail <= set(scenarios), may_fail - set(scenarios)
            for scenario, checks in scenarios.items():
                name = f"{place} {revision} {scenario}"
                failed = [check for check, status in checks if status == "FAILURE"]
                # A scenario without a check that succeeded has shown nothing.
                shown = any(status == "SUCCESS" for _, status in checks)
                if scenario in may_fail:
                    # One that has come to pass has no place in that list.
                    (known if failed or not shown else unexpected).append(name)
                elif failed or not shown:
                    unexpected.append(f"{name}: {', '.join(failed) or 'nothing was shown'}")
                else:
                    passed.append(name)
    equal = runs["one"] == runs["two"]
    summary = {
        "passed": len(passed),
        "unexpected_failures": len(unexpected),
        "expected_failures": len(known),
        "replica_runs_equal": equal,
        "unexpected": unexpected,
        "expected": known,
    }
    (TARGET / "conformance" / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    print(json.dumps(summary, indent=2))
    if not equal:
        for revision in REVISIONS:
            for scenario, checks in runs["one"][revision].items():
                other = runs["two"][revision][scenario]
                if checks != other:
                    print(f"differs: {revision} {scenario}\n  one {checks}\n  two {other}")
    sys.exit(0 if not unexpected and equal else 1)


main()
