"""Say which methods a path takes, and have HEAD answered where GET is.

Source: RFC 9110, sections 9.1, 9.3.2 and 10.2.1.
"""

from collections.abc import Iterable
from typing import Final

from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

_STREAMS: Final = "/events"
"""What paths of streams end with: what is told of them is told as it happens, so nothing can be said of it alone."""


def heads(routes: Iterable[BaseRoute]) -> list[Route]:
    """Make a route for HEAD beside each that answers GET alone; whatever sends the answer leaves its body out."""
    found: list[Route] = []
    for route in routes:
        if isinstance(route, Route) and route.methods == {"GET"} and not route.path.endswith(_STREAMS):
            beside = Route(route.path, route.endpoint, methods=["HEAD"], include_in_schema=False)
            beside.path_regex = route.path_regex
            found.append(beside)
    return found


def allowed(scope: Scope) -> str:
    """List the methods that a request's path takes, as the header ``Allow`` has them."""
    found = {
        method
        for route in scope["app"].routes
        if isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
    return ", ".join(sorted(found))
