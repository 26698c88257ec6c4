#include "os/programs.h"

#include <unistd.h>

#include <filesystem>
#include <string_view>

#include "base/text.h"

namespace weft {

std::optional<std::string> find_program(const std::string& name, const std::string& own_directory,
                                        const std::string& path) {
  std::string along = path + ":/usr/sbin:/sbin";
  if (!own_directory.empty())
    along = own_directory + ":" + own_directory + "/../sbin:" + own_directory + "/../bin:" + along;
  for (const std::string_view directory : split(along, ':')) {
    if (directory.empty()) continue;
    std::string candidate = std::string(directory) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

std::string own_program_directory() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path().string();
}

}  // namespace weft
