"""What a hostile worker does at the board's door and at its walls, all at once, until there is a file `enough` in its workspace.

It runs inside a worker's confinement, with that worker's uid, limits and token.
"""
import ctypes
import itertools
import json
import os
import signal
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


def send(name, make):
    """Sends requests that are each another one, as fast as they are answered."""
    for number in itertools.count():
        if ENOUGH.is_set():
            return
        try:
            with connect() as stream:
                stream.sendall(make(number))
                said = stream.recv(65536)
                count(name + " " + said[9:12].decode(errors="replace"))
        except OSError:
            pass


def write(path, value, *fields):
    body = json.dumps(value).encode()
    return head("POST", path, *own("content-type: application/json", "connection: close",
                                   f"content-length: {len(body)}", *fields)) + body


def verb(name, value, *fields):
    return write("/api/v1/verbs/" + name, value, *fields)


def holds(number):
    """Holds what is others', and what is its own."""
    until = {"reason": "r", "until": int(time.time()) + 86400 * 30}
    on = [{"tenant": "neighbour"}, {"profile": "shell"}, {"account": "main"}, {"task_ids": [TASK]}, {}]
    return verb("hold", {**on[number % len(on)], **until})


def board_names(number):
    """Names boards that are not its own, with its token and without."""
    who = own() if number % 2 else ()
    name = f"made-{number % 300}"
    return head(*(("POST", "/api/v1/boards") if number % 3 else ("GET", "/api/v1/tasks")), *who, "connection: close",
                f"x-supervisor-board: {name}", "content-length: 0")


def trees():
    """Makes what nobody should have to walk, and takes some of it away again."""
    for number in itertools.count():
        if ENOUGH.is_set():
            return
        place = f"trees/{number % 50}"
        try:
            os.makedirs(place, exist_ok=True)
            os.mkfifo(f"{place}/.gitignore")
            os.symlink("..", f"{place}/up")
            os.symlink("/proc/1/root", f"{place}/out")
            os.chmod(place, 0o4777)
        except OSError:
            time.sleep(0.01)
        count("trees")


def walls():
    """Tries what its confinement keeps it from."""
    libc = ctypes.CDLL(None, use_errno=True)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.getcwd())))
    parents = [1, os.getppid()]
    tries = {
        "signal": lambda pid: os.kill(pid, signal.SIGKILL),
        "priority": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
        "processors": lambda pid: os.sched_setaffinity(pid, {0}),
        "memory": lambda pid: open(f"/proc/{pid}/mem", "rb").close(),
        "environment": lambda pid: open(f"/proc/{pid}/environ", "rb").read(),
        "board": lambda pid: open(f"{root}/boards/default/board.db", "rb").close(),
        "key": lambda pid: os.listdir(f"{root}/run"),
        "neighbours": lambda pid: os.listdir(f"{root}/workspaces/default"),
    }
    while not ENOUGH.is_set():
        for name, attempt in tries.items():
            for pid in parents:
                # Its own shell has the same uid and is its to end.
                if name in ("signal", "priority", "processors") and pid != 1:
                    continue
                try:
                    attempt(pid)
                    count("wall open: " + name) if name in ("board", "key", "neighbours") else count(name)
                except OSError:
                    count("wall held")
        for call in (lambda: libc.unshare(0x10000000), lambda: libc.mount(b"x", b"/", b"tmpfs", 0, None)):
            count("wall held" if call() else "call taken")
        time.sleep(0.005)


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
    lambda: send("board", board_names),
    lambda: send("create", lambda number: write("/api/v1/tasks", {"title": f"more {number}"})),
    lambda: send("hold", holds),
    # Both workers have these ids, each with another body.
    lambda: send("same id", lambda number: verb("heartbeat", {"note": TASK}, f"x-request-id: siege-{number % 7}")),
    lambda: send("other body", lambda number: verb(
        "heartbeat", {"note": f"{TASK} {number}"}, f"x-request-id: siege-{number % 7}")),
    lambda: send("file", lambda number: head(
        "POST", f"/api/v1/tasks/{TASK}/attachments?filename=f{number}",
        *own("connection: close", "content-length: 65536")) + b"x" * 65536),
    trees,
    walls,
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
