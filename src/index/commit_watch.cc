#include "index/commit_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "os/sys.h"

namespace weft {
namespace {

class IndexWatch final : public CommitWatch {
 public:
  explicit IndexWatch(Fd fd) : fd_(std::move(fd)) {}
  int fd() const override { return fd_.get(); }
  void clear() override {
    alignas(inotify_event) std::array<char, 4096> events{};
    while (::read(fd_.get(), events.data(), events.size()) > 0) {
    }
  }

 private:
  Fd fd_;
};

}  // namespace

Result<std::unique_ptr<CommitWatch>> watch_index(const SafePath& index_dir) {
  Fd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd.valid()) return sys_error(errno, "inotify (fs.inotify.max_user_instances)");
  WEFT_TRY(const Fd directory, open_directory(index_dir));
  WEFT_TRY(const std::string path, path_of_descriptor(directory.get(), index_dir));
  if (::inotify_add_watch(fd.get(), path.c_str(), IN_MODIFY | IN_MOVED_TO | IN_ONLYDIR) < 0)
    return sys_error(errno, fmt::format("{}: inotify (fs.inotify.max_user_watches)", index_dir));
  return std::unique_ptr<CommitWatch>(std::make_unique<IndexWatch>(std::move(fd)));
}

}  // namespace weft
