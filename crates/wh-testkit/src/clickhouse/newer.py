# Answers for an engine that is a Python module: POST a statement, get its output or its exception.
# usage: python3 newer.py FOLDER-WITH-CHDB PORT
import http.server
import re
import sys
import threading

sys.path.insert(0, sys.argv[1])
import chdb  # noqa: E402

engine = chdb.connect(":memory:")
lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def answer(self, status, body, code=None):
        self.send_response(status)
        if code:
            self.send_header("X-ClickHouse-Exception-Code", code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(200, b"Ok.\n")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            with lock:
                output = engine.query(body.decode("utf-8", "surrogatepass"), "TabSeparated").bytes()
            self.answer(200, output)
        except Exception as error:
            text = str(error)
            code = re.search(r"Code: (\d+)", text)
            self.answer(500, text.encode("utf-8", "replace"), code and code.group(1))

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
