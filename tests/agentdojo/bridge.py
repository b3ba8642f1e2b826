"""Relays standard input and output to a Unix socket: the process that the guard starts as its MCP server."""

import os
import socket
import sys
import threading

link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])


def upward():
    while data := os.read(0, 65536):
        link.sendall(data)
    link.shutdown(socket.SHUT_WR)


threading.Thread(target=upward, daemon=True).start()
while data := link.recv(65536):
    os.write(1, data)
