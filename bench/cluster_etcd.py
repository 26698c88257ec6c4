"""An etcd of one node for a bench: on loopback, its data beside the stores, ended with the context."""

import contextlib
import socket
import subprocess
import time

START_SECONDS_MAX = 60


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def running(directory):
    """The endpoint's URL."""
    url, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    process = subprocess.Popen(
        ["etcd", "--data-dir", str(directory / "etcd"), "--listen-client-urls", url, "--advertise-client-urls", url,
         "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
         "--quota-backend-bytes", str(8 << 30), "--log-level", "error"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        begin = time.monotonic()
        while subprocess.run(["etcdctl", "--endpoints", url, "endpoint", "health"], check=False,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            if process.poll() is not None or time.monotonic() - begin > START_SECONDS_MAX:
                raise RuntimeError("etcd does not start")
            time.sleep(0.1)
        yield url
    finally:
        process.kill()
        process.wait()
