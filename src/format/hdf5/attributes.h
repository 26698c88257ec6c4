// Texts in the attributes of HDF5's objects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "format/hdf5/file.h"
#include "format/hdf5/header.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// Reads attributes of one file, and the global heaps that hold texts of variable length.
class Hdf5Attributes {
 public:
  explicit Hdf5Attributes(Hdf5File& file) : file_(file) {}

  // Returns the text of an attribute; nothing: the header has no such attribute, or it is no single text. Attributes
  // outside of the header are not looked at.
  Result<std::optional<std::string>> text(const Hdf5Header& header, std::string_view name);

 private:
  struct Collection {
    Hdf5Block bytes;
    std::unordered_map<std::uint64_t, Range> objects;  // by number, within the bytes
  };

  Result<std::optional<std::string>> text_of(Hdf5Fields type, Hdf5Fields value);
  Result<const Collection*> collection(std::uint64_t at);

  Hdf5File& file_;
  std::unordered_map<std::uint64_t, Collection> collections_;
};

}  // namespace weft
