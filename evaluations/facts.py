"""What the papers printed, from ``references/published/<paper>.yaml``.

``references/published/README.md`` explains the files, ``schema.json`` has their shape; what a
schema cannot say is checked here. Every message names file and line.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

from clustergate.benchmarks.registry import every_check, every_metric
from clustergate.core.files.marked_yaml import Document, read_document
from clustergate.core.model import Better, ClustergateError
from clustergate.core.paths import suite_folder
from clustergate.core.words import INPUT_UNKNOWN_NAME
from clustergate.judge.references.validation import of_schema
from clustergate.sites import modes
from evaluations import forms, papers
from evaluations.criteria import Criterion
from evaluations.evidence import Suite
from evaluations.modes import PAPER_CHECKS

PAPERS = ("000", "001", "002", "003", "004")
STANDS, DOUBTFUL, CONTRADICTED = "stands", "doubtful", "contradicted"
HELD, NOT_CHECKABLE = "held", "not checkable"
TO_BASELINE, OF_BASELINE = "to baseline", "of baseline"
TO_UNFLUSHED = "to unflushed"

WHY_NOT: Mapping[str, str] = {
    "theoretical": "a nominal number, of which nothing is measured",
    "literature": "a number of another publication",
    "power": "watts of the machine itself; a site config states its own (watts_per_socket)",
    "configuration": "a count of the machine's parts",
}
"""Why nothing of this suite stands beside printed values of a category."""


# What a study need not have.
_NONE_OF: Mapping[str, Sequence[Any]] = dict.fromkeys(
    ("values", "parameters", "remarks", "figures"), ()
)


class FactsError(ClustergateError):
    """A file of printed values cannot be used; each line of the message names file and line."""

    exit_status = 1


class UnknownPaper(ClustergateError):
    """A paper was named that is none of the five."""


@dataclass(frozen=True)
class PrintedValue:
    """One printed number with its provenance.

    ``value`` is None for a range from ``low`` to ``high``. ``qualifier`` is empty for a plain
    number, else ``about``, ``below``, ``up to`` … ``standing`` is :data:`STANDS`, or
    :data:`DOUBTFUL` or :data:`CONTRADICTED` with the reason in ``because``. ``not_stated`` names
    the conditions that the paper leaves open. ``derived`` says what of measurements is the same
    quantity where no single figure is (:data:`evaluations.quantities.KINDS`), ``not_here`` why
    nothing here is, ``no_reference`` why a figure that is has no reference by it.
    """

    id: str
    system: str
    benchmark: str
    metric: str
    unit: str
    better: Better
    source: str
    category: str = "measured"
    value: float | None = None
    low: float | None = None
    high: float | None = None
    qualifier: str = ""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    not_stated: Sequence[str] = ()
    standing: str = STANDS
    because: str = ""
    remark: str = ""
    suite: Suite | None = None
    derived: Mapping[str, Any] = field(default_factory=dict)
    not_here: str = ""
    no_reference: str = ""

    @property
    def text(self) -> str:
        """Return the number as it was printed, with its qualifier and without its unit."""
        shown = f"{self.low:g} to {self.high:g}" if self.value is None else f"{self.value:.9g}"
        return f"{self.qualifier} {shown}".strip()

    @property
    def place(self) -> str:
        """Return message size and processes that it was printed for, as far as they are stated."""
        stated = ((self.conditions.get(name), name) for name in ("bytes", "processes"))
        return ", ".join(f"{at} {name}" for at, name in stated if isinstance(at, int | str))

    @property
    def text_with_unit(self) -> str:
        """Return the number as it was printed with its unit, which a ratio has none of."""
        return self.text if self.unit == "1" else f"{self.text} {self.unit}"


@dataclass(frozen=True)
class System:
    """A system, a variant of one, a technology or a group of systems, as the paper tells of it.

    ``site`` is what a site config of it holds, None for what is no machine of its own;
    ``played_by`` are the stacks that make a variant of any machine.
    """

    id: str
    name: str
    kind: str
    source: str
    variant_of: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    not_stated: Sequence[str] = ()
    follows: Mapping[str, Any] = field(default_factory=dict)
    remark: str = ""
    site: Mapping[str, Any] | None = None
    played_by: Sequence[str] = ()


@dataclass(frozen=True)
class Parameter:
    """A parameter of a benchmark: ``value`` is a number, or text where it is no single number."""

    id: str
    name: str
    value: float | str
    source: str
    unit: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Remark:
    """What this project found when it checked a paper: ``concerns`` are ids of the same paper."""

    id: str
    kind: str
    about: str
    remark: str
    concerns: Sequence[str] = ()


@dataclass(frozen=True)
class Predicate:
    """A conclusion of a paper as something that can be decided.

    ``here`` is how measurements decide it, None with the reason in ``not_here``. ``paper`` is what
    the paper's own values say: held, contradicted or not checkable. ``against`` are predicates of
    the same paper that it does not agree with.
    """

    id: str
    statement: str
    source: str
    paper: str = NOT_CHECKABLE
    here: Criterion | None = None
    not_here: str = ""
    against: Sequence[str] = ()
    remark: str = ""


@dataclass(frozen=True)
class PaperFigure:
    """A figure of a paper: its axes, and what of ours is drawn on them.

    ``draw`` is None for drawings and listings, with the reason in ``why_not``.
    """

    number: int
    title: str
    kind: str
    x: str = ""
    y: str = ""
    series: str = ""
    draw: Mapping[str, Any] | None = None
    why_not: str = ""


@dataclass(frozen=True)
class Paper:
    """All that is kept of one paper, by id where things have one.

    ``mode`` is that of its runs, ``checks`` are those of its benchmarks, by their names; ``run`` is
    what a study of one's own launches, None where that is scaled to a machine. ``text`` is what
    stood in its file, ``source``, when it was read.
    """

    id: str
    about: str
    title: str
    authors: str
    systems: Mapping[str, System]
    values: Mapping[str, PrintedValue]
    parameters: Mapping[str, Parameter]
    remarks: Mapping[str, Remark]
    predicates: Mapping[str, Predicate]
    figures: Sequence[PaperFigure]
    source: Path
    text: str
    mode: str
    checks: Mapping[str, str]
    run: Mapping[str, Any] | None = None

    @property
    def is_study(self) -> bool:
        """Whether it is a study of one's own, and not one of the papers."""
        return self.run is not None

    @property
    def called(self) -> str:
        """Return what it is called: a paper, or a study of one's own, by its id."""
        return f"{'study' if self.is_study else 'paper'} {self.id}"

    def family(self, system: str) -> list[str]:
        """Return a system and what it is a variant of, the closest first."""
        found = [system]
        while parent := self.systems[found[-1]].variant_of:
            found.append(parent)
        return found


def folder() -> Path:
    """Return the folder of the papers' files."""
    return suite_folder("references") / "published"


@functools.cache
def load_paper(paper: str) -> Paper:
    """Read and validate the facts of a paper, or of the study in a YAML file.

    Raises :class:`UnknownPaper` for a paper that is none of the five, :class:`FactsError`.
    """
    if paper.endswith((".yaml", ".yml")):
        path = Path(paper)
    elif paper in PAPERS:
        path = folder() / f"{paper}.yaml"
    else:
        raise UnknownPaper(INPUT_UNKNOWN_NAME(kind="paper", name=paper, known=list(PAPERS)))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FactsError(f"{path}:1: this file cannot be read: {error}") from None
    return parse_paper(text, path)


def load_papers() -> list[Paper]:
    """Return the facts of all papers, in their order."""
    return [load_paper(paper) for paper in PAPERS]


def parse_paper(text: str, path: Path) -> Paper:
    """Validate the text of a paper's file; raises :class:`FactsError`."""
    document = read_document(text)
    found = [(c.line, str(c.reason)) for c in document.complaints] or sorted(_complaints(document))
    if found:
        raise FactsError("\n".join(f"{path}:{line}: {words}" for line, words in found))
    data = {**_NONE_OF, **document.data}
    about = data["paper"]
    run = about.get("run", {})
    # One of these two would be taken for the other where runs are kept by their ids.
    if bool(run) is (about["id"] in PAPER_CHECKS):
        says = "says by `run` which mode and checks it takes"
        says = "has another id than the papers" if run else says
        raise FactsError(f"{path}:{document.line(['paper'])}: a study of one's own {says}")
    return Paper(
        source=path,
        text=text,
        mode=run.get("mode", f"published-{about['id']}"),
        checks={name: name for one in _launched(run) for name in one.get("checks", ())}
        or PAPER_CHECKS[about["id"]],
        run=run or None,
        id=about["id"],
        about=about["about"],
        title=about.get("title", ""),
        authors=about.get("authors", ""),
        systems={key: System(id=key, **entry) for key, entry in data["systems"].items()},
        values={entry["id"]: _value(entry) for _, entry in _entries(data)},
        parameters={entry["id"]: Parameter(**entry) for entry in data["parameters"]},
        remarks={entry["id"]: Remark(**entry) for entry in data["remarks"]},
        predicates=_predicates(document, data, path),
        figures=[PaperFigure(**entry) for entry in data["figures"]],
    )


def _predicates(document: Document, data: Mapping[str, Any], path: Path) -> dict[str, Predicate]:
    """Return the conclusions with what decides each: a function of a paper, a test of a study.

    What a paper's own numbers do not bear out is contradicted, as is what is ``against`` others.
    """
    id_ = data["paper"]["id"]
    is_paper = id_ in PAPER_CHECKS
    of_paper = papers.criteria_of(id_) if is_paper else {}
    numbers = {one["id"]: one["value"] for _, one in _entries(data) if "value" in one}
    try:
        in_print = papers.printed_of(id_, numbers) if is_paper else {}
    except KeyError as error:
        line = document.line(("values",))
        lacking = f"there is no value {error}, by which a conclusion of paper {id_} is judged"
        raise FactsError(f"{path}:{line}: {lacking}") from None
    found = {}
    for i, entry in enumerate(data["predicates"]):
        told = {name: value for name, value in entry.items() if name not in ("here", "printed")}
        here = of_paper.get(entry["id"])
        if "here" in entry:
            here = forms.criterion_of(entry["here"])
        if (here is None) is not ("not_here" in entry):
            wrong = "it takes what decides it, or not_here with the reason why nothing does"
            line = document.line(("predicates", i))
            raise FactsError(f"{path}:{line}: {entry['id']}: {wrong}")
        if is_paper:
            holds = in_print.get(entry["id"], False if "against" in entry else None)
            told["paper"] = {True: HELD, False: CONTRADICTED, None: NOT_CHECKABLE}[holds]
        found[entry["id"]] = Predicate(**told, here=here)
    return found


def _entries(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """Yield where each value stands, and the value with what its group says of all of them."""
    for i, group in enumerate(data["values"]):
        shared = {key: value for key, value in group.items() if key != "entries"}
        for k, entry in enumerate(group["entries"]):
            told = [text for text in (group.get("remark"), entry.get("remark")) if text]
            yield (
                ("values", i, "entries", k),
                {
                    **shared,
                    **entry,
                    "conditions": {**group.get("conditions", {}), **entry.get("conditions", {})},
                    "not_stated": [*group.get("not_stated", ()), *entry.get("not_stated", ())],
                    "remark": " ".join(told),
                },
            )


def _value(entry: Mapping[str, Any]) -> PrintedValue:
    suite = entry.get("suite")
    return PrintedValue(
        **{
            **entry,
            "better": Better(entry["better"]),
            "suite": Suite(**{**suite, "figure": _figure_name(entry)}) if suite else None,
        }
    )


def _figure_name(entry: Mapping[str, Any]) -> str:
    """Return the name of a value's figure, with the value's own conditions in its braces."""
    return str(entry["suite"]["figure"]).format(**entry["conditions"])


def _complaints(document: Document) -> Iterator[tuple[int, str]]:
    broken = False
    for error in _validator().iter_errors(document.data):
        broken = True
        yield document.line(list(error.absolute_path)), str(of_schema(error))
    if not broken:
        for path, told in _own_complaints({**_NONE_OF, **document.data}):
            yield document.line(path), told


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    schema = json.loads((folder() / "schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def _own_complaints(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield what a schema cannot say: names that lead nowhere, numbers that are missing."""
    systems = data["systems"]
    for key, system in systems.items():
        if system.get("variant_of", key) not in systems:
            yield ("systems", key), f"{key}: there is no system {system['variant_of']!r}"
        above = [key]
        while (parent := systems.get(above[-1], {}).get("variant_of", "")) and parent not in above:
            above.append(parent)
        if parent:
            yield ("systems", key), f"{key}: it is a variant of itself, by {above[-1]}"
    seen: set[str] = set()
    for path, entry in _entries(data):
        for told in _value_complaints(entry, systems):
            yield path, f"{entry['id']}: {told}"
        if entry["id"] in seen:
            yield path, f"{entry['id']}: another value has this id"
        seen.add(entry["id"])
    for section in ("parameters", "remarks", "predicates"):
        for i, entry in enumerate(data[section]):
            if entry["id"] in seen:
                yield (section, i), f"{entry['id']}: this id stands already"
            seen.add(entry["id"])
    yield from _test_complaints(data)
    for i, entry in enumerate(data["figures"]):
        draw = entry.get("draw", {})
        for told in forms.drawing_complaints(draw, entry["kind"]) if draw else ():
            yield ("figures", i), f"figure {entry['number']}: {told}"
    yield from _run_complaints(data["paper"].get("run", {}))
    for i, entry in enumerate(data["remarks"]):
        for name in entry.get("concerns", ()):
            if name not in seen:
                yield ("remarks", i), f"{entry['id']}: it concerns {name}, which is nowhere here"


def _test_complaints(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield what is wrong with the tests of conclusions; a paper's file has none."""
    for i, entry in enumerate(data["predicates"]):
        place = ("predicates", i)
        if "here" not in entry:
            continue
        if (name := data["paper"]["id"]) in PAPER_CHECKS and "run" not in data["paper"]:
            decides = f"conclusions of paper {name} are decided by evaluations/papers alone"
            yield place, f"{entry['id']}: {decides}: give {name} in place of this file"
            return
        for told in forms.test_complaints(entry["here"], data["systems"]):
            yield place, f"{entry['id']}: {told}"


def _launched(run: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what a study launches, in its order: its parts, and the whole of it."""
    return [*run.get("parts", ()), run]


def _run_complaints(run: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield what of a study's `run` is not there: its mode, its checks, a check of a setting."""
    *parts, whole = _launched(run)
    yield from _part_complaints(whole, ("paper", "run"))
    for k, part in enumerate(parts):
        yield from _part_complaints(part, ("paper", "run", "parts", k))


def _part_complaints(
    run: Mapping[str, Any], place: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    try:
        modes.mode_named(run.get("mode", "smoke"))
    except ClustergateError as error:
        yield (*place, "mode"), str(error)
    checks, asked = run.get("checks", ()), dict(run.get("settings", {}))
    for check in checks:
        if check not in every_check():
            known = ", ".join(every_check())
            yield (*place, "checks"), f"there is no check {check!r}; known are {known}"
            asked.clear()
    for setting in [*asked]:
        check, point, _ = setting.rpartition(".")
        if point and check not in checks:
            yield (*place, "settings", setting), f"{setting}: {check} is not run"
            del asked[setting]
    # ReFrame takes a second to load.
    from evaluations import settings

    for setting, told in settings.setting_complaints(asked, checks) if asked else ():
        yield (*place, "settings", setting), f"{setting}: {told}"


def _value_complaints(entry: Mapping[str, Any], systems: Mapping[str, Any]) -> Iterator[str]:
    for name in ("system", "metric", "unit", "better"):
        if name not in entry:
            yield f"neither it nor its group says its {name}"
    if entry.get("system", "") not in systems:
        yield f"there is no system {entry.get('system')!r}"
    numbers = [entry.get(name) for name in ("value", "low", "high")]
    if [number is None for number in numbers] not in ([False, True, True], [True, False, False]):
        yield "there must be a value, or low and high"
    if not all(forms.is_number(number) for number in numbers if number is not None):
        yield "a printed value is a finite number"
    if (entry.get("standing", STANDS) == STANDS) != ("because" not in entry):
        yield "standing and because go together: what is doubtful or contradicted says why"
    if "derived" in entry:
        yield from forms.derived_complaints(entry["derived"], systems)
    elif not {"suite", "not_here"} & entry.keys() and entry.get("category") not in WHY_NOT:
        yield (
            "nothing would stand beside it: it takes a figure (suite), how it follows from several "
            "(derived), or the reason why not (not_here)"
        )
    if "suite" in entry:
        if entry["suite"]["check"] not in every_check():
            yield f"there is no check {entry['suite']['check']!r}"
        try:
            _figure_name(entry)
        except (AttributeError, LookupError, TypeError, ValueError):
            figure = entry["suite"]["figure"]
            yield f"its conditions do not fill the braces of the figure's name {figure!r}"
        metric = entry["suite"]["figure"].rpartition(".")[2]
        if "*" not in metric and metric not in every_metric():
            yield f"its figure is of no known metric: {metric!r}"
        of_two = entry["suite"].get("relative") in (TO_BASELINE, OF_BASELINE)
        if of_two and entry["conditions"].get("baseline") not in systems:
            yield "a ratio of two machines has one of the systems as 'baseline' in its conditions"
