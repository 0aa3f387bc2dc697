"""Test files that do not load end a call of ReFrame before anything is launched."""

from __future__ import annotations

import logging
import re
import sys
import traceback
from pathlib import Path

from reframe.core.exceptions import ReframeError
from reframe.core.logging import getlogger

from clustergate.model import ClustergateError
from clustergate.wording.notation import printable

# How ReFrame 4.10 warns of a file, or of one of its tests, without which it goes on.
_SKIPPED = re.compile(r"skipping (incompatible )?test\b.*", re.DOTALL)


def refuse_lost_tests() -> None:
    """Turn ReFrame's warning of a test that it leaves out into an error.

    It only warns, runs what is left, possibly nothing, and says PASSED. Its own ``--warn-as-error``
    would also refuse a setting (``-S n=1000``) that some of the tests do not have.
    """
    logger = getlogger().logger
    # There is none outside of ReFrame. The same filter is added once.
    if logger is not None:
        logger.addFilter(_refuse)


def _refuse(record: logging.LogRecord) -> bool:
    if record.levelno == logging.WARNING and (said := _SKIPPED.search(record.getMessage())):
        raise ReframeError(_sentence(said[0], sys.exc_info()[1]))
    return True


def _sentence(said: str, error: BaseException | None) -> str:
    """Return why a test was left out: ReFrame's words, or better the error and its line."""
    if isinstance(error, ClustergateError):
        # A setting that a check asks for when it loads, such as the process counts.
        return str(error)
    told = printable(said.splitlines()[0])
    if error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        file = re.match(r"skipping test file '(.*?)'", said)
        its_own = [one for one in frames if file and Path(one.filename).name == Path(file[1]).name]
        at = (its_own or frames)[-1]
        told = f"{at.filename}:{at.lineno}: this check does not load ({type(error).__name__}: "
        told += f"{printable(str(error))})"
    return f"{told}; mend it or take it away: no run without it is the run asked for"
