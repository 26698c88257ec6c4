#include "index/commit_watch.h"

#include <utility>

#include "os/entries.h"

namespace weft {
namespace {

class IndexWatch final : public CommitWatch {
 public:
  explicit IndexWatch(Fd fd) : fd_(std::move(fd)) {}
  int fd() const override { return fd_.get(); }
  void clear() override { forget_events(fd_); }

 private:
  Fd fd_;
};

}  // namespace

Result<std::unique_ptr<CommitWatch>> watch_index(const SafePath& index_dir) {
  WEFT_TRY(const Fd directory, open_directory(index_dir));
  WEFT_TRY(Fd watch, watch_directory(directory.get(), index_dir));
  return std::unique_ptr<CommitWatch>(std::make_unique<IndexWatch>(std::move(watch)));
}

}  // namespace weft
