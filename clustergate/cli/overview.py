"""What the commands are for, with examples, told without loading any: each takes a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clustergate.core.paths import is_clone, suite_folder


@dataclass(frozen=True)
class About:
    """A command in a line, with ``examples`` that can be typed as they stand."""

    purpose: str
    examples: tuple[str, ...]


GROUPS: Mapping[str, Mapping[str, About]] = {
    "Measure and judge": {
        "check": About(
            "measure this machine and judge it",
            ("check", "check --mode maintenance --strict", "check --check HplCheck --stack mpich"),
        ),
        "gate": About(
            "after maintenance: can the machine go back to its users?",
            ("gate", "gate --site local --budget 20m"),
        ),
        "screen": About(
            "find slow nodes, links and switches",
            ("screen --budget 10m", "screen --nodes n[001-064] --hpl 0"),
        ),
        "roll": About(
            "screen nodes while users work, for weeks",
            ("roll --site alpha", "roll --status"),
        ),
        "node": About(
            "is this node sound? For health checks, prolog and epilog",
            ("node", "node --state --hook"),
        ),
        "ab": About(
            "which of two MPI stacks, builds or settings is faster",
            ("ab --a mpich --b intel-mpi --budget 10m", "ab --a golden:mpich --b mpich"),
        ),
    },
    "Compare with before": {
        "judge": About(
            "judge the newest session of any ReFrame suite",
            ("judge --last", "judge --reframe results.db --better wait=lower"),
        ),
        "baseline": About(
            "make references from stored runs",
            ("baseline --dry-run", "baseline --since 7d --mode maintenance"),
        ),
        "expect": About(
            "write first expectations from a stored run, to edit",
            ("expect", "expect last --dry-run"),
        ),
        "golden": About(
            "freeze a stack, to compare later builds with it",
            ("golden pin mpich --note 'acceptance'", "golden pin --site local", "golden list"),
        ),
        "history": About(
            "show trends over the stored runs, and when figures changed",
            ("history --stack mpich", "history --figure 'PingPong.*.8B.*'"),
        ),
        "compare": About(
            "which of two stored runs or files is better, and by how much",
            ("compare previous last", "compare last:mpich last:openmpi --all"),
        ),
        "machine": About(
            "print the state of this node, or what changed between runs",
            ("machine", "machine --diff previous last"),
        ),
        "fleet": About(
            "which nodes differ from the rest of their kind", ("fleet", "fleet last --golden n001")
        ),
    },
    "Look and tidy up": {
        "list": About(
            "list runs, stacks, systems, modes or checks", ("list runs", "list stacks --json")
        ),
        "show": About("print the summary of a stored run again", ("show last",)),
        "open": About("open the report of a stored run in a browser", ("open", "open previous")),
        "merge": About(
            "bring the runs of other homes and packages into this one",
            ("merge /shared/alpha /shared/beta", "merge results.zip"),
        ),
        "pack": About(
            "write a run into one file for others to open, compare and cite",
            ("pack last --output results.zip", "pack r8 --output r8.zip --license CC-BY-4.0"),
        ),
        "prune": About(
            "remove old runs; shows what stays", ("prune", "prune --older-than 30d --yes")
        ),
    },
    "Set up": {
        "doctor": About(
            "check in seconds what will work here, and what will not", ("doctor", "doctor --json")
        ),
        "setup": About(
            "install the MPI stacks of a site and their benchmarks",
            ("setup", "setup --stack mpich --refresh"),
        ),
        "site": About(
            "write or convert a site config; check a pipeline",
            ("site scan alpha", "site convert alpha.py", "site pipeline .gitlab-ci.yml"),
        ),
        "hostfile": About(
            "check a hostfile, or print it for a launcher or a scheduler",
            ("hostfile virtual-cluster",),
        ),
        "bootstrap": About("install the pinned Spack and its packages", ("bootstrap",)),
        "activate": About(
            "print what a shell needs for plain ReFrame calls", ('eval "$(clustergate activate)"',)
        ),
        "completion": About(
            "print tab completion for bash, zsh or fish",
            (
                "completion bash >> ~/.bash_completion",
                'completion zsh > "${fpath[1]}/_clustergate"',
                "completion fish > ~/.config/fish/completions/clustergate.fish",
            ),
        ),
    },
    "Tools": {
        "parse": About(
            "print the figures in the outputs of benchmarks",
            ("parse xhpl.out", "parse --format csv IMB-MPI1.out"),
        ),
        "export": About(
            "print or send the figures of runs for dashboards and tables",
            (
                "export last --output /var/lib/node_exporter/clustergate.prom",
                "export last --push http://pushgateway:9091/metrics/job/clustergate",
                "export r7 r8 --format csv",
            ),
        ),
        "hpl-input": About(
            "print an input of HPL or HPCC for a machine, or look at one",
            (
                "hpl-input --nodes 4 --cores-per-node 64 --memory-per-node 256GiB",
                "hpl-input HPL.dat",
            ),
        ),
        "dry-run": About("write every job script of every site config, run none", ("dry-run",)),
    },
}
ABOUT: Mapping[str, About] = {name: one for group in GROUPS.values() for name, one in group.items()}
_INDENT = 18


def overview(added: Mapping[str, str] | None = None) -> str:
    """Return all commands in their groups; ``added`` are those of other packages, by purpose."""
    groups = {group: {k: v.purpose for k, v in those.items()} for group, those in GROUPS.items()}
    groups["Added by packages"] = dict(sorted((added or {}).items()))
    lines = []
    for group, those in groups.items():
        lines += ["", f"{group}:"] if those else []
        lines += [f"  {name:<{_INDENT - 2}}{purpose}".rstrip() for name, purpose in those.items()]
    first = ("check", "show last", "open", "baseline --dry-run")
    last = ["clustergate COMMAND --help has the options of each."]
    if not is_clone():
        last.append(f"docs/, site_configs/ and hostfiles/ are in {suite_folder('docs').parent}")
    return "\n".join([*lines, "", *_examples(first), "", *last, ""])


def examples_of(command: str) -> str:
    """Return the examples of a command, nothing for one of another package."""
    about = ABOUT.get(command)
    return "\n".join(["", *_examples(about.examples), ""]) if about else ""


def _examples(typed: Iterable[str]) -> list[str]:
    whole = (one if "(clustergate " in one else f"clustergate {one}" for one in typed)
    return ["examples:", *(f"  {line}" for line in whole)]
