// Reads the sorted tables of LevelDB, in which checkpoints of TensorFlow have their index. Source:
// tensorflow/core/lib/io/format.cc and doc/table_format.md of LevelDB.
//
//   table = data blocks, one after the other; a block that has no use here; the index block; footer
//   block = entries; restarts (32 bits each); their count (32 bits); then, behind the block, a byte that says how it is
//           compressed, and a checksum (32 bits)
//   entry = three varints: bytes that the key shares with the key before, other bytes of the key, bytes of the value;
//           then the other bytes of the key, and the value
//   index = a block whose values are the places of the data blocks (offset and length, varints)
//   footer = the places of the block without a use and of the index block, padded to 40 bytes; magic number (64 bits)
//
// All numbers are little-endian.
#pragma once

#include <functional>
#include <string_view>

#include "weft/content.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// `key`: any bytes, valid during the visit. `value`: the place of the value in the file.
using VisitTableEntry = std::function<Status(std::string_view key, Range value)>;

// Visits all entries of a table in the order of their keys, until one visit fails. Each byte of the file is read at
// most once, and memory has the index block and one data block of at most limits::kTableBlockMax bytes. Keys rise from
// entry to entry. All together have at most limits::kTableKeysMax bytes, because a small file can repeat one text in
// many. `verify`: compares checksums. Errc::invalid: the bytes are no table. Errc::unsupported: a block is compressed,
// or the table is too large. The source and a visit return errors of their own.
Status each_table_entry(ByteSource& file, bool verify, const VisitTableEntry& visit);

}  // namespace weft
