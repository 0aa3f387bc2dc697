"""Through what an MPI library was told to send between nodes, and through what it did. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from clustergate.core.model import Launch

# MPICH and MVAPICH, UCX, libfabric, Intel MPI, Open MPI, MVAPICH2.
_CHOICES = (
    *("MPIR_CVAR_CH4_NETMOD", "UCX_TLS", "UCX_NET_DEVICES", "FI_PROVIDER", "I_MPI_FABRICS"),
    *("I_MPI_OFI_PROVIDER", "OMPI_MCA_pml", "OMPI_MCA_mtl", "OMPI_MCA_btl", "MV2_IBA_HCA"),
)


def transport_note(variables: Mapping[str, str], nodes: int, launches: Iterable[Launch]) -> str:
    """Return the sentence on the transport of launches on so many nodes, empty for one node.

    ``variables`` are those that the ranks were given. What the first node sent is what its kernel
    and its adapters counted, messages and all else.
    """
    if nodes == 1:
        return ""
    chosen = [f"{name}={variables[name]}" for name in _CHOICES if name in variables]
    by = f"{', '.join(chosen)} (site config)" if chosen else "the MPI library's own choice"
    sent: Counter[str] = Counter()
    launches = list(launches)
    for launch in launches:
        if isinstance(devices := launch.node.get("sent_bytes"), Mapping):
            sent.update(devices)
    through = [f"{count / 1e6:.1f} MB through {name}" for name, count in sent.most_common()]
    seen = ", ".join(through) or "nothing that a counter shows"
    return f"transport between nodes: {by}" + f"; the first node sent {seen}" * bool(launches)
