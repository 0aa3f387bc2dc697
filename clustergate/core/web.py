"""Sending something to a server once, and knowing whether it has it; GitLab with its token."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from clustergate.core.model import BadRequest, ClustergateError
from clustergate.core.reasons import Words

GITLAB_TOKEN = "CLUSTERGATE_GITLAB_TOKEN"
"""The variable with a token of the scope api, for issues and comments."""
_WAITS_S, _READS_S = 20.0, 60.0
_MOST_BYTES = 16 << 20
NOT_GITLAB = "its answer is not that of GitLab"


WEB_BAD_URL = Words(
    "web.bad-url", "{url} is no http or https URL", remedy="begin it with http:// or https://"
)
WEB_NO_TOKEN = Words(
    "web.no-token",
    "{url} is sent no token",
    cause="the variable {variable} is empty, or the address is not https",
    remedy="set it to a project access token with the scope api",
)


class NotTaken(Exception):
    """The server did not take what was sent to it: it may be sent again."""


class Unsure(Exception):
    """Nobody knows whether the server took what was sent to it."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    # What is posted would be asked for at the other address, and count as taken.
    def redirect_request(self, *_: Any) -> None:
        return None


def send(
    url: str, content: bytes | None, headers: Mapping[str, str] | None = None, method: str = "POST"
) -> bytes:
    """Send something once and return the answer.

    Raises :class:`NotTaken` where the server refused it or was not there, and :class:`Unsure` where
    it failed, was silent or broke off.
    """
    request = urllib.request.Request(url, content, dict(headers or {}), method=method)
    until = time.monotonic() + _READS_S
    said = b""
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=_WAITS_S) as answer:
            while part := answer.read1(1 << 16):
                said += part
                if time.monotonic() > until or len(said) > _MOST_BYTES:
                    raise Unsure("its answer has no end")
            if answer.length:
                raise Unsure("it broke off its answer")
            return said
    except urllib.error.HTTPError as error:
        why = f"{error.code} {error.read(300).decode(errors='replace').strip()}"
        raise (Unsure if error.code >= 500 else NotTaken)(why) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        # It never had the connection by which it could have been sent.
        never = isinstance(error, urllib.error.URLError) and not isinstance(reason, TimeoutError)
        why = str(reason) or type(reason).__name__
        raise (NotTaken if never else Unsure)(why) from None


def require_http(url: str) -> None:
    """Raise :class:`BadRequest` for what is no address of a server."""
    if not url.startswith(("http://", "https://")):
        raise BadRequest(WEB_BAD_URL(url=url))


def ask_gitlab(method: str, url: str, content: Mapping[str, Any] | None = None) -> Any:
    """Send GitLab a request of its API with the token of :data:`GITLAB_TOKEN`; return its JSON.

    Raises :class:`ClustergateError`, and sends nothing, without a token or where it would go
    unencrypted to another machine; else as :func:`send`, and :class:`Unsure` for what is no JSON.
    """
    token, where = os.environ.get(GITLAB_TOKEN, ""), urlsplit(url)
    if not token or (where.scheme != "https" and where.hostname != "127.0.0.1"):
        raise ClustergateError(WEB_NO_TOKEN(url=url, variable=GITLAB_TOKEN))
    headers = {"PRIVATE-TOKEN": token, "Content-Type": "application/json"}
    body = None if content is None else json.dumps(content).encode()
    said = send(url, body, headers, method)
    try:
        return json.loads(said)
    except ValueError:
        raise Unsure(NOT_GITLAB) from None
