"""A small URL router for WSGI programs."""

from .app import App, Request
from .patterns import Pattern, PatternError
from .router import MethodNotAllowed, NotFound, Router

__all__ = ["App", "MethodNotAllowed", "NotFound", "Pattern", "PatternError", "Request", "Router"]
