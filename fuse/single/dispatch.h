// Which of its programs a file with weft and mount.weft in it is, by how it is called. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace weft {

enum class Part : unsigned char { weft, mount };

struct Call {
  Part part = Part::weft;
  std::span<const char* const> arguments;  // without the program's name
};

// True for a name by which mount(8) calls mount.weft, with or without a directory.
constexpr bool is_mount_name(std::string_view word) {
  constexpr std::array<std::string_view, 2> kNames = {"mount.weft", "mount.fuse.weft"};
  return std::ranges::find(kNames, word.substr(word.rfind('/') + 1)) != kNames.end();
}

// The file is mount.weft if it is called so (argv[0]), or if that is its first argument: a script cannot choose the
// name that it calls a program by.
constexpr Call call_of(std::span<const char* const> argv) {
  if (argv.empty()) return {};
  if (is_mount_name(argv[0])) return {Part::mount, argv.subspan(1)};
  if (argv.size() > 1 && argv[1] == std::string_view("mount.weft")) return {Part::mount, argv.subspan(2)};
  return {Part::weft, argv.subspan(1)};
}

}  // namespace weft
