from wsgiref.util import setup_testing_defaults

from waypost import App, Router


def call(app, path, method="GET"):
    environ = {}
    setup_testing_defaults(environ)
    environ.update(PATH_INFO=path, REQUEST_METHOD=method)
    seen = {}

    def start_response(status, headers):
        seen.update(status=status, headers=dict(headers))

    seen["body"] = b"".join(app(environ, start_response)).decode()
    return seen


def make_app():
    router = Router()
    router.add("GET", "/hello/<name>", lambda request, name: f"hello {name}")
    return App(router)


def test_ok():
    seen = call(make_app(), "/hello/ada")
    assert (seen["status"], seen["body"]) == ("200 OK", "hello ada")


def test_not_found():
    assert call(make_app(), "/bye")["status"] == "404 Not Found"


def test_method_not_allowed():
    seen = call(make_app(), "/hello/ada", "POST")
    assert seen["status"].startswith("405")
    assert seen["headers"]["Allow"] == "GET"
