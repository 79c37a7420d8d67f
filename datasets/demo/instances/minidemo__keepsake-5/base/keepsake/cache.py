"""The cache itself."""

import threading
import time
from collections import OrderedDict

from .stats import Stats

_MISSING = object()


class Cache:
    """At most maxsize entries, none older than ttl seconds.

    maxsize None means no bound, ttl None means that nothing grows old. clock
    is for tests. Safe for use by several threads.
    """

    def __init__(self, maxsize=None, ttl=None, clock=time.monotonic):
        if maxsize is not None and maxsize < 1:
            raise ValueError("maxsize must be at least 1")
        if ttl is not None and ttl <= 0:
            raise ValueError("ttl must be more than 0")
        self.maxsize = maxsize
        self.ttl = ttl
        self.stats = Stats()
        self._clock = clock
        self._entries = OrderedDict()  # key: (value, time); least recently used first
        self._lock = threading.RLock()

    def get(self, key, default=None):
        """Return the value and count the entry as used; default if it is not there."""
        with self._lock:
            value = self._look_up(key)
            if value is _MISSING:
                self.stats.misses += 1
                return default
            self.stats.hits += 1
            self._entries.move_to_end(key)
            return value

    def set(self, key, value):
        """Keep a value, in place of the one there may have been."""
        with self._lock:
            self._make_room()
            self._entries[key] = (value, self._clock())
            self._entries.move_to_end(key)

    def delete(self, key):
        """Remove an entry; tell whether there was one."""
        with self._lock:
            return self._entries.pop(key, None) is not None

    def clear(self):
        with self._lock:
            self._entries.clear()

    def __contains__(self, key):
        with self._lock:
            return self._look_up(key) is not _MISSING

    def __len__(self):
        with self._lock:
            self._expire()
            return len(self._entries)

    def _look_up(self, key):
        entry = self._entries.get(key)
        if entry is None:
            return _MISSING
        value, since = entry
        if self._is_old(since):
            del self._entries[key]
            self.stats.expired += 1
            return _MISSING
        return value

    def _make_room(self):
        if self.maxsize is None or len(self._entries) < self.maxsize:
            return
        self._expire()
        while len(self._entries) >= self.maxsize:
            self._entries.popitem(last=False)
            self.stats.evicted += 1

    def _expire(self):
        old = [key for key, (_, since) in self._entries.items() if self._is_old(since)]
        for key in old:
            del self._entries[key]
        self.stats.expired += len(old)

    def _is_old(self, since):
        return self.ttl is not None and self._clock() - since >= self.ttl
