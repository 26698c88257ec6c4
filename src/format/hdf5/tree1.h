// B-trees of version 1: the entries of old groups, and the chunks of datasets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "format/hdf5/file.h"
#include "weft/result.h"

namespace weft {

enum class Hdf5Tree1Type : std::uint8_t { group = 0, chunks = 1 };

// Called for each child of a leaf, with the key before it.
using Hdf5Leaf = std::function<Status(Hdf5Fields key, std::uint64_t child)>;

// Reads the nodes of a tree, whose keys have `key_bytes` bytes. A child is one level below its parent.
Status read_tree1(Hdf5File& file, std::uint64_t root, Hdf5Tree1Type type, std::size_t key_bytes, const Hdf5Leaf& leaf);

}  // namespace weft
