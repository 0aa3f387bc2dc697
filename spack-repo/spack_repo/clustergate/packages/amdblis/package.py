"""AMD's BLIS for AMD's processors with AVX-512."""

from spack_repo.builtin.packages.amdblis import package as builtin


class Amdblis(builtin.Amdblis):
    """AMD's BLIS as the builtin recipe makes it, in minutes for the generic target x86_64_v4.

    The builtin recipe compiles the kernels of fifteen families of processors for it, since the
    Penryn and the Bulldozer. AMD's first processor that runs a library for x86-64-v4 is the Zen 4,
    so the others are left out here. The target zen4 itself needs gcc 12.3 or later.
    """

    def _targets_for_spec(self):
        known = super()._targets_for_spec()
        # The first that fits is taken, and x86_64 fits always.
        generic = {"x86_64_v4": "zen4", "x86_64": known.pop("x86_64")}
        return {**known, **generic}
