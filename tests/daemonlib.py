"""How the tests drive weftd."""
import json
import os
import pathlib
import signal
import socket
import subprocess

from weftlib import BUILD, PATIENCE, environment, is_alive, wait_until

WEFTD = BUILD / "daemon/weftd"
START_SECONDS_MAX = 60 * PATIENCE


class Daemon:
    """A weftd of a store, as a context; it is ended whatever happens inside."""

    def __init__(self, store, *options, ready=True, config=None, wrapper=()):
        self.store, self.options, self.ready, self.wrapper = store, [str(word) for word in options], ready, wrapper
        self.config = config
        self.process = None
        self.log = pathlib.Path(str(store.path) + ".weftd.log")
        self.notified = pathlib.Path(str(store.path) + ".notify")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.kill()
        self.close()

    def start(self):
        self.close()
        self.notified.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        # An address is at most 107 bytes long.
        self.directory = os.open(self.notified.parent, os.O_PATH | os.O_DIRECTORY)
        self.listener.bind(f"/proc/self/fd/{self.directory}/{self.notified.name}")
        self.listener.settimeout(START_SECONDS_MAX)
        with self.log.open("a") as log:
            self.process = subprocess.Popen([*self.wrapper, *self.words()], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=environment(NOTIFY_SOCKET=str(self.notified)))
        if self.ready:
            self.wait_ready()
        return self

    def words(self):
        """The command that starts it."""
        config = ["--config", str(self.config)] if self.config else []
        return [str(WEFTD), "--store", str(self.store.path), *self.options, *config]

    def close(self):
        if getattr(self, "listener", None):
            self.listener.close()
            os.close(self.directory)
            self.listener = None

    def hears(self, word):
        """Waits until the daemon notifies of this."""
        while True:
            try:
                said = self.listener.recv(4096).decode()
            except TimeoutError:
                raise AssertionError(f"weftd never said {word}\n{self.log.read_text()}") from None
            if said.startswith(word):
                return said

    def wait_ready(self):
        self.hears("READY=1")

    @property
    def pid(self):
        return self.process.pid

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=60):
        return self.process.wait(seconds)

    def stop(self):
        """As systemd does; the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def alive(self):
        return is_alive(self.pid)

    def said(self):
        return self.log.read_text()

    def status(self):
        return self.store.json("status")["daemon"]

    def ask(self, request, body=None):
        """The body of the answer, or (code, message) of an error: over a connection of its own."""
        with self.connect() as connection:
            send(connection, {"id": 1, "request": request, "body": body or {}})
            answer = receive(connection)
        return answer.get("body", {}) if answer.get("answer") else (answer["error"], answer["message"])

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(60)
        directory = os.open(self.store.path, os.O_PATH | os.O_DIRECTORY)
        try:
            connection.connect(f"/proc/self/fd/{directory}/weftd.sock")
        finally:
            os.close(directory)
        return connection


def send(connection, message):
    text = json.dumps(message).encode()
    connection.sendall(len(text).to_bytes(4, "little") + text)


def receive(connection):
    def exactly(count):
        got = b""
        while len(got) < count:
            part = connection.recv(count - len(got))
            if not part:
                raise ConnectionError("closed by weftd")
            got += part
        return got
    return json.loads(exactly(int.from_bytes(exactly(4), "little")))


def metrics(text):
    """Sample -> value, of Prometheus text; what is not one is an error."""
    samples = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            samples[name] = float(value)
    return samples


__all__ = ["Daemon", "WEFTD", "metrics", "receive", "send", "wait_until"]
