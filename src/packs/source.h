// A file that is read into the store.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "packs/plain_digests.h"
#include "weft/arrival.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/publish.h"

namespace weft {

// One thread. The caller owns the descriptor.
class Source {
 public:
  using Hook = std::function<void(std::uint64_t offset)>;
  // Errc::invalid: not a regular file. `after_read`, if any, is called after each read.
  static Result<Source> open(int fd, std::string_view where, Progress& progress, Hook after_read);

  const std::string& where() const { return where_; }
  std::uint64_t size() const { return static_cast<std::uint64_t>(before_.st_size); }
  std::uint64_t device() const { return before_.st_dev; }
  int fd() const { return fd_; }
  void show_to(SeenBytes seen) { show_to_ = std::move(seen); }
  // Hashes the bytes that feed_digest() passes on; nullptr: nothing does. It outlives the source.
  void hash_to(PlainDigest* digest) { digest_ = digest; }
  // Makes read() wait for its bytes. The times of the file count from its last byte on; before, only its size does.
  void arrive_by(AwaitBytes await);
  bool arrives() const { return arrival_.has_value(); }
  void read_from(int clone) { reading_ = clone; }  // a file with the same bytes that no process changes

  // Fills `out`. Skips the holes of a sparse file. Errc::changed: the file became shorter. Errc::cancelled. Bytes that
  // are read for the first time count as progress.
  Status read(std::uint64_t offset, std::span<std::byte> out);
  // Hashes bytes that read() filled, in their order, each once. They stay unchanged until user.wait() returns.
  void feed_digest(std::span<const std::byte> bytes, JobGroup& user) {
    if (digest_ != nullptr) digest_->feed(bytes, user);
  }
  // Accepts the new ctime after this process has added and removed names of the file. Errc::changed if the size or
  // mtime differ.
  Status stat_again();
  // Errc::changed if the size or the times differ from those at open() or stat_again().
  Status check_unchanged() const;

 private:
  Source(int fd, std::string where, const struct stat& before, Progress& progress, Hook after_read);
  Status await(Range range);
  int fd_;
  int reading_;
  std::string where_;
  struct stat before_;
  Progress* progress_;
  Hook after_read_;
  SeenBytes show_to_;
  PlainDigest* digest_ = nullptr;
  std::optional<ArrivedRun> arrival_;
  bool arrived_ = false;    // all of a file that arrives
  bool sparse_;             // uses fewer blocks than its size needs
  std::uint64_t seen_ = 0;  // bytes before this are counted as progress
};

}  // namespace weft
