"""Attack what a program prints while it runs: ``… | python -m tools.attack.pipe hpl NAME SEED``."""

from __future__ import annotations

import sys
from random import Random

from clustergate.core.model import OutputError
from tools.attack.captures import of_text
from tools.attack.mutations import ATTACKS


def attacked(family: str, name: str, seed: str, text: str) -> str:
    """Return the text as this attack leaves it, as it is where it holds no result."""
    (attack,) = (attack for attack in ATTACKS if attack.name == name)
    try:
        found = of_text(f"{family}/now", text)
    except OutputError:
        # Of another rank than the first.
        return text
    for k in range(100):
        changed = attack.mutate(text, Random(f"{seed}/{k}"), found)
        if changed is not None:
            return changed
    raise SystemExit(f"{name} changes nothing here")


if __name__ == "__main__":
    family, name, seed = sys.argv[1:]
    sys.stdout.write(attacked(family, name, seed, sys.stdin.read()))
