"""One rank of four that save or load distributed checkpoints: dcp_ranks.py save|load MEETING RANK DIR [WHOLE]."""
import subprocess
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

RANKS = 4
RANKED = "ranked"  # the checkpoint whose ranks have metadata of their own


def mixed(mesh, grid):
    """Tensors in shards of all kinds, equal on all ranks."""
    torch.manual_seed(0)

    def shard(tensor, *where):
        return distribute_tensor(tensor, mesh if len(where) == 1 else grid, list(where))

    return {"rows": shard(torch.randn(64, 33), Shard(0)), "columns": shard(torch.randn(48, 64), Shard(1)),
            "middle": shard(torch.randn(6, 20, 7), Shard(1)), "last": shard(torch.randn(3, 5, 16), Shard(2)),
            "uneven rows": shard(torch.randn(10, 7), Shard(0)), "uneven columns": shard(torch.randn(9, 11), Shard(1)),
            "both": shard(torch.randn(30, 26), Shard(0), Shard(1)), "replicated": shard(torch.randn(33, 3), Replicate()),
            "half": shard(torch.randn(40, 24).bfloat16(), Shard(1)), "fewer": shard(torch.randn(2, 5), Shard(0)),
            "plain": torch.randn(12, 13), "turned": torch.randn(40, 30).t(), "scalar": torch.tensor(1.5),
            "integers": shard(torch.arange(64).reshape(8, 8), Shard(1)), "step": 5}


def trained(mesh):
    """A model and its optimizer after one step of FSDP2."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(32, 24), torch.nn.Linear(24, 7))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    adam = torch.optim.AdamW(model.parameters())
    model(torch.randn(4, 32)).sum().backward()
    adam.step()
    weights, states = get_state_dict(model, adam)
    return {"model": weights, "optim": states}


def flattened(value, name=""):
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else None
    if pairs is None:
        return {name: value}
    found = {}
    for key, inner in pairs:
        found.update(flattened(inner, f"{name}.{key}" if name else str(key)))
    return found


def ranked(mesh, rank):
    """Shards, a tensor that all ranks have, one of each rank under one name, and one that no other rank has."""
    torch.manual_seed(2)
    return {"rows": distribute_tensor(torch.randn(64, 33), mesh, [Shard(0)]),
            "columns": distribute_tensor(torch.randn(9, 11), mesh, [Shard(1)]),
            "fewer": distribute_tensor(torch.randn(2, 5), mesh, [Shard(0)]),
            "plain": torch.randn(300, 13), "own": torch.full((7,), float(rank)), f"only {rank}": torch.full((3, 5), float(rank)),
            "step": 5}


def whole(state):
    return {name: value.full_tensor() if isinstance(value, DTensor) else value.contiguous()
            for name, value in flattened(state).items() if isinstance(value, torch.Tensor)}


def emptied(state):
    """The same shards with other values."""
    if isinstance(state, dict):
        return {key: emptied(value) for key, value in state.items()}
    return torch.zeros_like(state) if isinstance(state, torch.Tensor) else state


def all_ranks(meeting, action, *arguments):
    """Runs all ranks, which meet at a new file."""
    ranks = [subprocess.Popen([sys.executable, __file__, action, meeting, str(rank), *arguments], stderr=subprocess.PIPE,
                              text=True) for rank in range(RANKS)]
    failed = [rank.communicate(timeout=300)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * RANKS, failed


def main(action, meeting, rank, directory, path=None):
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=int(rank), world_size=RANKS)
    mesh, grid = init_device_mesh("cpu", (RANKS,)), init_device_mesh("cpu", (2, 2))
    states = {"mixed": mixed(mesh, grid), "fsdp2": trained(mesh)}
    # Shards in safetensors files. These have tensors in C order only.
    states["shards"] = {name: value for name, value in states["mixed"].items() if name not in ("step", "turned")}
    states[RANKED] = ranked(mesh, int(rank))
    for name, state in states.items():
        if action == "save":
            to = f"{directory}/{name}"
            writer = dcp.HuggingFaceStorageWriter(path=to, save_distributed=True) if name == "shards" else None
            dcp.save(state, checkpoint_id=to, storage_writer=writer, use_collectives=name != RANKED)
            tensors = whole(state)
            if rank == "0":
                torch.save(tensors, f"{path}/{name}.pt")
        else:
            loaded, at = emptied(state), f"{directory}/{name}/1"
            reader = dcp.HuggingFaceStorageReader(path=at) if name == "shards" else None
            dcp.load(loaded, checkpoint_id=at, storage_reader=reader)
            expected, got = whole(state), whole(loaded)
            assert got.keys() == expected.keys()
            for key, tensor in expected.items():
                assert torch.equal(got[key], tensor), (name, key)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
