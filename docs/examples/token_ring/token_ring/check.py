"""The ReFrame tests of the token ring."""

from collections.abc import Sequence

from reframe_checks.base import MpiBenchmark
from reframe_checks.contenders import TwoContenders
from reframe_checks.declaration import check
from token_ring.output import RingExpectation


@check("TokenRingCheck")
class TokenRingCheck(MpiBenchmark):
    """A token passed around all ranks."""

    program = "token_ring"

    def arguments(self) -> Sequence[str]:
        """Return the rounds."""
        return [str(self.effort.rounds)]

    def expectation(self) -> RingExpectation:
        """Return what the program must repeat."""
        return RingExpectation(self.ranks, self.effort.rounds)


@check("AbTokenRingCheck")
class AbTokenRingCheck(TwoContenders, TokenRingCheck):
    """The token ring of A against that of B, as ``clustergate ab`` and the gate launch them."""
