"""Send HTTP requests to configured servers, and clean the text that they return."""

import contextlib
import json
import mimetypes
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, Final, Self

import httpx2

from knapper import __version__
from knapper.errors import SetupError
from knapper.jsontypes import replace_surrogates

_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""Control characters, bidirectional marks and tag characters, all of which can hide text."""
_SPACES: Final = re.compile(r"\s+")


def clean_text(text: str) -> str:
    """Remove invisible characters, and normalise line endings to newlines."""
    return _INVISIBLE.sub("", replace_surrogates(text).replace("\r\n", "\n").replace("\r", "\n"))


def clip_to_line(text: str, max_length: int) -> str:
    """Return a text on one line of at most so many characters."""
    short = _SPACES.sub(" ", clean_text(text)).strip()
    return short if len(short) <= max_length else short[: max_length - 1].rstrip() + "…"


_CONNECT_S = 10.0
_KEY_FORM = re.compile(r"[\x21-\x7e]+")


class Unreachable(SetupError):
    """A configured server doesn't answer, or not in time."""

    code = "unreachable"


class Oversized(SetupError):
    """A configured server's response is longer than allowed."""

    code = "oversized_answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """A server's response of any status."""

    status: int
    headers: Mapping[str, str]
    """Header names are compared without case."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file to upload, with the form fields beside it."""

    name: str
    content: BinaryIO
    """Open file, positioned where the upload begins."""
    fields: Mapping[str, str | list[str]]


class HttpClient:
    """A thread-safe client of one server's JSON API; follows no redirects, and never shows a key."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str = "",
        key_header: str = "Authorization",
        max_bytes: int = 32_000_000,
        env_proxies: bool = False,
    ) -> None:
        """Check the address and the key.

        Args:
            base_url: ``http://`` or ``https://``, with the path that all requests begin with.
            api_key: Sent as a bearer token; empty for none.
            key_header: Another header for the key, which is then sent without ``Bearer``.
            max_bytes: The longest response that is read.
            env_proxies: Use the proxies and certificates of the environment.

        Raises:
            SetupError: The address or the key can't be used.
        """
        hint = "write it as http://localhost:11434/v1 or https://api.example.org/v1"
        try:
            url = httpx2.URL(base_url.strip())
        except (httpx2.InvalidURL, ValueError) as error:
            raise SetupError("the server's address can't be read", hint=hint) from error
        if url.scheme not in {"http", "https"} or not url.host:
            raise SetupError("the server's address has no http:// or https:// and host", hint=hint)
        headers = {
            "User-Agent": f"knapper/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
        }
        if key := api_key.strip():
            if not _KEY_FORM.fullmatch(key):
                problem = "the API key holds characters that no key has"
                raise SetupError(problem, hint="copy it again, without line breaks")
            headers[key_header] = f"Bearer {key}" if key_header == "Authorization" else key
        self.origin = f"{url.scheme}://{url.netloc.decode('ascii').rpartition('@')[2]}"
        """The server's address without path and credentials, which may be secret."""
        self._max_bytes = max_bytes
        self._http = httpx2.Client(
            base_url=url,
            headers=headers,
            timeout=_CONNECT_S,
            follow_redirects=False,
            trust_env=env_proxies,
            # Redirects aren't followed, so plain HTTP never needs the system's certificates, which take 20 ms to load.
            verify=url.scheme != "http",
        )

    def post(self, path: str, payload: object, *, timeout_s: float) -> HttpResponse:
        """Send *payload* as JSON.

        Args:
            path: Below the base address, without a slash in front.
            payload: Anything that JSON can hold.
            timeout_s: For the whole exchange, from the first byte sent to the last one read.

        Raises:
            Unreachable: No response, a broken one, or none in time.
            Oversized: The response is longer than ``max_bytes``.
        """
        return self._send(self._http.build_request("POST", path, content=json.dumps(payload).encode()), timeout_s)

    def upload(self, path: str, upload_file: "Upload", *, timeout_s: float) -> HttpResponse:
        """Send a file and fields as a form, the file in pieces; errors are those of ``post``.

        Args:
            path: Below the base address, without a slash in front.
            upload_file: The file and the fields.
            timeout_s: For all of it, from the first byte sent to the last one read.
        """
        media_type = mimetypes.guess_type(upload_file.name)[0] or "application/octet-stream"
        request = self._http.build_request(
            "POST",
            path,
            data=dict(upload_file.fields),
            files={"file": (upload_file.name, upload_file.content, media_type)},
            headers={"Content-Type": f"multipart/form-data; boundary={secrets.token_hex(16)}"},
        )
        return self._send(request, timeout_s)

    def get(self, path: str, query: Mapping[str, str], *, timeout_s: float) -> HttpResponse:
        """Send a GET request for *path*; arguments and errors are those of ``post``.

        Args:
            path: Below the base address, without a slash in front.
            query: Names and values of the query.
            timeout_s: For the whole exchange.
        """
        return self._send(self._http.build_request("GET", path, params=dict(query)), timeout_s)

    def _send(self, request: httpx2.Request, timeout_s: float) -> HttpResponse:
        deadline = time.monotonic() + timeout_s
        timeout = httpx2.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s))
        request.extensions["timeout"] = timeout.as_dict()
        try:
            with contextlib.closing(self._http.send(request, stream=True)) as response:
                chunks: list[bytes] = []
                size = 0
                for chunk in response.iter_bytes():
                    size += len(chunk)
                    if size > self._max_bytes:
                        raise Oversized(
                            f"{self.origin} sent more than {self._max_bytes:,} bytes",
                            hint="check that the address is that of an API",
                        )
                    if time.monotonic() > deadline:
                        raise httpx2.ReadTimeout("the answer took too long", request=response.request)
                    chunks.append(chunk)
                body = b"".join(chunks)
                return HttpResponse(status=response.status_code, headers=dict(response.headers), body=body)
        except httpx2.TimeoutException as error:
            raise Unreachable(
                f"{self.origin} didn't answer within {timeout_s:g} seconds",
                hint="check that the server isn't overloaded, or allow it more time",
                code="timeout",
            ) from error
        except httpx2.RequestError as error:
            raise Unreachable(
                f"{self.origin} can't be reached ({type(error).__name__})",
                hint="start the server, or check its address in the configuration",
            ) from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        """Return the client as a context manager."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()
