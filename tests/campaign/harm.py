"""Random damage to the files of a store."""
import collections
import hashlib

from store_files import files_of, kind_of, named_by

SMALL_MAX = 1 << 20
BLOCK = 4096
MORE_ODDS = 0.35  # how often one damage is followed by another
WHOLE_KIND_ODDS = 0.06


def flip(rng, path):
    """One to eight bits."""
    data = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 8) if rng.random() < 0.5 else 1):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def truncate(rng, path):
    with open(path, "r+b") as file:
        file.truncate(rng.randrange(path.stat().st_size))


def zero(rng, path):
    """A sector or a block."""
    unit = rng.choice([512, BLOCK])
    data = bytearray(path.read_bytes())
    begin = rng.randrange((len(data) + unit - 1) // unit) * unit
    data[begin:begin + unit] = bytes(len(data[begin:begin + unit]))
    path.write_bytes(data)


def extend(rng, path):
    with open(path, "ab") as file:
        file.write(rng.randbytes(rng.randint(1, BLOCK)))


def delete(_, path):
    path.unlink()


def empty(_, path):
    path.write_bytes(b"")


WAYS = [(flip, 6), (truncate, 3), (zero, 3), (delete, 3), (extend, 1), (empty, 1)]


def by_kind(store):
    """Kind -> files, in an order that does not depend on their random names."""
    found = collections.defaultdict(list)
    for relative, path in files_of(store).items():
        if path.stat().st_size > 0:
            found[kind_of(relative)].append(path)
    for paths in found.values():
        paths.sort(key=lambda path: hashlib.sha256(named_by(path).read_bytes()).digest())
    return found


def swap(rng, paths):
    first, second = rng.sample(paths, k=2)
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)


def damage_once(rng, store):
    """Damages one file, or all of a kind in one way. Returns what it did."""
    kinds = by_kind(store)
    if not kinds:
        return "nothing is left"
    kind = rng.choice(sorted(kinds))
    paths = kinds[kind]
    if len(paths) > 1 and rng.random() < 0.15:
        swap(rng, paths)
        return f"swap two of {kind}"
    way = rng.choices([way for way, _ in WAYS], [weight for _, weight in WAYS])[0]
    if rng.random() < WHOLE_KIND_ODDS:
        for path in paths:
            way(rng, path)
        return f"{way.__name__} each {kind}"
    way(rng, rng.choice(paths))
    return f"{way.__name__} {kind}"


def damage(store, rng):
    """One damage or more. Returns what was done, in words."""
    done = [damage_once(rng, store)]
    while rng.random() < MORE_ODDS and len(done) < 5:
        done.append(damage_once(rng, store))
    return ", ".join(done)
