import pytest

from waypost import MethodNotAllowed, NotFound, Router


@pytest.fixture
def router():
    router = Router(prefix="/api/")
    router.add("GET", "/notes", lambda request: "all", name="notes")
    router.add("POST", "/notes", lambda request: "new", name="new")
    router.add("GET", "/notes/<id:int>", lambda request, id: str(id), name="note")
    return router


def test_find(router):
    route, values = router.find("get", "/api/notes/3")
    assert (route.name, values) == ("note", {"id": 3})


def test_not_found(router):
    with pytest.raises(NotFound):
        router.find("GET", "/api/users")


def test_method_not_allowed(router):
    with pytest.raises(MethodNotAllowed) as caught:
        router.find("DELETE", "/api/notes")
    assert caught.value.allowed == ["GET", "POST"]


def test_url(router):
    assert router.url("note", id=3) == "/api/notes/3"
