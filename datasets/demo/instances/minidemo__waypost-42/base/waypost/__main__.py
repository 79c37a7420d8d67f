"""The development server: python3 -m waypost FILE [--port N]."""

import argparse
import runpy
from wsgiref.simple_server import make_server


def main():
    parser = argparse.ArgumentParser(prog="waypost", description="Serve the App called app in a file.")
    parser.add_argument("file")
    parser.add_argument("--port", type=int, default=8000, help="0 takes any free port")
    options = parser.parse_args()
    app = runpy.run_path(options.file)["app"]
    with make_server("127.0.0.1", options.port, app) as server:
        print(f"serving on http://127.0.0.1:{server.server_port}/", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
