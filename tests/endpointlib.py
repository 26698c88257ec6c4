"""How the tests ask the endpoint of weftd: as curl does, and as the clients of a model hub do."""
import json
import socket
import sys
import urllib.error
import urllib.request

from weftlib import environment, run


def free_port(host="127.0.0.1"):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def curl(*words, check=True, text=True):
    return run(["curl", "--silent", "--show-error", "--noproxy", "*", *words], check=check, text=text)


class Answer:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def json(self):
        return json.loads(self.body)

    @property
    def refusal(self):
        """The status and the code by which clients know it."""
        return self.status, self.fields.get("X-Error-Code")


def ask(url, method="GET", body=None, **fields):
    """`fields`: header fields, with '_' for '-'."""
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    request = urllib.request.Request(url, data=body, headers=named, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as answer:
            return Answer(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as answer:
        return Answer(answer.code, answer.headers, answer.read())


def client_environment(endpoint, home, **extra):
    """For a process with the hub's own client; it keeps what it gets in `home`."""
    return environment(HF_ENDPOINT=endpoint, HF_HOME=str(home), HOME=str(home), HF_HUB_DISABLE_TELEMETRY="1",
                       NO_PROXY="*", TOKENIZERS_PARALLELISM="false", **extra)


def client(script, endpoint, home, *words, check=True, wrapper=(), **extra):
    """Runs a script with huggingface_hub. Returns what it printed last, as JSON."""
    done = run([*wrapper, sys.executable, "-c", script, *map(str, words)], check=check, timeout=300,
               env=client_environment(endpoint, home, **extra))
    return json.loads(done.stdout.splitlines()[-1]) if check else done
