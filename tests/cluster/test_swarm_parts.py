"""Nodes that fetch a part of a version, beside others that fetch all or another part."""
import pytest

from clusterlib import Wire, can_make_networks
from nodes import SECONDS_MAX, Cluster
from readers import Reading
from swarmlib import MIB, TENSOR_BYTES, copies, end, shape
from weftlib import random_tensors, safetensors_bytes

pytestmark = pytest.mark.skipif(not can_make_networks(), reason="needs root, network name spaces and etcd")
# A letter for each file of the version. Files whose names differ in digits are shards: a node that reads one of them gets
# the others too.
FILES = "abcdefghij"
FILE_TENSORS = 2
FILE_BYTES = FILE_TENSORS * TENSOR_BYTES
WANTED = [(FILES, FILES, "cd", "cd"), ("cd", "cd", "de", "de")]  # files, by node
PART_COPIES_MAX = 2  # of the wanted files, that the holder sends to all; 2.7 if each node gets its own
COMPARE = 'ours=$1 theirs=$2; shift 2; for name; do cmp "$ours/$name" "$theirs/$name" || exit; done'


def file_name(letter):
    return f"{letter}.safetensors"


@pytest.fixture(name="parts", params=WANTED, ids="-".join)
def nodes_that_want_parts(tmp_path, request):
    """(holder, wanted files by other node, source of model@1), over slow links."""
    source = tmp_path / "source"
    source.mkdir()
    for letter in FILES:
        tensors = random_tensors(FILE_TENSORS, TENSOR_BYTES, seed=letter, prefix=letter)
        (source / file_name(letter)).write_bytes(safetensors_bytes(tensors))
    with Cluster(tmp_path, peers=True) as cluster:
        holder, *others = cluster.some(1 + len(request.param))
        cluster.publish(holder, source, "model")
        shape(cluster.nodes)
        yield holder, dict(zip(others, request.param)), source


def came_about_once(holder, before, wanted):
    """The holder has sent the wanted files once or little more to all nodes, and no node has got many bytes of others."""
    assert copies(holder, before, len(set("".join(wanted.values()))) * FILE_BYTES) <= PART_COPIES_MAX
    for node, letters in wanted.items():
        assert node.fetched() <= len(letters) * FILE_BYTES + MIB


def test_nodes_prefetch_parts_of_a_version(parts):
    holder, wanted, source = parts
    before = Wire(holder.host).sent
    fetches = [node.store.start("prefetch", "model@1", "--layers", f"[{letters}]") for node, letters in wanted.items()]
    for process in fetches:
        code, said = end(process)
        assert code == 0, said
    came_about_once(holder, before, wanted)
    for node, letters in wanted.items():
        with node.mounted() as mount:
            for name in map(file_name, letters):
                assert (mount.version("model", 1) / name).read_bytes() == (source / name).read_bytes()


def test_nodes_read_parts_of_a_version(parts):
    holder, wanted, source = parts
    before = Wire(holder.host).sent
    with Reading(list(wanted)) as reading:
        letters = dict(zip(reading.mounts, wanted.values()))
        reading.start(lambda mount: ["sh", "-c", COMPARE, "sh", source, mount.version("model", 1),
                                     *map(file_name, letters[mount])])
        assert reading.problems(SECONDS_MAX) == []
        came_about_once(holder, before, wanted)
