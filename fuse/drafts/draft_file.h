// An open file of new/. Reads, writes and mappings go to the file itself: by the kernel alone where it passes them
// through, else by these calls. Any thread.
#pragma once

#include <memory>
#include <mutex>

#include "fuse/drafts/draft_tree.h"
#include "os/sys.h"
#include "weft/vfs.h"

namespace weft {

class DraftFile final : public OpenFile {
 public:
  // Shared by all who have it open. `tree` outlives it. `written`: as if somebody wrote to it, until all have closed
  // it.
  static Result<Opened> open(DraftTree& tree, Ino ino, bool written);
  ~DraftFile() override;
  DraftFile(const DraftFile&) = delete;
  DraftFile& operator=(const DraftFile&) = delete;

  // Somebody opens it for writing, by `fd`. One such descriptor stays open as long as there are writers: whether there
  // are any is asked of the kernel (draft_check.h), and readers make no draft busy.
  void writer_opened(Fd fd);
  void writer_closed();
  // A descriptor to change it by.
  Result<std::shared_ptr<const Fd>> writable() const;

  std::uint64_t size() const override;
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override;
  Status write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  int backing_fd() const override { return fd_.get(); }
  ReadMode mode() const override { return ReadMode::written; }

 private:
  DraftFile(DraftTree& tree, Fd fd, bool written);
  DraftTree& tree_;
  const Fd fd_;         // to read
  const bool written_;  // by writers that this server does not know of
  mutable std::mutex mutex_;
  std::shared_ptr<const Fd> writable_;  // guarded by mutex_
  std::uint64_t writers_ = 0;           // guarded by mutex_; that this server knows of
};

Attr attr_of_draft(const DraftFound& found);

}  // namespace weft
