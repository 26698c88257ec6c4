"""Reads the images of a data set through torchvision's own classes and a DataLoader of eight workers. Prints a digest of each
image, with its label, as JSON. argv: the data set's directory. Run it where it may write: LSUNClass keeps a list of keys."""
import hashlib
import importlib.util
import json
import pathlib
import re
import sys

import numpy
import torch
from torch.utils.data import DataLoader

WORKERS = 8


def declare_operators():
    """For a torchvision whose operators are of another build of torch. None is used here, but the package asks for them."""
    origin = pathlib.Path(importlib.util.find_spec("torchvision").origin).parent
    text = (origin / "_meta_registrations.py").read_text()
    library = torch.library.Library("torchvision", "DEF")
    for names in sorted(set(re.findall(r'register_meta\("(\w+)"\)|torchvision::(\w+)', text))):
        library.define(f"{''.join(names)}(Tensor x) -> Tensor")
    return library


def digests(dataset):
    rows = DataLoader(dataset, batch_size=None, num_workers=WORKERS, timeout=120)
    return [(hashlib.sha256(numpy.ascontiguousarray(image).tobytes()).hexdigest(), None if label is None else int(label))
            for image, label in rows]


def main():
    library = None
    try:
        from torchvision.datasets import ImageFolder, LSUNClass
    except RuntimeError:  # an operator does not exist
        library = declare_operators()
        from torchvision.datasets import ImageFolder, LSUNClass
    root = pathlib.Path(sys.argv[1])
    print(json.dumps({"lsun": digests(LSUNClass(str(root / "lsun"), transform=numpy.asarray)),
                      "folder": digests(ImageFolder(str(root / "images"), transform=numpy.asarray))}))
    del library


if __name__ == "__main__":
    main()
