"""The pages as a browser shows them: on a desk, on a phone, on paper, in the dark, by keyboard."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustergate.cli import main
from clustergate.core import store
from clustergate.core.figures import name_of
from clustergate.core.model import Evidence, Verdict
from clustergate.core.reasons import in_words
from clustergate.judge.history.series import key_of
from clustergate.report import index
from clustergate.report.gate import first_screen, render_gate
from clustergate.report.html import render_html
from clustergate.report.page import explanation
from clustergate.report.trends import History
from clustergate.run.gate.decision import decide
from tests import browser as chromium
from tests import (
    test_ab,
    test_cli_published,
    test_index,
    test_report_history,
    test_report_screening,
)
from tests.browser import Browser
from tests.builders import figure, run
from tests.test_report_html import captured_case, case

pytestmark = pytest.mark.skipif(
    not (chromium.CHROMIUM and chromium.DRIVER),
    reason="no chromium or no chromedriver here (Debian: chromium, chromium-driver)",
)
DESK, PHONE = (1280, 900), (390, 844)
OF_RUNS = ("report", "wrong", "ab", "screening", "gate", "published")
PAGES = (*OF_RUNS, "index", "reasons", "glossary")
LIGHT = "light"

SCRIPTS = Path(__file__).resolve().parent / "data" / "pages"
OVERFLOW = (SCRIPTS / "overflow.js").read_text(encoding="utf-8")
BROKEN = (SCRIPTS / "broken.js").read_text(encoding="utf-8")
CONTRAST = (SCRIPTS / "contrast.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium.browsing(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a page of each kind, by its name."""
    folder = tmp_path_factory.mktemp("pages")
    data = Path(__file__).resolve().parent / "data" / "runs" / "smoke"
    measured = [captured_case(path) for path in sorted(data.glob("*.json"))]
    # More stacks than there are colours, and each verdict.
    wrong = [
        case(
            stack=f"stack{n}",
            library="MPICH 5.0.2",
            figures=tuple(
                figure(
                    value=1.5 + n + size / 100,
                    verdict=verdict,
                    conditions={"bytes": size},
                    doubt=in_words("it was disturbed") if n == 1 else None,
                )
                for size in (8, 64, 512)
            ),
        )
        for n, verdict in enumerate([*Verdict, Verdict.PASS])
    ]
    before = {
        (key_of(one), name_of(of)): 0.9 * of.estimate.value
        for one in measured
        for of in one.figures
        if of.estimate
    }
    evidence = [
        Evidence("screening", Verdict.REGRESSION, (in_words("node n17 is slow"),)),
        Evidence("benchmarks", Verdict.PASS, (in_words("229 figures are as expected"),)),
    ]
    told = {
        "report": render_html(run(*measured, before=before)),
        "wrong": render_html(
            run(*wrong, machine={"fingerprint": {"hardware": {"processor": "AMD EPYC"}}}),
            History([test_report_history.trend()], ["it became slower"]),
        ),
        "ab": test_ab.page_of(
            test_ab.judged(*test_ab.records(test_ab.CROSSING)),
            notes=["a note"],
            commands={"A": "mpirun -n 2 IMB-MPI1"},
        ),
        "screening": test_report_screening.page_of([f"n{k:02}" for k in range(16)]),
        "gate": render_gate(
            first_screen(decide(evidence), "r1"),
            run(*measured, system="alpha", evidence=tuple(evidence)),
            folder,
            ["a note"],
        ),
        "index": index.render(
            [
                index.Listed(test_index.stored(f"20261101T080000Z-r{k}", word), "r/report.html")
                for k, word in enumerate(("OPEN", "regression", "no faults found", ""))
            ],
            [test_report_history.trend()],
            index.accepted("alpha", [("eva 2026-05-02", "accepted as slower: a new kernel")]),
            folder,
            test_index.systems(),
        ),
        "reasons": explanation("reasons.html"),
        "glossary": explanation("glossary.html"),
    }
    paths = {name: folder / f"{name}.html" for name in told}
    for name, page in told.items():
        paths[name].write_text(page, encoding="utf-8")
    paths["published"] = folder / "published.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLUSTERGATE_HOME", str(folder / "home"))
        for stack, factor in (("intel-mpi", 1.0), ("mvapich2", 1.2)):
            samples = test_cli_published.pingpong(factor)
            written = test_cli_published.record("ImbMpi1Check", stack, samples)
            store.write_case(test_cli_published.RUN, written)
        assert main(["evaluation", "report", "001", f"--output={paths['published']}"]) == 0
    return paths


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", [LIGHT, "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_can_be_read_and_complains_of_nothing(
    browser: Browser, pages: dict[str, Path], name: str, scheme: str, size: tuple[int, int]
) -> None:
    browser.look(width=size[0], height=size[1], scheme=scheme)
    browser.open(pages[name])
    browser.ask("for (const one of document.querySelectorAll('details')) { one.open = true; }")
    assert browser.ask(OVERFLOW, size[0]) == []
    assert browser.ask(BROKEN) == []
    assert browser.ask("return document.documentElement.scrollWidth") <= size[0]
    assert browser.ask(CONTRAST) == []
    assert browser.complaints() == []


@pytest.mark.parametrize("name", OF_RUNS)
def test_on_paper_there_are_pictures_and_nothing_to_press(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.look(width=DESK[0], height=DESK[1], scheme="dark", media="print")
    browser.open(pages[name])
    shown = "[...document.querySelectorAll(told[0])].filter((e) => e.getClientRects().length)"
    count = f"const told = arguments; return {shown}.length"
    assert browser.ask(count, "input, .copy, #tools") == 0
    drawn = browser.ask("return document.querySelectorAll('figure.plot > svg').length")
    opened = browser.ask(
        "return document.querySelectorAll('details:not([open]) figure.plot > svg').length"
    )
    assert browser.ask(count, "figure.plot > svg") == drawn - opened
    assert browser.ask("return getComputedStyle(document.body).backgroundColor") in (
        "rgb(255, 255, 255)",
        "rgba(0, 0, 0, 0)",
    )


@pytest.mark.parametrize("name", OF_RUNS)
def test_a_page_fits_on_paper(browser: Browser, pages: dict[str, Path], name: str) -> None:
    width = 718  # of A4 at 96 dots an inch, without its margins
    browser.look(width=width, height=1047, media="print")
    browser.open(pages[name])
    assert browser.ask(OVERFLOW, width) == []


def test_the_first_screen_has_what_is_to_be_forwarded(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.look(width=DESK[0], height=DESK[1])
    browser.open(pages["wrong"])
    ends = browser.ask(
        "const bottom = (s) => document.querySelector(s).getBoundingClientRect().bottom;"
        "return [...arguments].map(bottom)",
        *("#verdict .word", ".causes", ".next-step", "#machine p", ".headlines thead"),
    )
    assert ends == sorted(ends)
    assert ends[-1] < DESK[1]


@pytest.mark.parametrize("name", ["report", "wrong", "gate"])
def test_phone_has_a_line_per_cause_and_headlines_first(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    """On a phone each cause is a line and headline figures stand on the first screen."""
    browser.look(width=PHONE[0], height=PHONE[1])
    browser.open(pages[name])
    causes = "[...document.querySelectorAll('.causes li')].map((e) => e.clientHeight)"
    shown = "[...document.querySelectorAll('.headlines .value')]"
    ends = f"return {shown}.map((e) => e.getBoundingClientRect().bottom)"
    assert max(browser.ask(f"return {causes}")) < 30
    assert browser.ask(ends)[2] < PHONE[1]


def test_a_cause_unfolds_on_a_phone_and_is_whole_elsewhere(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.look(width=PHONE[0], height=PHONE[1])
    browser.open(pages["wrong"])
    height = "return document.querySelector('.causes li').clientHeight"
    folded = browser.ask(height)
    browser.ask("document.querySelector('.unfold').focus()")
    assert browser.ask("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    browser.press(" ")
    assert browser.ask(height) > folded
    browser.look(width=DESK[0], height=DESK[1])
    labels = "[...document.querySelectorAll('.causes label')]"
    cut = f"{labels}.filter((e) => e.scrollWidth > e.clientWidth)"
    assert browser.ask(f"return {cut}.length") == 0
    assert browser.ask("return document.querySelector('.unfold').getClientRects().length") == 0


def test_without_scripts_there_are_pictures(browser: Browser, pages: dict[str, Path]) -> None:
    browser.look(width=DESK[0], height=DESK[1])
    browser.open(pages["report"], scripts=False)
    assert browser.ask("return document.querySelector('figure.plot > svg').clientWidth") > 200
    assert browser.ask("return document.querySelectorAll('button').length") == 0
    assert browser.complaints() == []


def test_mouse_shows_a_line_with_all_stacks_values(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.look(width=DESK[0], height=DESK[1])
    browser.open(pages["ab"], scripts=False)
    x, y = browser.ask(
        "const strip = document.querySelector('.at rect'); strip.scrollIntoView();"
        "const box = strip.getBoundingClientRect();"
        "return [box.x + box.width / 2, box.y + box.height / 2]"
    )
    shown = "return getComputedStyle(document.querySelector('.at .guide')).opacity"
    assert browser.ask(shown) == "0"
    browser.tell("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert browser.ask(shown) == "1"
    title = browser.ask("return document.querySelector('.at:hover title').textContent")
    assert re.fullmatch(r"us at \S+ \(message size in bytes\)(?:\n.+: [\d.]+){2}", title)


def test_tab_reaches_what_can_be_used(browser: Browser, pages: dict[str, Path]) -> None:
    browser.look(width=DESK[0], height=DESK[1])
    browser.open(pages["ab"])
    reached: list[str] = []
    while not {"BUTTON", "SUMMARY"} <= set(reached) and len(reached) < 60:
        browser.press("Tab")
        reached.append(browser.ask("return document.activeElement.tagName"))
        outlined = "return getComputedStyle(document.activeElement).outlineStyle"
        assert browser.ask(outlined) != "none"
    assert {"BUTTON", "SUMMARY"} <= set(reached)


def test_one_field_filters_all_tables(browser: Browser, pages: dict[str, Path]) -> None:
    browser.look(width=DESK[0], height=DESK[1])
    browser.open(pages["index"])
    shown = """
        const input = document.querySelector("#tools input");
        input.value = arguments[0];
        input.dispatchEvent(new Event("input"));
        return Array.from(document.querySelectorAll("#systems .trends tbody tr, #runs tbody tr"))
            .filter(row => row.offsetParent).length;
    """
    every, slower, none = (
        browser.ask(shown, word) for word in ("", "beta mpich REGRESS", "beta x")
    )
    assert (every, slower, none) == (6, 1, 0)
