"""scripts/bench endpoint: whole-file GETs of local bytes from weftd's endpoint for clients of a model hub, against nginx.

Both serve one file of the same bytes from the page cache, over loopback, to `curl -o /dev/null`. The GETs alternate. CPU seconds
are those of the server, with its workers."""

import argparse
import contextlib
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

from daemonlib import Daemon  # noqa: E402
from endpointlib import ask, free_port  # noqa: E402
from measure import PAIR_HEAD, Pairs, end_by_signals, machine, processor_seconds, run, seconds  # noqa: E402
from weftlib import Store, random_tensors, write_model  # noqa: E402

GOAL = 0.8
TENSORS = 16
FILE = "model.safetensors"
NGINX = """daemon off;
pid {place}/nginx.pid;
error_log {place}/nginx.log;
worker_processes auto;
user root;
events {{ worker_connections 64; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  client_body_temp_path {place}/nginx-body;
  proxy_temp_path {place}/nginx-proxy;
  fastcgi_temp_path {place}/nginx-fastcgi;
  uwsgi_temp_path {place}/nginx-uwsgi;
  scgi_temp_path {place}/nginx-scgi;
  server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""


def workers_of(pid):
    """The process and its children."""
    found = [pid]
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(status.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(status.parent.name))
    return found


@contextlib.contextmanager
def nginx(place, root, port):
    """Serves a directory; gives the process id."""
    config = place / "nginx.conf"
    config.write_text(NGINX.format(place=place, root=root, port=port))
    server = subprocess.Popen(["nginx", "-p", str(place), "-c", str(config)])
    try:
        end = time.monotonic() + 10
        while subprocess.run(["curl", "--silent", "--head", "--output", "/dev/null", f"http://127.0.0.1:{port}/{FILE}"],
                             check=False).returncode != 0:
            if time.monotonic() > end:
                raise SystemExit(f"nginx does not answer: {(place / 'nginx.log').read_text()}")
            time.sleep(0.05)
        yield server.pid
    finally:
        server.terminate()
        server.wait()


class Side:
    """A server of the file, and what its GETs took."""

    def __init__(self, url, pid):
        self.url, self.pid, self.processor = url, pid, []

    def get(self):
        before = sum(map(processor_seconds, workers_of(self.pid)))
        took = seconds("curl", "--silent", "--show-error", "--fail", "--noproxy", "*", "--output", "/dev/null", self.url)
        self.processor.append(sum(map(processor_seconds, workers_of(self.pid))) - before)
        return took

    def row(self, name, pairs):
        used = sorted(self.processor[-pairs:])
        return f"| {name} | {used[len(used) // 2]:.2f} s | {used[0]:.2f} to {used[-1]:.2f} s |"


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench endpoint", description=__doc__)
    parser.add_argument("--dir", default="/var/tmp", help="where the store and the file are")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=1024)
    options = parser.parse_args()
    end_by_signals()
    with tempfile.TemporaryDirectory(prefix="weft-bench.", dir=options.dir) as directory:
        place = pathlib.Path(directory)
        place.chmod(0o755)
        print(f"Taken on {machine(place)}, {run('nginx', '-v', stderr=subprocess.STDOUT).split()[-1]}.\n")
        source = write_model(place / "source", random_tensors(TENSORS, (options.megabytes << 20) // TENSORS, seed="endpoint"))
        store = Store(place / "store")
        store.publish(source, name="org/m")
        port, peer_port = free_port(), free_port()
        with Daemon(store, "--hub-listen", f"127.0.0.1:{port}") as daemon, nginx(place, source, peer_port) as peer_pid:
            ours = Side(f"http://127.0.0.1:{port}/org/m/resolve/main/{FILE}", daemon.pid)
            peer = Side(f"http://127.0.0.1:{peer_port}/{FILE}", peer_pid)
            size = (source / FILE).stat().st_size
            for side in (ours, peer):
                if int(ask(side.url, "HEAD").fields["Content-Length"]) != size:
                    raise SystemExit(f"{side.url}: expected {size} bytes")
            pairs = Pairs.alternate(options.pairs, ours.get, peer.get, warm_up=1)
    print(PAIR_HEAD)
    print(pairs.row(f"GET of {size / 2**20:.0f} MiB, against nginx", GOAL))
    print("\n| CPU of the server, for one GET | median | range |\n|---|---|---|")
    print(ours.row("weftd", options.pairs))
    print(peer.row("nginx", options.pairs))


if __name__ == "__main__":
    main()
