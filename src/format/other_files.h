// The files beside the main one that tensors of a format lie in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// Finds the other files of one layout. One thread.
class OtherFiles {
 public:
  struct File {
    ByteSource* source = nullptr;
    std::uint32_t number = 0;  // as TensorPart::file
  };

  OtherFiles(FormatInput& files, Layout& layout) : files_(files), layout_(layout) {}

  // Returns the file at a path as FormatInput::beside() takes it, and adds it to layout.others once. Null: there is no
  // such file. The result lives as long as this. Errors come from the input.
  Result<const File*> find(const std::string& path);

 private:
  FormatInput& files_;
  Layout& layout_;
  std::map<std::string, std::optional<File>> known_;  // by path; none: there is no such file
};

}  // namespace weft
