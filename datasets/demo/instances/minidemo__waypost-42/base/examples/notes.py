"""A program with three routes, for the development server."""

from waypost import App, Router

router = Router()
NOTES = {1: "buy milk", 2: "call Ada"}


@router.get("/")
def index(request):
    return "".join(f"{router.url('note', id=id)}\n" for id in NOTES)


@router.get("/notes/<id:int>")
def note(request, id):
    return NOTES.get(id, "nothing here") + "\n"


@router.get("/feed.xml")
def feed(request):
    return "<feed/>\n"


app = App(router)
