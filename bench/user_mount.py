"""Mounts as users make them: with the options that are named, and no other. The tests' own mounts keep attributes for a second,
which is no default."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

from weftlib import Mount  # noqa: E402


class UserMount(Mount):
    """A mount of a store, with default options if none is given. A context."""

    def __init__(self, store, where, options=None):
        super().__init__(store, where)
        self.options = options or "defaults"


def options_text(options):
    """The mount options as a table names them."""
    return options or "default"


__all__ = ["UserMount", "options_text"]
