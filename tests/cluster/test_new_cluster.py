"""new/ of nodes of a cluster: etcd fails during a publish, and namespaces that other nodes made."""
import errno
import os
import stat

import pytest

from clusterlib import Etcd, can_make_networks
from nodes import SECONDS_MAX
from weftlib import NOBODY, files_below, process_of, random_tensors, wait_until, write_model

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")


def connected(node):
    return node.daemon.status()["registry"]["connected"]


def numbers(node, model):
    return [one["version"] for one in node.store.json("log", model)["versions"]]


@pytest.mark.parametrize("harm, mend, number", [(Etcd.kill, Etcd.start, errno.EHOSTUNREACH),
                                                (Etcd.stop_answering, Etcd.answer_again, errno.ETIMEDOUT)],
                         ids=["killed", "silent"])
def test_the_draft_stays_without_etcd(harm, mend, number, cluster):
    """If it is not known whether etcd took the version, the same rename tells, and there is one version."""
    node = cluster.node()
    with node.mounted("publish") as mount:
        draft = mount / "new/m"
        write_model(draft, random_tensors(2, 4096, seed="first"))
        os.rename(draft, f"{draft}@")
        before = files_below(write_model(draft, random_tensors(2, 4096, seed="second")))
        harm(cluster.etcd)
        if harm is Etcd.kill:
            wait_until(lambda: not connected(node), seconds_max=SECONDS_MAX)
        with pytest.raises(OSError) as refused:
            os.rename(draft, f"{draft}@")
        content = files_below(draft)
        said = content.pop(".weft.error").decode()
        assert "etcd" in said
        assert refused.value.errno == number, said
        assert content == before
        mend(cluster.etcd)
        wait_until(lambda: connected(node), seconds_max=SECONDS_MAX)
        os.rename(draft, f"{draft}@")
        assert not draft.exists()
        assert sorted(numbers(node, "m")) == [1, 2]
        assert files_below(mount / "models/m/latest") == before


def test_namespaces_of_other_nodes(cluster, tmp_path):
    """A node lists them, and any user who may publish begins a draft there."""
    one, two = cluster.node("--control-publish", NOBODY), cluster.node()
    with one.mounted("publish") as mount:
        assert os.listdir(mount / "new") == []
        for name in ("org/team/m", "plain"):
            cluster.publish(two, write_model(tmp_path / name, random_tensors(2, 4096, seed=name)), name)
        assert os.listdir(mount / "new") == ["org"]
        assert os.listdir(mount / "new/org") == ["team"]
        for path in ("org", "org/team"):
            assert stat.S_IMODE((mount / "new" / path).stat().st_mode) == 0o1777
        mount.let_in()
        draft = mount / "new/org/team/mine"

        def publish(companion):
            assert os.listdir(mount / "new/org/team") == []
            draft.mkdir()
            (draft / "x").write_bytes(b"x")
            os.rename(draft, f"{draft}@")
            companion.is_ready()

        with process_of(NOBODY, publish):
            wait_until(lambda: two.knows("org/team/mine@1"), seconds_max=SECONDS_MAX)


def test_each_node_has_its_own_drafts(cluster):
    """What is published from one shows on the other; what is not, does not."""
    one, two = cluster.some(2)
    with one.mounted("publish") as mount, two.mounted("publish") as other:
        for name in ("m", "draft"):
            (mount / "new" / name).mkdir()
            (mount / "new" / name / "x").write_bytes(name.encode())
        os.rename(mount / "new/m", mount / "new/m@")
        wait_until(lambda: two.knows("m@1"), seconds_max=SECONDS_MAX)
        assert (other / "models/m/1/x").read_bytes() == b"m"
        assert os.listdir(other / "new") == []
        assert os.listdir(mount / "new") == ["draft"]
