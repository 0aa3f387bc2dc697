"""MVAPICH2 with TCP between nodes."""

from spack.package import FileFilter, join_path, run_before
from spack_repo.builtin.packages.mvapich2.package import Mvapich2 as BuiltinMvapich2


class Mvapich2(BuiltinMvapich2):
    """MVAPICH2 as the builtin recipe makes it, of which ``fabrics=nemesis`` compiles.

    Its TCP channel misspells a variable and gives an address where a pointer to it belongs; the
    other channels leave those files out.
    """

    @run_before("configure")
    def correct_the_tcp_channel(self):
        """Correct both; where they are right already, nothing changes."""
        tcp = join_path(self.stage.source_path, "src/mpid/ch3/channels/nemesis/netmod/tcp")
        FileFilter(join_path(tcp, "tcp_init.c")).filter("mpierrno", "mpi_errno")
        own_address = FileFilter(join_path(tcp, "tcp_getip.c"))
        own_address.filter(r"char\* ip\[", "char ip[")
        own_address.filter(r"inet_ntop\(AF_INET, addr,", "inet_ntop(AF_INET, &addr,")
