#include <utility>

#include "dataset/file_layout.h"
#include "dataset/file_table.h"
#include "dataset/table_sections.h"

namespace weft {
namespace {

Status check_room(const std::string& names, std::string_view name, std::uint64_t rows) {
  if (names.size() + name.size() <= UINT32_MAX && rows < UINT32_MAX) return {};
  return Error{Errc::unsupported, "expected at most 2^32 small files, and names of at most 4 GiB together"};
}

}  // namespace

Status FileTableMaker::directory(std::uint32_t parent, std::string_view name) {
  WEFT_CHECK(check_room(directory_names_, name, directories_.size()));
  directory_names_ += name;
  directories_.push_back({parent, static_cast<std::uint32_t>(directory_names_.size()), 0});
  return {};
}

Status FileTableMaker::file(std::uint32_t directory, std::string_view name, std::uint64_t bytes, std::uint8_t execute) {
  WEFT_CHECK(check_room(file_names_, name, ends_.size()));
  if (execute != 0) executables_.push_back({static_cast<std::uint32_t>(ends_.size()), execute});
  file_names_ += name;
  name_ends_.push_back(static_cast<std::uint32_t>(file_names_.size()));
  ends_.push_back((ends_.empty() ? 0 : ends_.back()) + bytes);
  ++directories_[directory].files;
  return {};
}

std::string FileTableMaker::path_of(std::uint32_t directory) const {
  std::string path;
  for (; directory != 0; directory = directories_[directory].parent) {
    const std::string name(name_of(directory));
    path = path.empty() ? name : name + '/' + path;
  }
  return path;
}

std::string_view FileTableMaker::name_of(std::size_t directory) const {
  const std::uint32_t begin = directory == 0 ? 0 : directories_[directory - 1].name_end;
  return std::string_view(directory_names_).substr(begin, directories_[directory].name_end - begin);
}

// A parent precedes its children.
void FileTableMaker::drop_empty() {
  std::vector<std::uint8_t> kept(directories_.size());
  for (std::size_t i = directories_.size(); i-- > 0;)
    if (kept[i] != 0 || directories_[i].files != 0 || i == 0) kept[i] = kept[directories_[i].parent] = 1;
  std::vector<std::uint32_t> number(directories_.size());
  std::vector<Directory> directories;
  std::string names;
  for (std::size_t i = 0; i < directories_.size(); ++i) {
    if (kept[i] == 0) continue;
    names += name_of(i);
    number[i] = static_cast<std::uint32_t>(directories.size());
    directories.push_back(
        {number[directories_[i].parent], static_cast<std::uint32_t>(names.size()), directories_[i].files});
  }
  directories_ = std::move(directories);
  directory_names_ = std::move(names);
}

std::vector<std::byte> FileTableMaker::make() {
  drop_empty();
  const FileTableHeader header{ends_.size(), directories_.size(), directory_names_.size(), file_names_.size(),
                               executables_.size()};
  const FileTableSections at = file_table_sections(header);
  Sections out(at.end);
  out.add(kFileTableMagic);
  out.add_number(header);
  out.go_to(at.directories);
  std::uint32_t first_file = 0;
  for (const Directory& one : directories_) {
    out.add_number(DirectoryRow{one.parent, one.name_end, first_file});
    first_file += one.files;
  }
  add_lines(out, at.lines);
  out.go_to(at.ends);
  for (const std::uint64_t end : ends_) out.add_number(end);
  out.go_to(at.name_ends);
  for (const std::uint32_t end : name_ends_) out.add_number(end);
  out.go_to(at.executables);
  for (const ExecutableRow& one : executables_) out.add_number(one);
  out.go_to(at.directory_names);
  out.add(directory_names_);
  out.go_to(at.file_names);
  out.add(file_names_);
  return out.take();
}

// Adds for each directory the offset in keys.txt of the line of its first file. A line is the directory's path with a
// slash, the name, and a newline.
void FileTableMaker::add_lines(Sections& out, std::uint64_t at) const {
  out.go_to(at);
  std::vector<std::uint64_t> prefix_bytes(directories_.size());
  std::uint64_t line = 0;
  std::size_t first_file = 0;
  for (std::size_t i = 0; i < directories_.size(); ++i) {
    const Directory& one = directories_[i];
    const std::uint32_t name_begin = i == 0 ? 0 : directories_[i - 1].name_end;
    if (i != 0) prefix_bytes[i] = prefix_bytes[one.parent] + (one.name_end - name_begin) + 1;
    out.add_number(line);
    if (one.files == 0) continue;
    const std::uint32_t names_begin = first_file == 0 ? 0 : name_ends_[first_file - 1];
    first_file += one.files;
    line += name_ends_[first_file - 1] - names_begin + one.files * (prefix_bytes[i] + 1);
  }
}

}  // namespace weft
