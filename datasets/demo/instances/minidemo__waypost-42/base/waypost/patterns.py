"""Patterns such as "/notes/<id:int>" and what they match."""

import re

_PARAMETER = re.compile(r"<(?P<name>[A-Za-z_]\w*)(?::(?P<kind>\w+))?>")

# kind: (regular expression, from text, to text)
_KINDS = {
    "str": (r"[^/]+", str, str),
    "int": (r"\d+", int, lambda value: str(int(value))),
    "path": (r".+", str, str),
}


class PatternError(ValueError):
    """A pattern that cannot be used."""


class Pattern:
    """The path of a route, with its parameters."""

    def __init__(self, text):
        if not text.startswith("/"):
            raise PatternError(f"{text!r} does not begin with a slash")
        self.text = text
        self._kinds = {}
        self._regex = re.compile(self._compile(text))

    def _compile(self, text):
        parts = []
        end = 0
        for found in _PARAMETER.finditer(text):
            name, kind = found["name"], found["kind"] or "str"
            if kind not in _KINDS:
                raise PatternError(f"{text!r}: no parameter type {kind!r}")
            if name in self._kinds:
                raise PatternError(f"{text!r}: two parameters are called {name!r}")
            self._kinds[name] = kind
            parts.append(text[end : found.start()])
            parts.append(f"(?P<{name}>{_KINDS[kind][0]})")
            end = found.end()
        parts.append(text[end:])
        return "".join(parts)

    def match(self, path):
        """Return the parameters of a path that fits, otherwise None."""
        found = self._regex.fullmatch(path)
        if found is None:
            return None
        return {name: _KINDS[kind][1](found[name]) for name, kind in self._kinds.items()}

    def build(self, **values):
        """Return the path with the parameters filled in."""
        missing = [name for name in self._kinds if name not in values]
        if missing:
            raise PatternError(f"{self.text!r} needs {', '.join(missing)}")
        return _PARAMETER.sub(lambda m: _KINDS[m["kind"] or "str"][2](values[m["name"]]), self.text)
