"""A WSGI program around a router."""

from urllib.parse import parse_qs

from .router import MethodNotAllowed, NotFound


class Request:
    """What a route's function is told about the request."""

    def __init__(self, environ):
        self.method = environ.get("REQUEST_METHOD", "GET")
        self.path = environ.get("PATH_INFO") or "/"
        self.query = parse_qs(environ.get("QUERY_STRING", ""))


class App:
    """Calls the function of the route and sends the text it returns."""

    def __init__(self, router):
        self.router = router

    def __call__(self, environ, start_response):
        request = Request(environ)
        headers = [("Content-Type", "text/plain; charset=utf-8")]
        try:
            route, values = self.router.find(request.method, request.path)
        except NotFound:
            status, body = "404 Not Found", "no such page\n"
        except MethodNotAllowed as error:
            status, body = "405 Method Not Allowed", "not with this method\n"
            headers.append(("Allow", ", ".join(error.allowed)))
        else:
            status, body = "200 OK", route.function(request, **values)
        data = body.encode()
        start_response(status, headers + [("Content-Length", str(len(data)))])
        return [data]
