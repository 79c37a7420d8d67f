"""From a method and a path to a function."""

from dataclasses import dataclass
from typing import Callable

from .patterns import Pattern


class NotFound(LookupError):
    """No route has this path."""


class MethodNotAllowed(LookupError):
    """Routes have this path, but none for the method."""

    def __init__(self, allowed):
        super().__init__(", ".join(allowed))
        self.allowed = allowed


@dataclass(frozen=True)
class Route:
    method: str
    pattern: Pattern
    function: Callable
    name: str


class Router:
    """Routes, tried in the order in which they were added."""

    def __init__(self, prefix=""):
        self._prefix = prefix.rstrip("/")
        self._routes = []

    def add(self, method, pattern, function, name=None):
        route = Route(method.upper(), Pattern(self._prefix + pattern), function, name or function.__name__)
        self._routes.append(route)
        return route

    def get(self, pattern, name=None):
        return self._decorator("GET", pattern, name)

    def post(self, pattern, name=None):
        return self._decorator("POST", pattern, name)

    def _decorator(self, method, pattern, name):
        def keep(function):
            self.add(method, pattern, function, name)
            return function

        return keep

    def find(self, method, path):
        """Return (route, parameters); raise NotFound or MethodNotAllowed."""
        allowed = []
        for route in self._routes:
            values = route.pattern.match(path)
            if values is None:
                continue
            if route.method == method.upper():
                return route, values
            allowed.append(route.method)
        if allowed:
            raise MethodNotAllowed(sorted(set(allowed)))
        raise NotFound(path)

    def url(self, name, **values):
        """Return the path of the route with this name."""
        for route in self._routes:
            if route.name == name:
                return route.pattern.build(**values)
        raise NotFound(name)
