import pytest

from keepsake import Cache


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_set_and_get():
    cache = Cache()
    cache.set("a", 1)
    assert cache.get("a") == 1
    assert cache.get("b", "nothing") == "nothing"


def test_none_is_a_value():
    cache = Cache()
    cache.set("a", None)
    assert "a" in cache
    assert cache.get("a", 1) is None


def test_the_least_recently_used_makes_room():
    cache = Cache(maxsize=2)
    cache.set("a", 1)
    cache.set("b", 2)
    cache.get("a")
    cache.set("c", 3)
    assert "b" not in cache
    assert "a" in cache and "c" in cache
    assert cache.stats.evicted == 1


def test_replacing_counts_as_use():
    cache = Cache(maxsize=3)
    for key in "ab":
        cache.set(key, key)
    cache.set("a", "new")
    cache.set("c", "c")
    cache.set("d", "d")
    assert "a" in cache and "b" not in cache


def test_old_entries_are_gone():
    clock = Clock()
    cache = Cache(ttl=10, clock=clock)
    cache.set("a", 1)
    clock.now = 9.9
    assert cache.get("a") == 1
    clock.now = 10
    assert cache.get("a") is None
    assert cache.stats.expired == 1


def test_old_entries_make_room_first():
    clock = Clock()
    cache = Cache(maxsize=2, ttl=10, clock=clock)
    cache.set("a", 1)
    clock.now = 6
    cache.set("b", 2)
    cache.get("a")
    clock.now = 12
    cache.set("c", 3)
    assert "b" in cache and "c" in cache
    assert cache.stats.evicted == 0


def test_delete_and_clear():
    cache = Cache()
    cache.set("a", 1)
    assert cache.delete("a") and not cache.delete("a")
    cache.set("b", 1)
    cache.clear()
    assert len(cache) == 0


@pytest.mark.parametrize("options", [{"maxsize": 0}, {"ttl": 0}])
def test_bad_options(options):
    with pytest.raises(ValueError):
        Cache(**options)
