"""An S3 in memory on 127.0.0.1. Prints its URL, has the buckets of its arguments, and ends with its stdin."""

import logging
import sys
import urllib.request

from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
url = f"http://{host}:{port}"
for bucket in sys.argv[1:]:
    urllib.request.urlopen(urllib.request.Request(f"{url}/{bucket}", method="PUT")).close()
print(url, flush=True)
sys.stdin.read()
server.stop()
