"""How ReFrame loads the test files: those that do not load end its call, and soon."""

from __future__ import annotations

import inspect
import logging
import os
import re
import sys
import traceback
import warnings
from pathlib import Path

import reframe
from reframe.core import fields, variables
from reframe.core.exceptions import ReframeError
from reframe.core.logging import getlogger
from reframe.core.pipeline import RegressionTest
from reframe.core.warnings import ReframeDeprecationWarning

from clustergate.benchmarks.registry import every_benchmark, lost_tests, not_loaded
from clustergate.core import store
from clustergate.core.model import ClustergateError
from clustergate.core.notation import did_you_mean, nearest, printable
from clustergate.core.reasons import Words
from clustergate.run.reframe import STOPPED, left_out_as

# How ReFrame 4.10 warns of a file, or of one of its tests, without which it goes on.
_SKIPPED = re.compile(r"skipping (?:incompatible )?test (file )?'([^']*)'.*", re.DOTALL)
# And of what -S sets and a test has not.
_NOT_SET = re.compile(r"the following variables were not set: (.*)")
_LOADING = "load_all"
_OF_OTHERS = (str(Path(reframe.__file__).parent), "<")


def refuse_lost_tests() -> None:
    """Turn ReFrame's warning of a test that it leaves out into an error, by file and line.

    It only warns, runs what is left, possibly nothing, and says PASSED. Its own ``--warn-as-error``
    would also refuse a setting (``-S n=1000``) that some of the tests do not have. A run of the
    suite goes on without the tests of an added package, whose cases it then misses.
    """
    logger = getlogger().logger
    # There is none outside of ReFrame. The same filter is added once.
    if logger is not None:
        logger.addFilter(_refuse)


def tell_lost_packages() -> None:
    """Warn of added packages that do not load, and of checks without tests; a session tells it."""
    if not store.is_of_session():
        for why in (*not_loaded().values(), *lost_tests().values()):
            getlogger().warning(str(why))


def warn_without_sources() -> None:
    """Let ReFrame find the line that uses a deprecated name without reading any module's source.

    It has such names itself and suppresses what it warns of them, for each test and each entry of a
    log. It searches nevertheless, through the sources of all loaded modules (4.10.4): three
    quarters of the time of a listing.
    """
    for module in (fields, variables):
        module.user_deprecation_warning = _warn


def _warn(message: str, _from_version: str = "") -> None:
    level, frame = 1, inspect.currentframe()
    while frame and frame.f_globals.get("__name__", "").startswith((__name__, "reframe.")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, ReframeDeprecationWarning, stacklevel=level)


NO_SETTING = Words(
    "check.no-setting",
    "no check has a setting {names:list}",
    remedy="correct the name after -S{meant}",
)


def _refuse(record: logging.LogRecord) -> bool:
    message, error = record.getMessage(), sys.exc_info()[1]
    if record.levelno == logging.WARNING and (skipped := _SKIPPED.search(message)):
        sentence = _sentence(error, printable(skipped[0].splitlines()[0]))
        added = _added_checks(*skipped.groups()) if os.environ.get(store.RUN_ID) else []
        if not added:
            raise ReframeError(sentence)
        record.msg, record.args = left_out_as(added, sentence), ()
    if record.levelno == logging.WARNING and (unset := _NOT_SET.search(message)):
        names = {name.rpartition(".")[2] for name in re.findall(r"'([^']+)'", unset[1])}
        every = _settings_of(RegressionTest)
        if unknown := sorted(names - every):
            meant = did_you_mean(nearest(unknown[0], every - of_reframe()))
            raise ReframeError(str(NO_SETTING(names=unknown, meant=meant)))
    if record.levelno == logging.ERROR and STOPPED in message and _while_loading(error):
        # What ReFrame does not go on without; it tells the error, and not where.
        record.msg, record.args = f"ERROR: {STOPPED}: {_sentence(error, message)}", ()
    return True


def _added_checks(is_file: str | None, name: str) -> list[str]:
    """Return the checks of an added package that a file has, or that a class is one of."""
    for one in every_benchmark().values():
        names = [test.name for test in one.tests_declared]
        if one.tests and is_file and Path(name).absolute() == Path(one.tests):
            return names
        if one.tests and not is_file and name in names:
            return [name]
    return []


def of_reframe() -> set[str]:
    """Return ReFrame's own settings, but for the time limit, which the suite has as well."""
    return {*RegressionTest.var_space} - {"time_limit"}


def _settings_of(tests: type[RegressionTest]) -> set[str]:
    """Return what -S can set of any test that is loaded."""
    further = (_settings_of(kind) for kind in tests.__subclasses__())
    return set(tests.var_space).union(*further)


def _while_loading(error: BaseException | None) -> bool:
    frames = traceback.extract_tb(error.__traceback__ if error else None)
    by_reframe = isinstance(error, ReframeError) or not isinstance(error, Exception)
    return not by_reframe and any(frame.name == _LOADING for frame in frames)


NOT_LOADED = Words(
    "check.not-loaded",
    "this check does not load ({error}: {why})",
    remedy="fix or remove it, or the value after -S: a run without it is not the run requested",
)
LEFT_OUT = Words(
    "check.left-out",
    "{said}",
    remedy="fix or remove it: a run without it is not the run requested",
)


def _sentence(error: BaseException | None, message: str) -> str:
    if isinstance(error, ClustergateError):
        # A setting that a check asks for when it loads, such as the process counts.
        return str(error)
    if error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if not frame.filename.startswith(_OF_OTHERS)]
        at = (own or frames)[-1]
        if at.filename == __file__:
            # What was refused here, as ReFrame meets it again with the file of the test.
            return str(error)
        file, line = at.filename, at.lineno
        if isinstance(error, SyntaxError) and error.filename:
            file, line = error.filename, error.lineno
        facts = {"error": type(error).__name__, "why": printable(str(error))}
        return str(NOT_LOADED(at=f"{file}:{line}", **facts))
    return str(LEFT_OUT(said=message))
