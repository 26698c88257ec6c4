"""Distributed checkpoints as torch.distributed.checkpoint writes them, made without PyTorch."""

import struct


def dcp_metadata(files):
    """A .metadata that places one item of one byte in each of these files. In opcodes of protocol 2."""
    def text(value):
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    def instance(attributes):
        return b"cm\nObject\n)\x81}(" + attributes + b"ub"

    places = [instance(text("fqn") + text(str(number)))
              + instance(text("relative_path") + text(name) + text("offset") + b"K\0" + text("length") + b"K\1")
              for number, name in enumerate(files)]
    return (b"\x80\2" + instance(text("state_dict_metadata") + b"}" + text("storage_data") + b"}(" + b"".join(places) + b"u")
            + b".")
