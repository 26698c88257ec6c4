// A naive model of a store: everything is in memory, and each answer is computed from scratch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/store_rows.h"

namespace weft::reference {

// A tensor is a run of bytes with a type and a shape. A file is a sequence of tensors.
struct NaiveTensor {
  std::string bytes;
  std::uint8_t dtype = 0;
  std::vector<std::uint64_t> shape;
  auto operator<=>(const NaiveTensor&) const = default;
};
struct NaiveFile {
  std::vector<NaiveTensor> tensors;
  auto operator<=>(const NaiveFile&) const = default;
};
using NaiveContent = std::vector<NaiveFile>;

// Encodes a NaiveContent as text, which serves as the manifest.
std::string encode(const NaiveContent& content);
std::optional<NaiveContent> decode(const std::string& text);

struct NaiveVersion {
  std::string model;
  std::uint64_t number = 0;
  NaiveContent content;
  std::vector<std::pair<std::string, std::uint64_t>> parents;
  std::vector<ParentRef> parent_refs;  // the same parents with all facts about them
  std::vector<std::string> elsewhere;
  std::string message;
  bool removed = false;
  std::uint64_t born = 0;  // number of publishes and removals before it
  std::uint64_t died = 0;
};

class NaiveStore {
 public:
  // Returns the number of the version with this content, and whether it is new.
  std::pair<std::uint64_t, bool> publish(NaiveVersion version);
  void remove(const std::string& model, std::uint64_t number);
  void set_tag(const std::string& model, const std::string& tag, std::uint64_t number) { tags_[model][tag] = number; }
  void delete_tag(const std::string& model, const std::string& tag) { tags_[model].erase(tag); }

  const std::vector<NaiveVersion>& versions() const { return versions_; }  // in publish order
  const NaiveVersion* find(const std::string& model, std::uint64_t number) const;
  std::vector<std::string> live_models() const;
  std::uint64_t latest(const std::string& model) const;  // 0: none
  const std::map<std::string, std::uint64_t>& tags(const std::string& model) { return tags_[model]; }
  std::uint64_t unique_bytes() const;
  // Returns the bytes of which this file, number `file` of versions()[index], is the first live holder.
  std::uint64_t owned_bytes(std::size_t index, std::size_t file) const;
  // Returns the number of places in which live versions show this tensor.
  std::uint64_t view_links(const NaiveTensor& tensor) const;

 private:
  std::vector<NaiveVersion> versions_;
  std::uint64_t clock_ = 0;
  std::map<std::string, std::map<std::string, std::uint64_t>> tags_;
};

}  // namespace weft::reference
