// An open file of new/. Reads, writes and mappings go to the file itself: in the kernel by passthrough, or by these
// calls. Any thread.
#pragma once

#include <memory>
#include <mutex>

#include "drafts/draft_tree.h"
#include "os/sys.h"
#include "weft/programs/vfs.h"

namespace weft {

class DraftFile final : public OpenFile {
 public:
  // Opens a file. All openers share one DraftFile. `tree` outlives it. `written`: the file counts as open for writing
  // until all have closed it.
  static Result<std::shared_ptr<DraftFile>> open(DraftTree& tree, Ino ino, bool written);
  ~DraftFile() override;

  // Registers a writer with descriptor `fd`. One such descriptor stays open while there are writers: draft_check.h asks
  // the kernel whether a file has writers. Readers do not make a draft busy.
  void writer_opened(Fd fd);
  void writer_closed();
  // Returns a descriptor for changes.
  Result<std::shared_ptr<const Fd>> writable() const;

  std::uint64_t size() const override;
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override;
  Status write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  int backing_fd() const override { return fd_.get(); }
  ReadMode mode() const override { return ReadMode::written; }

 private:
  DraftFile(DraftTree& tree, Fd fd, bool written);
  DraftTree& tree_;
  const Fd fd_;         // for reads
  const bool written_;  // writers may exist that this server does not know
  mutable std::mutex mutex_;
  std::shared_ptr<const Fd> writable_;  // guarded by mutex_
  std::uint64_t writers_ = 0;           // guarded by mutex_; writers known to this server
};

}  // namespace weft
