"""Starts a Python program again and again without importing its framework each time, which takes seconds.

  FRAMEWORK/python forkserver.py serve SOCKET PROGRAM   imports what the program imports, and waits
  python3 forkserver.py run SOCKET [ARGUMENT…]          is the program: it runs in a fresh fork, with the caller's
                                                        arguments, environment, directory and files, and ends as it does

A run that is killed takes its fork with it. `scripts/truth --plain` does without.
"""

import ast
import json
import os
import selectors
import signal
import socket
import sys

MAX_REQUEST = 1 << 20


def run(place, arguments):
    """Has the program run, and ends with its status."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(place)
        request = {"arguments": arguments, "environment": dict(os.environ), "directory": os.getcwd()}
        body = json.dumps(request).encode()
        socket.send_fds(server, [len(body).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(body)
        status = server.recv(1)
    sys.exit(status[0] if status else 1)


def import_all(program):
    """Makes the imports of a program, and nothing else of it."""
    with open(program) as file:
        tree = ast.parse(file.read(), program)
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    exec(compile(ast.Module(imports, []), program, "exec"), {})


def child(program, request, files):
    """Becomes the program."""
    import runpy

    for number, file in enumerate(files):
        os.dup2(file, number)
    os.setsid()
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["directory"])
    sys.argv = [program, *request["arguments"]]
    status = 0
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


def receive(connection):
    """What a caller asks for, with its files."""
    head, files, _, _ = socket.recv_fds(connection, 4, 3)
    length, body = int.from_bytes(head, "big"), b""
    while len(body) < min(length, MAX_REQUEST):
        piece = connection.recv(length - len(body))
        if not piece:
            raise ConnectionError
        body += piece
    return json.loads(body), files


def serve(place, program):
    import_all(program)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{place}.new")
    listener.listen(128)
    # Whoever sees it can connect.
    os.rename(f"{place}.new", place)
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.data is None:
                connection, _ = listener.accept()
                try:
                    request, files = receive(connection)
                except (OSError, ValueError):
                    connection.close()
                    continue
                process = os.fork()
                if process == 0:
                    waiting.close()
                    listener.close()
                    connection.close()
                    child(program, request, files)
                for file in files:
                    os.close(file)
                # One of both ends first: the fork, or the one who asked for it.
                pair = (process, os.pidfd_open(process), connection)
                waiting.register(pair[1], selectors.EVENT_READ, pair)
                waiting.register(connection, selectors.EVENT_READ, pair)
            else:
                end(waiting, *key.data)


def end(waiting, process, handle, connection):
    if connection.fileno() == -1:
        # Both were told of at the same time.
        return
    # It leads a session, unless it is quite new, and takes with it what it started.
    for kill in (os.kill, os.killpg):
        try:
            kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    _, status = os.waitpid(process, 0)
    try:
        code = os.waitstatus_to_exitcode(status)
        connection.send(bytes([code if code >= 0 else 128 - code]))
    except OSError:
        pass
    waiting.unregister(handle)
    waiting.unregister(connection)
    os.close(handle)
    connection.close()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        run(sys.argv[2], sys.argv[3:])
