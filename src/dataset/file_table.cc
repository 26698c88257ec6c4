#include "dataset/file_table.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "dataset/binary_search.h"

namespace weft {

template <class T>
T FileTable::number_at(std::uint64_t at, std::uint64_t index) const {
  T number;
  std::memcpy(&number, bytes_.data() + at + sizeof(T) * index, sizeof number);
  return number;
}

DirectoryRow FileTable::row(std::uint64_t directory) const {
  return number_at<DirectoryRow>(at_.directories, directory);
}

std::uint64_t FileTable::lines_of(std::uint64_t directory) const {
  return number_at<std::uint64_t>(at_.lines, directory);
}

std::pair<std::uint64_t, std::uint32_t> FileTable::ends_of(std::uint64_t file) const {
  return {number_at<std::uint64_t>(at_.ends, file), number_at<std::uint32_t>(at_.name_ends, file)};
}

FileTable::Directory FileTable::directory(std::uint64_t number) const {
  const DirectoryRow now = row(number);
  const bool last = number + 1 == directories();
  const std::uint64_t files_end = last ? files() : row(number + 1).first_file;
  // Returns the end of the children of all directories up to one. The root is its own parent, but not a child.
  const auto children_end = [&](std::uint64_t up_to) {
    return 1 + first_that(directories() - 1, [&](std::uint64_t i) { return row(i + 1).parent > up_to; });
  };
  const std::uint64_t first = number == 0 ? 1 : children_end(number - 1);
  return {now.parent, first, children_end(number) - first, now.first_file, files_end - now.first_file};
}

ExecutableRow FileTable::executable(std::uint64_t index) const {
  return number_at<ExecutableRow>(at_.executables, index);
}

std::uint8_t FileTable::execute(std::uint64_t file) const {
  const std::uint64_t found =
      first_that(header_.executables, [&](std::uint64_t i) { return executable(i).file >= file; });
  if (found == header_.executables || executable(found).file != file) return 0;
  return static_cast<std::uint8_t>(executable(found).bits);
}

std::string_view FileTable::directory_name(std::uint64_t number) const {
  const std::uint64_t begin = number == 0 ? 0 : row(number - 1).name_end;
  return directory_names_.substr(begin, row(number).name_end - begin);
}

std::string_view FileTable::name(std::uint64_t file) const {
  const std::uint64_t begin = file == 0 ? 0 : number_at<std::uint32_t>(at_.name_ends, file - 1);
  return file_names_.substr(begin, number_at<std::uint32_t>(at_.name_ends, file) - begin);
}

Range FileTable::range(std::uint64_t file) const {
  const std::uint64_t begin = file == 0 ? 0 : number_at<std::uint64_t>(at_.ends, file - 1);
  return {begin, number_at<std::uint64_t>(at_.ends, file) - begin};
}

// Returns the last directory whose first_file is not after `file`. Earlier ones with the same first_file are empty.
std::uint64_t FileTable::directory_of(std::uint64_t file) const {
  return first_that(directories(), [&](std::uint64_t i) { return row(i).first_file > file; }) - 1;
}

std::string FileTable::path_of(std::uint64_t number) const {
  std::string path;
  for (; number != 0; number = row(number).parent) {
    const std::string_view name = directory_name(number);
    path.insert(0, path.empty() ? std::string(name) : std::string(name) + '/');
  }
  return path;
}

std::string FileTable::file_path(std::uint64_t file) const {
  const std::string in = path_of(directory_of(file));
  return in.empty() ? std::string(name(file)) : in + '/' + std::string(name(file));
}

std::optional<std::uint64_t> FileTable::find_directory(std::uint64_t in, std::string_view name) const {
  const Directory dir = directory(in);
  const std::uint64_t found = dir.first_directory + first_that(dir.directories, [&](std::uint64_t i) {
                                return directory_name(dir.first_directory + i) >= name;
                              });
  if (found == dir.first_directory + dir.directories || directory_name(found) != name) return std::nullopt;
  return found;
}

std::optional<std::uint64_t> FileTable::find_file(std::uint64_t in, std::string_view name) const {
  const Directory dir = directory(in);
  const std::uint64_t found =
      dir.first_file + first_that(dir.files, [&](std::uint64_t i) { return this->name(dir.first_file + i) >= name; });
  if (found == dir.first_file + dir.files || this->name(found) != name) return std::nullopt;
  return found;
}

std::optional<std::uint64_t> FileTable::directory_at(std::string_view path) const {
  std::uint64_t at = 0;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    const auto found = find_directory(at, name);
    if (!found) return std::nullopt;
    at = *found;
    path.remove_prefix(std::min(path.size(), name.size() + 1));
  }
  return at;
}

bool FileTable::is_apart(std::string_view path) const {
  std::uint64_t at = 0;
  const auto components = split(path, '/');
  for (std::size_t i = 0; i < components.size(); ++i) {
    const bool is_file = i + 1 == components.size();
    const auto inner = find_directory(at, components[i]);
    if (find_file(at, components[i]) || (is_file && inner)) return false;
    if (!inner) return true;
    at = *inner;
  }
  return true;
}

// Returns the offset of a file's line in keys.txt. Each line of a directory adds the same prefix and a newline to a
// name.
std::uint64_t FileTable::line_start(std::uint64_t file) const {
  const std::uint64_t number = directory_of(file);
  const std::uint64_t first = row(number).first_file;
  const auto name_begin = [&](std::uint64_t one) {
    return one == 0 ? std::uint64_t{0} : number_at<std::uint32_t>(at_.name_ends, one - 1);
  };
  const std::string path = path_of(number);
  const std::uint64_t beside_name = 1 + (path.empty() ? 0 : path.size() + 1);
  return lines_of(number) + name_begin(file) - name_begin(first) + (file - first) * beside_name;
}

std::uint64_t FileTable::keys_bytes() const {
  return files() == 0 ? 0 : line_start(files() - 1) + file_path(files() - 1).size() + 1;
}

void FileTable::read_keys(std::uint64_t offset, std::span<std::byte> out) const {
  if (out.empty()) return;
  std::uint64_t file = first_that(files(), [&](std::uint64_t i) { return line_start(i) > offset; }) - 1;
  std::uint64_t skip = offset - line_start(file);
  std::uint64_t number = directory_of(file);
  std::string prefix = path_of(number);
  if (!prefix.empty()) prefix += '/';
  for (; !out.empty(); ++file) {
    if (const std::uint64_t now = directory_of(file); now != number) {
      number = now;
      prefix = path_of(number);
      if (!prefix.empty()) prefix += '/';
    }
    const std::string line = (prefix + std::string(name(file)) + '\n').substr(skip);
    skip = 0;
    const std::size_t bytes = std::min(line.size(), out.size());
    std::memcpy(out.data(), line.data(), bytes);
    out = out.subspan(bytes);
  }
}

RowShares FileTable::shares() const {
  return {files(), bytes(), [table = *this](std::uint64_t file) { return table.range(file).offset; }};
}

}  // namespace weft
