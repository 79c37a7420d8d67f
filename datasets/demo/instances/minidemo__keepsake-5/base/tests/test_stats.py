from keepsake import Cache, Stats


def test_rate():
    assert Stats().rate == 0.0
    assert Stats(hits=3, misses=1).rate == 0.75


def test_counts():
    cache = Cache()
    cache.set("a", 1)
    cache.get("a")
    cache.get("b")
    assert (cache.stats.hits, cache.stats.misses) == (1, 1)
