"""OpenBLAS with the kernels that can run."""

from spack_repo.builtin.packages.openblas import package as builtin

# By the family that the rest of the library is compiled for, the newest first.
KERNELS = {
    "x86_64_v4": ("SKYLAKEX", "COOPERLAKE", "SAPPHIRERAPIDS"),
    "x86_64_v3": ("HASWELL", "ZEN"),
}


class Openblas(builtin.Openblas):
    """OpenBLAS as the builtin recipe makes it, in minutes instead of an hour or two.

    For a generic target, which a lock for several machines has, the builtin recipe compiles the
    kernels of 22 kinds of processors since the Pentium 4. The rest of a library for x86-64-v3 or
    -v4 does not run on one without AVX2 or AVX-512, so the kernels of those are left out here.
    """


class MakefileBuilder(builtin.MakefileBuilder):
    """The builtin builder with one definition more."""

    @property
    def make_defs(self):
        """Name the processors whose kernels are compiled, where others could not run them."""
        definitions = super().make_defs
        if "DYNAMIC_ARCH=1" in definitions:
            for family, kernels in KERNELS.items():
                if self.spec.satisfies(f"target={family}:"):
                    return [*definitions, f"DYNAMIC_LIST={' '.join(kernels)}"]
        return definitions


class CMakeBuilder(builtin.CMakeBuilder):
    """The builtin builder: Spack looks for it beside the recipe."""
