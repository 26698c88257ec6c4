// Files of a hub that a pull on this node receives, for a reader that does not wait for its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "hub/hub_listing.h"
#include "hub/hub_name.h"
#include "os/safe_path.h"
#include "weft/result.h"

namespace weft {

// Any thread.
class AreaFiles {
 public:
  // `pulls`: the directory of the areas, which need not exist. `endpoint`: the URL of the hub. Files that were made
  // before `since_ns` count as absent: after a crash of the machine, their notes may promise bytes that they lack.
  AreaFiles(const SafePath& pulls, std::string endpoint, std::uint64_t since_ns)
      : pulls_(pulls), endpoint_(std::move(endpoint)), since_ns_(since_ns) {}

  // Fills the front of `out` with the received bytes from `offset` on, and returns their number, 0 if there are none. A
  // file without a note (received_note.h) counts as absent: it may be one of another commit. The bytes are not
  // verified.
  Result<std::size_t> read(const HubName& repository, const HubFile& file, std::uint64_t offset,
                           std::span<std::byte> out) const;

 private:
  const SafePath pulls_;
  const std::string endpoint_;
  const std::uint64_t since_ns_;
};

}  // namespace weft
