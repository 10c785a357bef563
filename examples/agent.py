#!/usr/bin/env python3
"""agent.py: the agent of examples/agent.rs without any library, to show that a socket and JSON are enough. Python 3 alone.

    roost run --cap 1 --runner worker --task $'one two\\nthree' -- python3 examples/agent.py

It counts words, with a child for each line of its task: it says hello, takes its task in, launches, ends its turn, parks when it is
asked to, goes on in another process when children have ended, and answers with the sum. A broken connection is made again, and the
call in it is sent again under the same request id.
"""
import collections
import json
import os
import select
import socket
import sys
import time
import uuid


def wire(raw):
    """Bytes for JSON: a string, or a list of numbers when they are not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"bytes": list(raw)}


class Roost:
    """The connection of a worker: one JSON object per line, calls with an id, notifications without."""

    def __init__(self):
        self.socket, self.buffer, self.pushed, self.last_id = None, b"", collections.deque(), 0
        self.orders, self.order = [sys.stdin], b""
        self.connect()

    def connect(self):
        pause = 0.02
        while True:
            try:
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.connect(os.environ["ROOST_SOCKET"])
                self.buffer = b""
                self.pushed.clear()  # All that is owed comes again.
                identity = {field: os.environ["ROOST_" + field.upper()] for field in ("tree", "worker", "token")}
                identity["epoch"] = int(os.environ["ROOST_EPOCH"])
                hello = {"protocol_min": 1, "protocol_max": 1, "client": "agent.py", "identity": identity}
                self.welcome = self.exchange("hello", {**hello, "role": "worker", "capabilities": ["park"]})
                return
            except OSError:
                time.sleep(pause)
                pause = min(2, pause * 2)

    def call(self, method, **params):
        while True:
            try:
                return self.exchange(method, params)
            except OSError:
                self.connect()

    def exchange(self, method, params):
        self.last_id += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        self.socket.sendall(line.encode() + b"\n")
        while True:
            answer = self.read_line()
            if "method" in answer:
                self.pushed.append(answer)
            elif answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']} ({answer['error']['data']['kind']})")
                return answer["result"]

    def read_line(self):
        while b"\n" not in self.buffer:  # LF alone ends a line.
            piece = self.socket.recv(1 << 16)
            if not piece:
                raise ConnectionError("the broker has gone")
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def next(self):
        """The next notification; None when standard input says exit. An end of it without that word is no order."""
        while not self.pushed:
            try:
                if b"\n" not in self.buffer:
                    ready, _, _ = select.select([self.socket, *self.orders], [], [])
                    if sys.stdin in ready:
                        piece = os.read(sys.stdin.fileno(), 512)
                        self.order += piece
                        if b"exit" in self.order.split(b"\n")[:-1]:
                            return None
                        if not piece:
                            self.orders = []  # The supervisor died; the next one goes on with us.
                    if self.socket not in ready:
                        continue
                self.pushed.append(self.read_line())
            except OSError:
                self.connect()
        return self.pushed.popleft()


def accept(roost, saved, items):
    """Of these, what is new, and what of that is still owed to us; it is not owed any more then, nor is a turn without items."""
    # What a process before us has taken in, and what we have, comes again when the word of it was lost.
    key = lambda item: item.get("execution" if item["type"] == "completion" else "message") or item["seq"]
    fresh = [item for item in items if key(item) not in saved["seen"]]
    if any(item["type"] == "completion" for item in fresh):
        time.sleep(roost.welcome.get("hold_ms", 0) / 1000)  # So that a reading of it elsewhere comes first.
    accepted = roost.call("ack", items=[item["seq"] for item in items])["accepted"]
    taken = [item for item in fresh if item["seq"] in accepted]
    saved["seen"] += [key(item) for item in taken]
    return fresh, taken


def take_in(roost, saved, item):
    if item["type"] == "completion":
        saved["open"] -= 1
        if item["outcome"]["status"] == "completed" and item["answer"].isdigit():
            saved["words"] += int(item["answer"])
        else:
            saved["failed"].append(item["name"])
    elif item["type"] == "task" and "\n" in item["text"].strip():
        argv = [sys.executable, os.path.abspath(__file__)]
        tasks = [{"argv": argv, "runner": "worker", "task": line} for line in item["text"].strip().split("\n")]
        umask = os.umask(0o077)
        os.umask(umask)
        env = [[wire(name), wire(value)] for name, value in os.environb.items() if not name.startswith(b"ROOST_")]
        submitter = {"env": env, "cwd": wire(os.getcwdb()), "umask": umask}
        receipt = roost.call("launch", request_id=uuid.uuid4().hex, tasks=tasks, submitter=submitter)
        saved["open"] = len(receipt["tasks"])
    elif item["type"] == "task":
        saved["words"] = len(item["text"].split())


def main():
    if "ROOST_WORKER" not in os.environ:
        sys.exit("agent.py: run me under roost, see the top of this file")
    roost = Roost()
    saved = {"words": 0, "open": 0, "failed": [], "seen": []}
    if roost.welcome["worker"]["wakes"]:
        with open(os.environ["ROOST_CONTEXT"]) as file:
            saved = json.load(file)
    while (said := roost.next()) is not None:
        if said["method"] == "park":
            # All that we know was saved when the last turn ended.
            if roost.call("park_ready")["parked"]:
                return
        if said["method"] != "deliver":
            continue
        items = said["params"]["items"]
        fresh, taken = accept(roost, saved, items)
        if items and not fresh:
            continue  # Told twice. What is gone is no turn less: it was read by another way.
        if not items:
            saved["open"] = 0  # Woken without a word: whoever is still open was stopped.
        for item in taken:
            take_in(roost, saved, item)
        turn = {"request_id": uuid.uuid4().hex, "context": {"bytes": json.dumps(saved)}}
        if saved["open"] == 0:
            turn["answer"] = f"failed: {', '.join(saved['failed'])}" if saved["failed"] else str(saved["words"])
        if roost.call("settle", **turn)["next"] == "exit":
            return


main()
