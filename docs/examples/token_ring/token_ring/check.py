"""The ReFrame tests of the token ring."""

from collections.abc import Sequence

import reframe as rfm

from reframe_checks.base import MpiBenchmark
from reframe_checks.contenders import TwoContenders
from reframe_checks.sweeps import OverLayouts
from token_ring import BENCHMARK
from token_ring.output import RingExpectation


@rfm.simple_test
class TokenRingCheck(OverLayouts, MpiBenchmark):
    """A token passed around all ranks."""

    descriptor = BENCHMARK
    program = "token_ring"

    def arguments(self) -> Sequence[str]:
        """Return the rounds."""
        return [str(self.effort.rounds)]

    def expectation(self) -> RingExpectation:
        """Return what the program must repeat."""
        return RingExpectation(self.ranks, self.effort.rounds)


@rfm.simple_test
class AbTokenRingCheck(TwoContenders, TokenRingCheck):
    """The token ring of A against that of B, as ``clustergate ab`` and the gate launch them."""

    tags = {"ab"}
