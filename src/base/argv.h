// Converts the words of a command line for exec and posix_spawn. Pure.
#pragma once

#include <string>
#include <vector>

namespace weft {

// Points into `words`; ends with a null.
inline std::vector<char*> argv_of(std::vector<std::string>& words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return argv;
}

}  // namespace weft
