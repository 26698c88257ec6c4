// Builds distributed checkpoints, well-formed or malformed, from opcodes (header only).
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memory_group.h"
#include "pickles.h"

namespace weft::testing {

using PNumbers = std::vector<unsigned>;  // a shape, or strides

// An object of a dataclass.
inline std::string p_object(std::string_view name, const std::vector<std::pair<std::string, std::string>>& attributes) {
  return p_global("torch.distributed.checkpoint.metadata", name) + ")\x81" + p_dict(attributes) + "b";
}
inline std::string p_size(const PNumbers& shape) {
  return p_call(p_global("torch", "Size"), {p_numbers(shape)});
}
inline std::string p_list(const std::vector<std::string>& items) {
  std::string out = "](";
  for (const std::string& item : items) out += item;
  return out + "e";
}

// One shard: a file of torch.save with one tensor of floats, or bytes, whose values count from `first`.
inline std::string dcp_saved(const PNumbers& shape, const PNumbers& strides, unsigned first,
                             const char* storage = "FloatStorage") {
  std::size_t count = std::string_view(storage) == "FloatStorage" ? 4 : 1;
  for (const unsigned dimension : shape) count *= dimension;
  std::string data;
  for (std::size_t i = 0; i < count; ++i) data += static_cast<char>(first + i);
  return zip_file({{"m/data.pkl", p_file(p_tensor(p_storage("0", storage), 0, shape, strides))}, {"m/data/0", data}});
}
inline std::string dcp_saved(const PNumbers& shape, unsigned first = 0, const char* storage = "FloatStorage") {
  PNumbers strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return dcp_saved(shape, strides, first, storage);
}

// A checkpoint of one tensor "w" and one scalar "s", which no case changes.
class Checkpoint {
 public:
  Checkpoint() { add_scalar(); }
  explicit Checkpoint(PNumbers shape) : shape_(std::move(shape)) { add_scalar(); }

  Checkpoint& shard(const PNumbers& begin, const PNumbers& size, const std::string& bytes, const std::string& file) {
    described(begin, size);
    const std::size_t at = files[file].size();
    files[file] += bytes;
    return place(begin, file, at, bytes.size());
  }
  Checkpoint& described(const PNumbers& begin, const PNumbers& size) {
    chunks_.push_back(p_object("ChunkStorageMetadata", {{"offsets", p_size(begin)}, {"sizes", p_size(size)}}));
    return *this;
  }
  Checkpoint& place(const PNumbers& begin, const std::string& file, std::uint64_t at, std::uint64_t length,
                    const std::string& transforms = "N") {
    places_ += p_object("MetadataIndex", {{"fqn", p_text("w")}, {"offset", p_size(begin)}, {"index", "N"}}) +
               info(file, at, length, transforms);
    return *this;
  }
  // A value that is no tensor.
  Checkpoint& value(const std::string& name, const std::string& bytes) {
    std::string& file = files["a.distcp"];
    items_ += p_text(name) + p_object("BytesStorageMetadata", {});
    places_ += p_object("MetadataIndex", {{"fqn", p_text(name)}, {"offset", "N"}}) +
               info("a.distcp", file.size(), bytes.size(), "N");
    file += bytes;
    return *this;
  }

  std::string metadata() const {
    const std::string tensor =
        p_text("w") +
        p_object("TensorStorageMetadata", {{"properties", "N"}, {"size", p_size(shape_)}, {"chunks", p_list(chunks_)}});
    return p_file(p_object("Metadata", {{"state_dict_metadata", "}(" + items_ + tensor + "u"},
                                        {"planner_data", p_global("os", "system")},
                                        {"storage_data", "}(" + places_ + "u"}}));
  }
  Layout layout() const {
    MemoryGroup group(".metadata", metadata(), files);
    auto layout = parse_file("dir/.metadata", group);
    if (!layout.ok()) FAIL(layout.error().message);
    for (const FoundTensor& tensor : layout->tensors)
      for (const TensorPart& part : tensor.parts) {
        REQUIRE(part.file > 0);
        CHECK(part.offset + part.length <= files.at(layout->others[part.file - 1]).size());
      }
    return *std::move(layout);
  }
  // Returns why "w" is hidden, and checks that "s" is shown.
  std::string why_hidden() const {
    const Layout found = layout();
    REQUIRE(found.tensors.size() == 1);
    CHECK(found.tensors[0].name == "s");
    REQUIRE(found.hidden.size() == 1);
    CHECK(found.hidden[0].name == "w");
    return found.hidden[0].why;
  }

  std::map<std::string, std::string> files;

 private:
  static std::string info(const std::string& file, std::uint64_t at, std::uint64_t length,
                          const std::string& transforms) {
    return p_object("_StorageInfo", {{"relative_path", p_text(file)},
                                     {"offset", p_int(at)},
                                     {"length", p_int(length)},
                                     {"transform_descriptors", transforms}});
  }
  void add_scalar() {
    files["s.distcp"] = dcp_saved({}, 7, "ByteStorage");
    items_ =
        p_text("s") +
        p_object(
            "TensorStorageMetadata",
            {{"size", p_size({})},
             {"chunks", p_list({p_object("ChunkStorageMetadata", {{"offsets", p_size({})}, {"sizes", p_size({})}})})}});
    places_ = p_object("MetadataIndex", {{"fqn", p_text("s")}, {"offset", "N"}}) +
              info("s.distcp", 0, files["s.distcp"].size(), "N");
  }

  PNumbers shape_ = {4, 2};
  std::vector<std::string> chunks_;
  std::string items_, places_;
};

// "w" in shards of rows, or of columns, in two files.
inline Checkpoint dcp_rows() {
  Checkpoint checkpoint;
  checkpoint.shard({0, 0}, {3, 2}, dcp_saved({3, 2}, 0), "a.distcp")
      .shard({3, 0}, {1, 2}, dcp_saved({1, 2}, 24), "b.distcp");
  return checkpoint;
}

inline Checkpoint dcp_columns() {
  Checkpoint checkpoint;
  checkpoint.shard({0, 1}, {4, 1}, dcp_saved({4, 1}, 50), "b.distcp")
      .shard({0, 0}, {4, 1}, dcp_saved({4, 1}, 0), "a.distcp");
  return checkpoint;
}

}  // namespace weft::testing
