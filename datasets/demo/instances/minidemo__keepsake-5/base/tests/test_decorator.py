from keepsake import memoize


def test_remembers():
    calls = []

    @memoize
    def double(x):
        calls.append(x)
        return 2 * x

    assert [double(2), double(2), double(3)] == [4, 4, 6]
    assert calls == [2, 3]
    assert double.cache.stats.hits == 1


def test_keyword_arguments_in_any_order():
    @memoize(maxsize=1)
    def pair(a, b):
        return object()

    assert pair(a=1, b=2) is pair(b=2, a=1)


def test_keeps_the_name():
    @memoize(ttl=5)
    def named():
        """Text."""

    assert (named.__name__, named.__doc__) == ("named", "Text.")
