// The note about a file that is being received, NOTES/NAME: the number of received bytes of each piece
// (weft/cluster/pulled.h), as four bytes, the lowest first. The note exists before the file, and is removed once the
// file is whole and verified.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hub/hub_listing.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/cluster/pulled.h"
#include "weft/result.h"

namespace weft {

// Returns what names a note, in hexadecimal: the content that the listing says, at its path.
Digest note_of(const HubFile& wanted);

// Returns the received bytes of `count` pieces, from piece `first` on. `size`: of the file. A crash may leave a note of
// another length, or with impossible numbers: such a piece has no bytes. `path`: for messages.
Result<std::vector<std::uint32_t>> read_received(const Fd& note, const SafePath& path, std::uint64_t size,
                                                 std::uint64_t first, std::size_t count);
Status write_received(const Fd& note, const SafePath& path, std::uint64_t piece, std::uint32_t got);

// Returns the number of received bytes of a file, by its note. A file without a note counts as whole. A file that is
// missing, cannot be read or has another size has none. Changes nothing.
std::uint64_t received_bytes(const SafePath& files, const SafePath& notes, const HubFile& wanted);

}  // namespace weft
