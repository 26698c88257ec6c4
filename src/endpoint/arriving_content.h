// Sends a file of the upstream while the pull of its commit runs on this node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "hub/hub_listing.h"
#include "upstream/upstream.h"
#include "weft/result.h"

namespace weft {

// Files of pulls that run on this node. Any thread.
class IncomingFiles {
 public:
  virtual ~IncomingFiles() = default;
  // Fills the front of `out` with the bytes from `offset` on that the pull of a repository has received, and returns
  // their number. 0: it has none there now.
  virtual Result<std::size_t> read(const HubName& repository, const HubFile& file, std::uint64_t offset,
                                   std::span<std::byte> out) = 0;
};

// Reads the bytes of a file in LFS in any order, from the pull and then from the store. It returns the last byte only
// once all bytes have the SHA-256 of the listing: a client never has a whole file with a wrong byte. If the pull has
// ended in the meantime, bytes that it had sent are compared with the store, because the pull may have received them
// again before its publish. One thread.
class ArrivingContent {
 public:
  // Reads a published file of the commit, once the store has it.
  using ReadStored = std::function<Result<std::size_t>(std::uint64_t offset, std::span<std::byte> out)>;
  struct Parts {
    Upstream& upstream;
    IncomingFiles& files;
    HubSource source;
    HubFile file;  // with a SHA-256
    ReadStored read_stored;
    std::function<bool()> cancelled;
  };
  explicit ArrivingContent(Parts parts) : parts_(std::move(parts)) {}

  // True if the pull has this byte now.
  bool has(std::uint64_t offset);
  // Waits for the byte at `offset`, below the size of the file, and returns how many bytes it filled. Errc::corrupt:
  // the received bytes are not those of the listing. Errc::cancelled. Other errors are those of the pull.
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out);

 private:
  // Sent holds the hash of bytes that came from the pull, by one or more reads without a gap between them.
  struct Sent {
    std::uint64_t offset = 0, end = 0;
    Sha256 sha256 = {};
  };
  void note_sent(std::uint64_t offset, std::span<const std::byte> bytes);
  Result<std::size_t> read_end(std::uint64_t offset, std::span<std::byte> out);
  Status check_sent(Sent& sent) const;
  Result<std::size_t> try_read(std::uint64_t offset, std::span<std::byte> out);
  Error wrong(std::string_view got) const;
  Status hash_from_pull(std::uint64_t bytes_max);
  void hash(std::uint64_t offset, std::span<const std::byte> bytes);
  std::uint64_t last() const { return parts_.file.size - 1; }

  const Parts parts_;
  Sha256 sha256_;
  std::vector<Sent> sent_;
  std::uint64_t hashed_ = 0;  // bytes from the beginning of the file on
  bool is_verified_ = false;
  bool is_stored_ = false;
};

}  // namespace weft
