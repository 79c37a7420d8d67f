import pytest

from waypost import Pattern, PatternError


@pytest.mark.parametrize(
    "pattern, path, values",
    [
        ("/", "/", {}),
        ("/about", "/about", {}),
        ("/about", "/about/", None),
        ("/about", "/abou", None),
        ("/notes/<id:int>", "/notes/12", {"id": 12}),
        ("/notes/<id:int>", "/notes/x", None),
        ("/<user>/<repo>", "/ada/engine", {"user": "ada", "repo": "engine"}),
        ("/<user>", "/ada/engine", None),
        ("/raw/<file:path>", "/raw/a/b.txt", {"file": "a/b.txt"}),
    ],
)
def test_match(pattern, path, values):
    assert Pattern(pattern).match(path) == values


@pytest.mark.parametrize("text", ["about", "/<a:float>", "/<a>/<a>"])
def test_bad_pattern(text):
    with pytest.raises(PatternError):
        Pattern(text)


def test_build():
    assert Pattern("/notes/<id:int>/<part>").build(id="7", part="end") == "/notes/7/end"


def test_build_names_what_is_missing():
    with pytest.raises(PatternError, match="part"):
        Pattern("/notes/<id:int>/<part>").build(id=7)
