#include "os/safe_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace weft {

Result<SafePath> SafePath::open_owned(const std::string& directory) {
  WEFT_TRY(Beneath root, Beneath::open_owned(directory));
  return SafePath(std::move(root));
}

SafePath SafePath::operator/(std::string_view below) const {
  SafePath path = *this;
  path.full_.append("/").append(below);
  return path;
}

SafePath SafePath::operator+(std::string_view suffix) const {
  SafePath path = *this;
  path.full_.append(suffix);
  return path;
}

SafePath SafePath::parent() const {
  SafePath path = *this;
  path.full_.resize(path.full_.rfind('/'));
  return path;
}

SafePath SafePath::held() const {
  auto directory = root_->directory(relative());
  return directory.ok() ? SafePath(std::move(directory).value()) : *this;
}

std::string SafePath::relative() const {
  const std::size_t above = root_->path().size();
  return full_.size() <= above ? std::string(".") : full_.substr(above + 1);
}

Result<Fd> open_file(const SafePath& path, int flags, mode_t mode) {
  return path.root().open_file(path.relative(), flags, mode);
}

Result<OpenedFile> open_with_stat(const SafePath& path, int flags, mode_t mode) {
  return path.root().open_with_stat(path.relative(), flags, mode);
}

Result<Fd> open_directory(const SafePath& path) {
  return path.root().open_directory(path.relative());
}

Result<struct stat> stat_file(const SafePath& path) {
  return path.root().stat(path.relative());
}

Status sync_directory(const SafePath& path) {
  return path.root().sync(path.relative());
}

Status make_directory(const SafePath& path, mode_t mode) {
  return path.root().make_directory(path.relative(), mode);
}

Status make_directories(const SafePath& path, mode_t mode) {
  Status made = make_directory(path, mode);
  if (made.ok() || made.error().code != Errc::exists) return made;
  const auto there = open_directory(path);
  return there.ok() ? Status{} : Status{there.error()};
}

Status rename_file(const SafePath& from, const SafePath& to) {
  return from.root().rename(from.relative(), to.root(), to.relative());
}

Status rename_new(const SafePath& from, const SafePath& to) {
  return from.root().rename_new(from.relative(), to.root(), to.relative());
}

Status replace_file(const SafePath& path, const SafePath& fresh, std::span<const std::byte> bytes) {
  {
    WEFT_TRY(const Fd fd, open_file(fresh, O_WRONLY | O_CREAT | O_TRUNC));
    WEFT_CHECK(append_exact(fd.get(), bytes, fresh));
    WEFT_CHECK(sync_file(fd.get(), fresh));
  }
  WEFT_CHECK(rename_file(fresh, path));
  return sync_directory(path.parent());
}

Status link_file(const SafePath& from, const SafePath& to) {
  return from.root().link(from.relative(), to.root(), to.relative());
}

Status remove_file(const SafePath& path) {
  return path.root().unlink(path.relative());
}

Status remove_tree(const SafePath& path) {
  return path.root().remove_tree(path.relative());
}

Result<std::vector<std::string>> list_directory(const SafePath& path) {
  return path.root().list(path.relative());
}

Result<std::vector<std::byte>> read_file(const SafePath& path, std::uint64_t bytes_max) {
  return path.root().read_file(path.relative(), bytes_max);
}

Result<std::string> path_of_descriptor(int fd, std::string_view where) {
  std::string path = fmt::format("/proc/self/fd/{}", fd);
  if (::access(path.c_str(), F_OK) == 0) return path;
  return Error{Errc::unsupported,
               fmt::format("{}: expected /proc to be mounted: the file is opened by way of it", where)};
}

}  // namespace weft

fmt::format_context::iterator fmt::formatter<weft::SafePath>::format(const weft::SafePath& path,
                                                                     fmt::format_context& context) const {
  return fmt::format_to(context.out(), "{}", path.str());
}
