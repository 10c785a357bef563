"""A worker that is moved by a replayer: `python3 bridge.py SOCKET NAME` runs as the worker and does what it is told over SOCKET.

It says its name and its environment, then obeys lines of JSON: {"say": TEXT} says a line to the daemon, {"print": TEXT} writes to its
standard output, {"exit": CODE} ends it. What the daemon says comes back as {"heard": TEXT}, the end of its connection as {"heard": null}.
"""

import json
import os
import socket
import sys
import threading

control = socket.socket(socket.AF_UNIX)
control.connect(sys.argv[1])
lock = threading.Lock()
daemon = None


def report(what):
    with lock:
        control.sendall(json.dumps(what).encode() + b"\n")


def listen():
    # Lines end at LF and nowhere else: bytes are split, not text.
    for line in daemon.makefile("rb"):
        report({"heard": line.rstrip(b"\n").decode()})
    report({"heard": None})


report({"name": sys.argv[2], "env": {name: value for name, value in os.environ.items() if name.startswith("ROOST_")}})
for line in control.makefile("rb"):
    order = json.loads(line)
    if "say" in order:
        if daemon is None:
            daemon = socket.socket(socket.AF_UNIX)
            daemon.connect(os.environ["ROOST_SOCKET"])
            threading.Thread(target=listen, daemon=True).start()
        daemon.sendall(order["say"].encode() + b"\n")
    elif "print" in order:
        sys.stdout.write(order["print"])
        sys.stdout.flush()
    elif "exit" in order:
        os._exit(order["exit"])
# The replayer is gone.
os._exit(1)
