"""A share of the red team's attacks, the same each time; ``make attack`` makes more of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clustergate.benchmarks.registry import every_benchmark
from clustergate.core.model import Row
from clustergate.core.paths import checkout
from clustergate.sites import configs as sites
from clustergate.sites.description import EXTRAS
from tools.attack.captures import DATA, captures
from tools.attack.entries import ENTRIES
from tools.attack.mutations import ATTACKS, Attack, Kind
from tools.attack.records import damaged, told_lies
from tools.attack.tally import attacked, provably_wrong

TESTS = Path(__file__).resolve().parent


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_on_the_captured_outputs_is_answered_rightly(attack: Attack) -> None:
    tally = attacked(attack, tries=1)
    assert tally.tried
    assert tally.wrong == []
    assert tally.denied == []
    # Whoever refuses all, or nothing, answers nothing.
    assert tally.refused or attack.kind is Kind.HONEST


def test_swapped_words_without_figures_are_no_wrong_pass() -> None:
    def rows(first: str, second: str, **values: float) -> list[Row]:
        at = {"bytes": 1 << 30}
        return [Row("IMB-MPI1", "Alltoall", at, {}, first), Row("IMB", "Bcast", at, values, second)]

    before = rows("int-overflow", "out-of-mem")
    assert provably_wrong(before, rows("out-of-mem", "int-overflow")) == ""
    assert provably_wrong(before, rows("int-overflow", "ok", t_max_us=1.0)) != ""


def test_the_records_of_the_ranks_are_attacked() -> None:
    for tally in (told_lies(), damaged(tries=200)):
        assert tally.tried
        assert tally.wrong == []
        assert tally.refused > tally.tried / 3


def test_every_family_of_outputs_is_attacked() -> None:
    results, others = captures()
    folders = {path.parent.relative_to(DATA).parts[0] for path in DATA.rglob("*.txt")}
    families = (folders & {*every_benchmark()}) | {"mpi-kernels", "peaks"}
    assert {capture.family for capture in results} == families
    assert len(results) > 60
    assert len(others) > 15


def test_every_known_way_to_pass_and_be_wrong_is_provoked() -> None:
    assert [entry.number for entry in ENTRIES] == list(range(1, len(ENTRIES) + 1))
    names = {attack.name for attack in ATTACKS}
    for entry in ENTRIES:
        assert set(entry.attacks) <= names, entry
        assert entry.tests, entry
        for test in entry.tests:
            file, _, function = test.partition("::")
            text = (TESTS / f"test_{file}.py").read_text(encoding="utf-8")
            assert re.search(rf"^def test_{function}\(", text, re.MULTILINE), test


def mistyped(word: str) -> list[str]:
    """Return a name as it comes out of hurried fingers."""
    return [word[:-1], word[1:], word.replace("_", "", 1), f"{word}s", word[0] + word]


TEMPLATE = (checkout() / "site_configs" / "template.py").read_text(encoding="utf-8")
STATED = set(re.findall(r'^ +(?:# )?"(\w+)":', TEMPLATE, re.MULTILINE))


@pytest.mark.parametrize("name", sorted(STATED & {extra.name for extra in EXTRAS}))
def test_40_mistyped_key_of_a_site_config_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "example.py"
    # Those that the template only names are stated, too.
    whole = re.sub(rf'# ("{name}":)', r"\1", TEMPLATE)
    path.write_text(whole)
    assert sites.load(path)
    for typo in {*mistyped(name)} - {name}:
        path.write_text(whole.replace(f'"{name}"', f'"{typo}"'))
        both = f"'{typo}'; did you mean '{name}'"
        with pytest.raises(sites.SiteError, match=both):
            sites.load(path)


def test_an_extra_of_other_tests_is_told_where_it_belongs(tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(TEMPLATE.replace('"link_mb_s"', '"gpus_per_node": 4, "link_mb_s"'))
    with pytest.raises(sites.SiteError, match=r"no extra 'gpus_per_node'; .* \"other_tests\""):
        sites.load(path)
    own = '"other_tests": {"gpus_per_node": 4}, "link_mb_s"'
    path.write_text(TEMPLATE.replace('"link_mb_s"', own))
    assert sites.load(path)
