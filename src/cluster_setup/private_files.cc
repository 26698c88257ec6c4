#include "cluster_setup/private_files.h"

#include <fcntl.h>

#include <span>

#include "base/limits.h"
#include "os/sys.h"

namespace weft::setup {
namespace {

std::string as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<std::string> read_setup_file(const std::string& path) {
  WEFT_TRY(const auto bytes, read_file(path, limits::kSetupFileMax));
  return as_text(bytes);
}

Result<std::string> read_private_file(const std::string& path) {
  WEFT_TRY(const Fd fd, open_file(path, O_RDONLY | O_NONBLOCK));
  WEFT_TRY(const struct stat st, stat_fd(fd.get(), path));
  WEFT_CHECK(check_private_file(st, "key file", path));
  WEFT_TRY(const auto bytes, read_whole(fd.get(), st, limits::kSetupFileMax, path));
  return as_text(bytes);
}

Status write_new_file(const std::string& path, mode_t mode, const std::string& content) {
  WEFT_TRY(const Fd fd, open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode & 0600U));
  WEFT_CHECK(append_exact(fd.get(), std::as_bytes(std::span(content)), path));
  WEFT_CHECK(set_mode(fd.get(), mode, path));
  return sync_file(fd.get(), path);
}

}  // namespace weft::setup
