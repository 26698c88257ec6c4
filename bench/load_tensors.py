"""Loads tensors as frameworks do, for the benches: reads lines `HOW PATH [NAME]`, answers each with its seconds, or with
`failed: REASON`.

HOW: load_file   safetensors.torch.load_file, then the sum of every tensor
     in_order    safe_open, then each tensor in the file's order, summed
     get_tensor  safe_open, then tensor NAME, summed
     npy         numpy.load of a view, every byte looked at
"""

import sys
import time

import numpy
import torch
from safetensors import safe_open
from safetensors.torch import load_file


def whole(path):
    return sum(float(tensor.sum()) for tensor in load_file(path).values())


def in_order(path):
    with safe_open(path, "pt") as file:
        return sum(float(file.get_tensor(name).sum()) for name in file.offset_keys())


def get_tensor(path, name):
    with safe_open(path, "pt") as file:
        return float(file.get_tensor(name).sum())


def npy(path):
    return float(numpy.load(path).view(numpy.uint8).max())


WAYS = {"load_file": whole, "in_order": in_order, "get_tensor": get_tensor, "npy": npy}


def main():
    torch.set_grad_enabled(False)
    for line in sys.stdin:
        how, *arguments = line.split()
        begin = time.perf_counter()
        try:
            WAYS[how](*arguments)
            print(f"{time.perf_counter() - begin:.6f}", flush=True)
        except Exception as failure:  # pylint: disable=broad-except
            print("failed:", " ".join(str(failure).split()), flush=True)


if __name__ == "__main__":
    main()
