"""What a hostile worker does at the board's door, all at once, until there is a file `enough` in its workspace.

It runs inside a worker's confinement, with that worker's uid, limits and token.
"""
import json
import os
import socket
import threading
import time

PATH = os.environ["SUPERVISOR_SOCKET"]
TOKEN = os.environ["SUPERVISOR_TOKEN"]
TASK = os.environ["SUPERVISOR_TASK"]
ENOUGH = threading.Event()
counts = {}


def count(what, many=1):
    counts[what] = counts.get(what, 0) + many


def connect():
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(5)
    stream.connect(PATH)
    return stream


def head(method, path, *fields):
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def own(*fields):
    return (f"authorization: Bearer {TOKEN}", *fields)


def hold(name, many, begin):
    """Keeps many connections open on which something was begun, and begins again where one was closed."""
    held = []
    while not ENOUGH.is_set():
        while len(held) < many and not ENOUGH.is_set():
            try:
                stream = connect()
                begin(stream)
                stream.setblocking(False)
                held.append(stream)
                count(name)
            except OSError:
                time.sleep(0.001)
                break
        left = []
        for stream in held:
            try:
                stream.send(b"x") if name in ("slowloris", "slow upload") else None
                if name != "unread" and stream.recv(65536) == b"":
                    stream.close()
                    continue
            except BlockingIOError:
                pass
            except OSError:
                stream.close()
                continue
            left.append(stream)
        held = left
        time.sleep(0.01)


def flood(name, request, body=b""):
    """Sends requests as fast as they are answered."""
    while not ENOUGH.is_set():
        try:
            stream = connect()
            while not ENOUGH.is_set():
                stream.sendall(request + body)
                said = stream.recv(65536)
                if not said:
                    break
                count(name + " " + said[9:12].decode(errors="replace"))
            stream.close()
        except OSError:
            pass


def open_and_close():
    while not ENOUGH.is_set():
        try:
            connect().close()
            count("opened and closed")
        except OSError:
            pass


comment = json.dumps({"body": "x" * 200_000}).encode()
kinds = [
    lambda: hold("idle", 2000, lambda stream: None),
    lambda: hold("slowloris", 500, lambda stream: stream.sendall(b"GET / HTTP/1.1\r\nhost: loc")),
    lambda: hold("slow upload", 200, lambda stream: stream.sendall(
        head("POST", f"/api/v1/tasks/{TASK}/attachments?filename=slow", *own("content-length: 1000000")))),
    lambda: hold("unread", 200, lambda stream: stream.sendall(head("GET", f"/api/v1/tasks/{TASK}", *own()))),
    lambda: flood("stranger", head("GET", "/api/v1/board", "authorization: Bearer 00")),
    lambda: flood("show", head("GET", f"/api/v1/tasks/{TASK}", *own())),
    lambda: flood("comment", head("POST", f"/api/v1/tasks/{TASK}/comments", *own(
        "content-type: application/json", f"content-length: {len(comment)}")), comment),
    open_and_close,
]
threads = [threading.Thread(target=kind, daemon=True) for kind in kinds]
for thread in threads:
    thread.start()
open("begun", "w").close()
while not os.path.exists("enough"):
    time.sleep(0.05)
ENOUGH.set()
for thread in threads:
    thread.join(20)
print(json.dumps(counts))
