// An open file of new/. Reads, writes and mappings go to the file itself: by the kernel alone where it passes them
// through, else by these calls. Any thread.
#pragma once

#include <memory>

#include "fuse/drafts/draft_tree.h"
#include "os/sys.h"
#include "weft/vfs.h"

namespace weft {

class DraftFile final : public OpenFile {
 public:
  // Open for reading and writing where this process may write to it, whoever opens it: all who have it open share this.
  static Result<Opened> open(DraftTree& tree, Ino ino);

  std::uint64_t size() const override;
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override;
  Status write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  int backing_fd() const override { return fd_.get(); }
  ReadMode mode() const override { return ReadMode::written; }

 private:
  explicit DraftFile(Fd fd) : fd_(std::move(fd)) {}
  const Fd fd_;
};

Attr attr_of_draft(const DraftFound& found);

}  // namespace weft
