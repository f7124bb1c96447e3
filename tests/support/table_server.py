# SPDX-License-Identifier: Apache-2.0
"""A web server for a folder, which serves it well or not: `change` makes an answer of a path and the file's bytes."""
import contextlib
import http.server
import os
import threading


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, root, change=None):
        self.root, self.change, self.asked = root, change or (lambda path, body: body), []
        super().__init__(("127.0.0.1", 0), Handler)
        self.ended = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def stop(self):
        self.ended.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        server = self.server
        server.asked.append(self.path)
        path = os.path.join(server.root, self.path.lstrip("/"))
        body = None
        if os.path.isfile(path):
            with open(path, "rb") as file:
                body = file.read()
        answer = server.change(self.path, body)
        with contextlib.suppress(OSError):
            if answer == "slow":
                self.send_response(200)
                self.end_headers()
                server.ended.wait(60)
            elif answer == "endless":
                self.send_response(200)
                self.end_headers()
                while not server.ended.is_set():
                    self.wfile.write(b"0" * 65536)
            elif answer == "elsewhere":
                self.send_response(302)
                self.send_header("Location", f"file://{os.path.abspath(path)}")
                self.end_headers()
            elif answer == "cut":
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[:len(body) // 2])
            elif isinstance(answer, int) or answer is None:
                self.send_response(answer or 404)
                self.end_headers()
            else:
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
