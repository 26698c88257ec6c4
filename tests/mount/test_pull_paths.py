"""The way to a hub: TLS with the authorities that the environment names, proxies, and where the token goes."""
import urllib.parse

import pytest

from hub_double import Hub
from proxy_double import Authority, Proxy
from weftlib import WEFT, assert_refused, environment, random_tensors, run, write_model

TOKEN = "hf_TheSecretOfThisTest"
OF_THIS_MACHINE = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "curl_ca_bundle", "ssl_cert_file", "ssl_cert_dir")


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls") / "own")


@pytest.fixture
def hub(authority, tmp_path):
    """With a gated repository, whose large file the storage has."""
    write_model(tmp_path / "repository", random_tensors(1, 1 << 20, seed="paths"))
    with Hub(tls=authority.context) as one:
        one.add("org/bert", tmp_path / "repository", gated=True, readers={TOKEN})
        yield one


def pull(store, hub, **extra):
    env = {name: value for name, value in environment().items() if name.lower() not in OF_THIS_MACHINE}
    env |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": "/nonexistent/hf", "HF_TOKEN": TOKEN}
    return run([WEFT, "--store", store.path, "pull", "hf:org/bert"], check=False, env=env | extra)


def assert_pulled(store, hub, done):
    """The storage refuses a request with a token, and so does this."""
    assert done.returncode == 0, done.stderr
    assert store.json("ls", "org/bert")["versions"]
    assert {one.token for one in hub.asked("hub")} == {TOKEN}
    assert {one.headers.get("authorization") for one in hub.asked("storage")} == {None}


def target(url):
    return urllib.parse.urlsplit(url).netloc


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "SSL_CERT_DIR"])
def test_tls_with_an_authority_of_the_environment(store, hub, authority, tmp_path, variable):
    place = authority.ca
    if variable == "SSL_CERT_DIR":
        place = tmp_path / "authorities"
        place.mkdir()
        (place / "own.pem").write_bytes(authority.ca.read_bytes())
        run(["openssl", "rehash", place])
    assert_pulled(store, hub, pull(store, hub, **{variable: str(place)}))


def test_a_certificate_of_another_authority_is_refused(store, hub, tmp_path):
    """Also without any, and before the token is sent."""
    other = Authority(tmp_path / "other")
    for extra in ({}, {"SSL_CERT_FILE": str(other.ca)}, {"SSL_CERT_FILE": str(tmp_path / "none.pem")}):
        assert_refused(pull(store, hub, **extra), "hf:org/bert", "cert")
    assert hub.asked() == []


def test_a_certificate_for_another_host_is_refused(store, tmp_path):
    other = Authority(tmp_path / "other", addresses=["127.0.0.9"])
    with Hub(tls=other.context) as hub:
        assert_refused(pull(store, hub, SSL_CERT_FILE=str(other.ca)), "hf:org/bert", "cert")
        assert hub.asked() == []


def test_a_proxy_tunnels_and_gets_no_token(store, hub, authority):
    with Proxy() as proxy:
        done = pull(store, hub, SSL_CERT_FILE=str(authority.ca), HTTPS_PROXY=proxy.url)
        assert_pulled(store, hub, done)
        assert proxy.targets() == {target(hub.endpoint), target(hub.storage)}
        assert not any(TOKEN in line or line.lower().startswith("authorization") for head in proxy.heads for line in head)


def test_no_proxy_names_hosts_without_a_proxy(store, hub, authority):
    with Proxy() as proxy:
        done = pull(store, hub, SSL_CERT_FILE=str(authority.ca), HTTPS_PROXY=proxy.url, NO_PROXY="127.0.0.1")
        assert_pulled(store, hub, done)
        assert proxy.targets() == {target(hub.storage)}


def test_a_proxy_that_is_not_there_is_an_error(store, hub, authority):
    done = pull(store, hub, SSL_CERT_FILE=str(authority.ca), HTTPS_PROXY="http://127.0.0.1:1")
    assert_refused(done, "hf:org/bert")
    assert hub.asked() == []


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2"], ids=["another port", "another host"])
def test_a_redirect_to_another_server_takes_no_token_there(store, hub, authority, tmp_path, address):
    with Hub(address=address, tls=authority.context) as other, Proxy() as proxy:
        other.add("org/bert", tmp_path / "repository")
        hub.trouble("redirect", path="*/config.json", to=f"{other.endpoint}/org/bert/resolve/main/config.json")
        done = pull(store, hub, SSL_CERT_FILE=str(authority.ca), HTTPS_PROXY=proxy.url)
        assert_pulled(store, hub, done)
        assert other.asked("hub") and {one.headers.get("authorization") for one in other.asked()} == {None}
        assert TOKEN not in str(proxy.heads) + done.stdout + done.stderr


@pytest.mark.parametrize("place", ["x?t=", "x/"], ids=["query", "path"])
def test_a_redirect_that_has_the_token_in_it_is_refused(store, hub, authority, place):
    hub.trouble("redirect", path="*/resolve/*", to=f"{hub.storage}/{place}{TOKEN}")
    done = pull(store, hub, SSL_CERT_FILE=str(authority.ca))
    assert_refused(done, "hf:org/bert", "redirect", "token")
    assert TOKEN not in done.stdout + done.stderr
    assert hub.asked("storage") == [] and store.json("ls")["models"] == []
