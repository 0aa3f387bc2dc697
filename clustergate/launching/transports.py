"""Through what an MPI library was told to send between nodes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

# MPICH and MVAPICH, UCX, libfabric, Intel MPI, Open MPI, MVAPICH2.
_CHOICES = (
    *("MPIR_CVAR_CH4_NETMOD", "UCX_TLS", "UCX_NET_DEVICES", "FI_PROVIDER", "I_MPI_FABRICS"),
    *("I_MPI_OFI_PROVIDER", "OMPI_MCA_pml", "OMPI_MCA_mtl", "OMPI_MCA_btl", "MV2_IBA_HCA"),
)


def transport_note(variables: Mapping[str, str], nodes: int) -> str:
    """Return the sentence on the transport of a launch on so many nodes, empty for one node.

    ``variables`` are those that the ranks were given.
    """
    if nodes == 1:
        return ""
    chosen = [f"{name}={variables[name]}" for name in _CHOICES if name in variables]
    by = f"{', '.join(chosen)} (site config)" if chosen else "the MPI library's own choice"
    return f"transport between nodes: {by}"
