"""Attack the suite, print what came of it, and exit with 1 when anything went wrong."""

from __future__ import annotations

import argparse
import sys
import time

import pytest

from clustergate.core.paths import checkout
from tools.attack.entries import listed
from tools.attack.mutations import ATTACKS
from tools.attack.records import damaged, told_lies
from tools.attack.tally import Tally, attacked, table

TESTS = checkout() / "tests"
# Programs of the stacks replaced by scripts, kills, full disks, clocks; pipelines; a gate's Slurm;
# a node's hooks.
REAL = tuple(
    TESTS / f"test_{name}.py"
    for name in (
        "silent_passes",
        "attack_real",
        "attack_pipelines",
        "attack_gate",
        "attack_home",
        "attack_node",
    )
)


LONGEST = 400


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__)
    parser.add_argument(
        "--tries", type=int, default=20, help="texts per attack and captured output"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the chance taken")
    parser.add_argument(
        "--texts", action="store_true", help="attack with texts alone, launch nothing"
    )
    parser.add_argument(
        "--only", metavar="WORD", default="", help="of those with real programs; as pytest's -k"
    )
    parser.add_argument("--list", action="store_true", help="say what provokes each known way")
    arguments = parser.parse_args()
    if arguments.list:
        print(listed())
        return 0
    print(f"seed {arguments.seed}, {arguments.tries} tries", flush=True)
    tallies = [attacked(attack, arguments.tries, arguments.seed) for attack in ATTACKS]
    tallies += [told_lies(), damaged(20 * arguments.tries, arguments.seed)]
    if not arguments.texts:
        real = Real()
        options = ["-q", "-p", "no:cacheprovider", "-k", arguments.only]
        pytest.main([*options, *map(str, REAL)], plugins=[real])
        tallies += real.tallies.values()
    print(table(tallies))
    for tally in tallies:
        for word, told in (("ACCEPTED", tally.wrong), ("REFUSED", tally.denied)):
            for sentence in told:
                print(f"WRONGLY {word}, {tally.name}: {sentence[:LONGEST]}")
    return 1 if any(tally.wrong or tally.denied for tally in tallies) else 0


class Real:
    """A plugin of pytest that counts attacks with real programs, by test function.

    A test that fails saw a wrong verdict, or one without its reason.
    """

    def __init__(self) -> None:
        self.tallies: dict[str, Tally] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one test."""
        if not (report.when == "call" or report.failed):
            return
        function = report.nodeid.partition("::")[2].partition("[")[0].removeprefix("test_")
        tally = self.tallies.setdefault(function, Tally(function.replace("_", " ")))
        tally.tried += 1
        if report.passed:
            tally.refused += 1
        elif report.failed:
            tally.wrong.append(report.nodeid)


if __name__ == "__main__":
    sys.exit(main())
