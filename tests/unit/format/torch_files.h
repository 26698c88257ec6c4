// Files of PyTorch for tests, made of opcodes (header only).
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "pickles.h"

namespace weft::testing {

// Two storages, of 96 and 8 bytes.
inline std::string torch_archive(const std::string& value, std::vector<ZipPart> more = {}) {
  std::vector<ZipPart> parts = {
      {"m/data.pkl", p_file(value)}, {"m/data/0", std::string(96, '#')}, {"m/data/1", std::string(8, '@')}};
  parts.insert(parts.end(), more.begin(), more.end());
  return zip_file(parts);
}

// As good(), for a file whose tensors may overlap.
inline Layout parsed_torch(const std::string& bytes) {
  MemorySource source(bytes);
  auto layout = parse_file("dir/m.pt", "m.pt", source);
  if (!layout.ok()) FAIL(layout.error().message);
  for (const FoundTensor& tensor : layout->tensors)
    for (const TensorPart& part : tensor.parts) CHECK(part.offset + part.length <= bytes.size());
  return *std::move(layout);
}

inline std::string why_opaque(const std::string& bytes) {
  const Layout layout = parsed_torch(bytes);
  CHECK(layout.format.empty());
  CHECK(layout.tensors.empty());
  REQUIRE_FALSE(layout.metadata.empty());
  CHECK(layout.metadata[0].first == kNoTensors);
  return layout.metadata[0].second;
}

inline std::vector<std::string> names_of(const Layout& layout) {
  std::vector<std::string> names;
  for (const FoundTensor& tensor : layout.tensors) names.push_back(tensor.name);
  return names;
}

inline std::map<std::string, std::string> metadata_of(const Layout& layout) {
  return {layout.metadata.begin(), layout.metadata.end()};
}

}  // namespace weft::testing
