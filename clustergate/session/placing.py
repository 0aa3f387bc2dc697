"""What all jobs of a command are to ask the scheduler for, as ReFrame takes it."""

from __future__ import annotations

from collections.abc import Collection

from clustergate.environment import export
from clustergate.launching.hostfiles import expand, fold
from clustergate.model import ClustergateError
from clustergate.schedulers import SLURM
from clustergate.schedulers.slurm_limits import note_words
from clustergate.schedulers.wishes import Wishes, nodes_of_slurm, refused_by_slurm
from clustergate.sites import configs as sites
from clustergate.sites.configs import WITHOUT_NODES
from clustergate.sites.description import Site


def options_for(wishes: Wishes, site: Site) -> list[str]:
    """Return the options for ReFrame by which all jobs are as wished.

    Raises ClustergateError for nodes that are not there, and where no scheduler can be asked.
    """
    hostfile = sites.hostfile_of(site.name)
    by_slurm = any(partition.scheduler in SLURM for partition in site.partitions)
    words = set(wishes) - ({"nodes", "exclude"} if hostfile else set())
    if words and not by_slurm:
        option = f"--{sorted(words)[0]}"
        raise ClustergateError("wish.no-slurm", option=option, site=site.name)
    note_words(wishes.words)
    for partition in site.partitions if wishes.words else ():
        if partition.scheduler in SLURM and (
            why := refused_by_slurm(partition.access, wishes.words)
        ):
            if wishes.reservation and "reservation" in why:
                raise ClustergateError("wish.reservation-refused", name=wishes.reservation, why=why)
            options = [f"--{word}" for word in wishes.words]
            raise ClustergateError("wish.refused", options=options, name=partition.name, why=why)
    without = set(expand(wishes.exclude)) if wishes.exclude else set()
    if wishes.nodes or wishes.exclude:
        there = [node.name for node in hostfile.nodes] if hostfile else nodes_of_slurm()
        if not there:
            raise ClustergateError("wish.unknown-nodes")
        only = expand(wishes.nodes) if wishes.nodes else there
        for name in (*only, *without):
            if name not in there:
                raise ClustergateError("wish.no-node", name=name, known=fold(there))
        without |= set(there) - set(only)
        if without >= set(there):
            raise ClustergateError("wish.nothing-left")
    keep_out(without)
    return [f"--job-option={word}" for word in wishes.words]


def keep_out(without: Collection[str]) -> None:
    """Keep nodes out of what is measured from now on, beside those that are kept out already.

    The hostfile does it, and in a job of Slurm the site config, whose own options must not be lost.
    """
    if without:
        # ReFrame and the checks are processes of their own, and read it there.
        export(WITHOUT_NODES, fold({*without, *sites.left_out()}))
