"""What stands between a client and a hub: an authority for certificates, and a proxy for tunnels."""
import select
import socket
import socketserver
import ssl
import threading

from weftlib import run

PIECE = 1 << 16


class Authority:
    """Makes its own certificate, CA, and one for these addresses. `contexts` of servers have the latter."""

    def __init__(self, directory, addresses=("127.0.0.1", "127.0.0.2")):
        directory.mkdir()
        self.ca, key = directory / "ca.pem", directory / "ca.key"
        self.make("-x509", "-subj", "/CN=authority of a test", "-keyout", key, "-out", self.ca)
        names = ",".join(f"IP:{address}" for address in addresses)
        self.make("-x509", "-CA", self.ca, "-CAkey", key, "-subj", "/CN=hub", "-addext", f"subjectAltName={names}",
                  "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", directory / "hub.key", "-out", directory / "hub.pem")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(directory / "hub.pem", directory / "hub.key")

    @staticmethod
    def make(*words):
        run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", *words])


class Tunnel(socketserver.StreamRequestHandler):
    def handle(self):
        head = []
        while (line := self.rfile.readline().strip()):
            head.append(line.decode())
        self.server.heads.append(head)
        method, target, _ = head[0].split()
        if method != "CONNECT":
            self.wfile.write(b"HTTP/1.1 405 no tunnel\r\n\r\n")
            return
        address, _, port = target.rpartition(":")
        with socket.create_connection((address, int(port))) as far:
            self.wfile.write(b"HTTP/1.1 200 a tunnel\r\n\r\n")
            self.copy(far)

    def copy(self, far):
        ends = {self.connection: far, far: self.connection}
        while True:
            for end in select.select(list(ends), [], [])[0]:
                piece = end.recv(PIECE)
                if not piece:
                    return
                ends[end].sendall(piece)


class Proxy(socketserver.ThreadingTCPServer):
    """As a context. `heads` has the lines of each request."""
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Tunnel)
        self.heads = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def targets(self):
        return {head[0].split()[1] for head in self.heads}

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exception):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """A client may go away at any time."""
