"""What all jobs of a command are to ask the scheduler for, as ReFrame takes it."""

from __future__ import annotations

from collections.abc import Collection

from clustergate.core.environment import export
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.launch.hostfiles import expand, fold
from clustergate.sites import exclusions
from clustergate.sites.description import Site
from clustergate.sites.exclusions import WITHOUT_NODES
from clustergate.sites.schedulers import SCHEDULERS, note_words, scheduler_of
from clustergate.sites.schedulers.job_options import JobOptions

NO_SLURM = Words(
    "wish.no-slurm",
    "{option} works with {takers:and} only, and no partition of {site} uses it",
    remedy="for another scheduler, set `access` in the site config",
)
NO_NODE = Words("wish.no-node", "there is no node {name}", cause="known: {known}")
UNKNOWN_NODES = Words(
    "wish.unknown-nodes",
    "no hostfile and no scheduler lists the nodes of this system",
    remedy="write a hostfile: `clustergate hostfile --help`",
)
WISH_NOTHING_LEFT = Words(
    "wish.nothing-left",
    "no node is left to measure",
    remedy="name fewer in --exclude",
)


def options_for(job_options: JobOptions, site: Site) -> list[str]:
    """Return the options for ReFrame by which all jobs are as wished.

    Raises ClustergateError for nodes that are not there, and where no scheduler can be asked.
    """
    hostfile = exclusions.hostfile_of(site.name)
    options = set(job_options) - ({"nodes", "exclude"} if hostfile else set())
    for option in sorted(options):
        if not any(option in one.job_options for one in site.schedulers):
            takers = [one.name for one in SCHEDULERS if option in one.job_options]
            raise ClustergateError(NO_SLURM(option=f"--{option}", site=site.name, takers=takers))
    words = [word for one in site.schedulers for word in one.words(job_options)]
    note_words(words)
    for partition in site.partitions:
        scheduler_of(partition.scheduler).require_permitted(
            partition.name, partition.access, job_options
        )
    without = set(expand(job_options.exclude)) if job_options.exclude else set()
    if job_options.nodes or job_options.exclude:
        there = [name for one in site.schedulers for name in one.node_names()]
        if hostfile:
            there = [node.name for node in hostfile.nodes]
        if not there:
            raise ClustergateError(UNKNOWN_NODES())
        only = expand(job_options.nodes) if job_options.nodes else there
        for name in (*only, *without):
            if name not in there:
                raise ClustergateError(NO_NODE(name=name, known=fold(there)))
        without |= set(there) - set(only)
        if without >= set(there):
            raise ClustergateError(WISH_NOTHING_LEFT())
    keep_out(without)
    return [f"--job-option={word}" for word in words]


def keep_out(without: Collection[str]) -> None:
    """Keep nodes out of what is measured from now on, beside those that are kept out already.

    The hostfile does it, and for a scheduler the site config, whose own options must not be lost.
    """
    if without:
        # ReFrame and the checks are processes of their own, and read it there.
        export(WITHOUT_NODES, fold({*without, *exclusions.nodes_left_out()}))
