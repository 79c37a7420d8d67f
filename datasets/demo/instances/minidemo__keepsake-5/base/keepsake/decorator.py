"""Remembering what a function returned."""

import functools

from .cache import Cache

_MISSING = object()


def memoize(function=None, *, maxsize=128, ttl=None):
    """Keep what the function returns, by its arguments, which must be hashable.

    The cache is the attribute `cache` of the decorated function.
    """
    if function is None:
        return functools.partial(memoize, maxsize=maxsize, ttl=ttl)
    cache = Cache(maxsize=maxsize, ttl=ttl)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        key = (args, tuple(sorted(kwargs.items())))
        value = cache.get(key, _MISSING)
        if value is _MISSING:
            value = function(*args, **kwargs)
            cache.set(key, value)
        return value

    wrapper.cache = cache
    return wrapper
