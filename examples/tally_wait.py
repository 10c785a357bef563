#!/usr/bin/env python3
"""tally_wait.py DIR: the job of examples/tally with blocking waits instead of parking. Python 3 alone, no packages.

Each directory is a worker. It launches a child per sub-directory with `roost spawn --tasks -` and blocks in `roost wait`:
meanwhile Roost lends its slot to others (`blocked` in `roost status`), so that even `--cap 1` finishes. A parked worker has no
process at all; one that waits like this keeps its own. Outside of Roost it starts itself under `roost run`.

    PATH=target/debug:$PATH examples/tally_wait.py ~/src
    roost run --cap 1 --budget 500 -- examples/tally_wait.py ~/src

$ROOST names the command when it is not on PATH. Symbolic links are not followed; only regular files count.
"""
import json
import os
import subprocess
import sys

ROOST = os.environ.get("ROOST", "roost")


def wire(text):
    """A word for JSON: a string, or its bytes when it is not UTF-8."""
    raw = os.fsencode(text)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"bytes": list(raw)}


def roost(*words, data=None, check=True):
    return subprocess.run([ROOST, *words], input=data, stdout=subprocess.PIPE, check=check).stdout


def scan(directory):
    """Files, lines, bytes, the largest file as [-size, path], and the sub-directories."""
    files, lines, size, largest, below = 0, 0, 0, None, []
    with os.scandir(directory) as entries:
        for entry in entries:
            path = os.path.join(directory, entry.name)
            if entry.is_dir(follow_symlinks=False):
                below.append(path)
            elif entry.is_file(follow_symlinks=False):
                length = 0
                with open(path, "rb") as file:
                    while chunk := file.read(1 << 16):
                        length += len(chunk)
                        lines += chunk.count(b"\n")
                files += 1
                size += length
                largest = smaller(largest, [-length, os.fsencode(path).hex()])
    return [files, lines, size, largest], sorted(below)


def smaller(a, b):
    """Of two [-size, path in hex] the one that sorts first; hex keeps the order of bytes and carries any name."""
    return min((x for x in (a, b) if x), default=None)


def count_below(directory):
    found, todo = 0, [directory]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found += 1
                    todo.append(entry.path)
    return found


def work(directory):
    totals, below = scan(directory)
    names = []
    for first in range(0, len(below), 20):
        tasks = [
            {
                "argv": [wire(w) for w in (sys.executable, os.path.abspath(__file__), "--child", path)],
                "max_subagents_allowed": count_below(path),
            }
            for path in below[first : first + 20]
        ]
        receipt = json.loads(roost("spawn", "--json", "--tasks", "-", data=json.dumps({"tasks": tasks}).encode()))
        names += [task["name"] for task in receipt["tasks"]]
    if names:
        # One line per child; a failed one fails us by its name.
        ended = subprocess.run([ROOST, "wait", "--all"], stdout=subprocess.PIPE)
        if ended.returncode != 0:
            bad = [line for line in ended.stdout.decode().splitlines() if not line.endswith(" completed")]
            sys.exit(f"tally_wait: {'; '.join(bad) or 'the wait failed'}")
    for name in names:
        child = json.loads(roost("result", name, "--raw"))
        totals = [a + b for a, b in zip(totals[:3], child[:3])] + [smaller(totals[3], child[3])]
    return totals


def main(words):
    is_child = words[:1] == ["--child"] and len(words) == 2
    if not is_child and len(words) != 1:
        sys.exit("usage: tally_wait.py DIR")
    directory = words[-1]
    try:
        if not os.environ.get("ROOST_WORKER"):
            own = [sys.executable, os.path.abspath(__file__), directory]
            os.execvp(ROOST, [ROOST, "run", "--budget", str(count_below(directory) + 1), "--", *own])
        totals = work(directory)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"tally_wait: {error}")
    if is_child:
        print(json.dumps(totals))
        return
    files, lines, size, largest = totals
    sys.stdout.buffer.write(b"files %d\nlines %d\nbytes %d\nlargest" % (files, lines, size))
    sys.stdout.buffer.write((b" " + bytes.fromhex(largest[1]) if largest else b"") + b"\n")


main(sys.argv[1:])
