#include "export/export_target.h"

#include <fcntl.h>

#include <fmt/core.h>

#include <utility>

#include "os/entries.h"

namespace weft {
namespace {

bool is_or_lies_below(std::string_view path, std::string_view directory) {
  return path == directory || (path.starts_with(directory) && path[directory.size()] == '/');
}

}  // namespace

Result<MadeDirectory> make_directory_in(const Beneath& above, const std::string& name, mode_t mode) {
  WEFT_CHECK(above.make_directory(name, mode));
  auto opened = [&]() -> Result<MadeDirectory> {
    WEFT_TRY(Beneath directory, above.directory(name));
    WEFT_TRY(const struct stat st, stat_fd(directory.fd(), directory.path()));
    return MadeDirectory{std::move(directory), inode_of(st)};
  }();
  if (!opened.ok()) static_cast<void>(remove_at(above.fd(), name, AT_REMOVEDIR));
  return opened;
}

Result<ExportTarget> ExportTarget::open(const std::string& path) {
  ExportTarget out;
  auto there = Beneath::open(path);
  if (there.ok())
    out.target_ = std::move(there).value();
  else if (there.error().code == Errc::not_found)
    WEFT_CHECK(out.make(path));
  else
    return std::move(there).error();
  WEFT_TRY(const auto names, out.target_.list());
  if (!names.empty())
    return Error{Errc::exists, fmt::format("{}: expected an empty directory, got {} entries (\"{}\", …)", path,
                                           names.size(), names.front())};
  WEFT_CHECK(out.make_stage());
  return out;
}

Result<std::pair<Beneath, std::string>> parent_and_name(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::string_view above = parent_of(path);
  WEFT_TRY(Beneath parent, Beneath::open(!above.empty() ? std::string(above) : path.starts_with('/') ? "/" : "."));
  return std::pair(std::move(parent), std::string(name_in(path)));
}

Status ExportTarget::make(const std::string& path) {
  WEFT_TRY(auto place, parent_and_name(path));
  auto& [parent, name] = place;
  auto made = make_directory_in(parent, name, kExportDirectoryMode);
  if (!made.ok())
    return Error{made.error().code,
                 fmt::format("{}: expected an empty directory or a new name ({})", path, made.error().message)};
  target_ = std::move(made->directory);
  target_inode_ = made->inode;
  name_ = name;
  parent_ = std::move(parent);
  return {};
}

Status ExportTarget::make_stage() {
  const std::string name = export_stage_name();
  WEFT_TRY(MadeDirectory made, make_directory_in(target_, name, kExportStageMode));
  stage_name_ = name;
  stage_inode_ = made.inode;
  stage_ = std::move(made.directory);
  return {};
}

Result<Fd> ExportTarget::create(const ExportedFile& file) {
  WEFT_CHECK(enter(parent_of(file.path)));
  const Beneath& directory = open_.empty() ? stage_ : open_.back().directory;
  WEFT_TRY(OpenedFile made, directory.open_with_stat(std::string(name_in(file.path)), O_WRONLY | O_CREAT | O_EXCL,
                                                     kExportFileMode | file.execute));
  made_.push_back({file.path, inode_of(made.st)});
  return std::move(made.fd);
}

// Makes and opens `directory` and its parents below stage_. In byte order the paths below one directory are
// consecutive, so a directory that was left is not entered again.
Status ExportTarget::enter(std::string_view directory) {
  while (!open_.empty() && !is_or_lies_below(directory, open_.back().path)) open_.pop_back();
  while (directory.size() > (open_.empty() ? 0 : open_.back().path.size())) {
    const std::size_t known = open_.empty() ? 0 : open_.back().path.size() + 1;
    const std::string_view path = directory.substr(0, directory.find('/', known));
    const std::string name(path.substr(known));
    const Beneath& above = open_.empty() ? stage_ : open_.back().directory;
    WEFT_TRY(MadeDirectory made, make_directory_in(above, name, kExportDirectoryMode));
    made_.push_back({path, made.inode});
    open_.push_back({path, std::move(made.directory)});
  }
  return {};
}

Status ExportTarget::publish() {
  WEFT_CHECK(stage_.sync_file_system());
  Status moved = move_entries();
  if (moved.ok()) moved = target_.sync();
  if (moved.ok() && parent_.valid()) moved = parent_.sync();
  // Remove the stage last: after a failure before this it takes the entries back.
  if (moved.ok()) moved = target_.remove(stage_name_, stage_inode_);
  if (!moved.ok()) {
    move_back();
    return moved;
  }
  static_cast<void>(target_.sync());  // best effort: after a power cut an empty stage may reappear
  published_ = true;
  return {};
}

Status ExportTarget::move_entries() {
  for (const Made& one : made_) {
    if (one.path.find('/') != std::string_view::npos) continue;
    const std::string name(one.path);
    WEFT_CHECK(stage_.rename_new(name, target_, name));
    moved_.push_back(one);
  }
  return {};
}

// Moves the published entries back into the stage. Best effort: the caller reports the first failure.
void ExportTarget::move_back() {
  for (const Made& one : moved_) {
    const std::string name(one.path);
    const auto st = target_.stat(name);
    if (st.ok() && inode_of(*st) == one.inode) static_cast<void>(target_.rename_new(name, stage_, name));
  }
}

void ExportTarget::remove_made() const {
  std::string_view above;
  Result<Beneath> directory = Error{Errc::not_found, ""};
  for (auto one = made_.rbegin(); one != made_.rend(); ++one) {
    const std::string_view parent = parent_of(one->path);
    if (parent.empty()) {
      static_cast<void>(stage_.remove(std::string(one->path), one->inode));
      continue;
    }
    if (parent != above) directory = stage_.directory(std::string(above = parent));
    if (directory.ok()) static_cast<void>(directory->remove(std::string(name_in(one->path)), one->inode));
  }
}

ExportTarget::~ExportTarget() {
  if (published_ || !target_.valid()) return;
  if (stage_.valid()) {
    open_.clear();
    remove_made();
    static_cast<void>(target_.remove(stage_name_, stage_inode_));
  }
  if (parent_.valid()) static_cast<void>(parent_.remove(name_, target_inode_));
}

}  // namespace weft
