// The keys of a cluster in etcd, below PREFIX/CLUSTER/:
//
//   meta                         what the cluster is: made once, never changed
//   m/<model>                    its next number; stays when all versions are removed: numbers are never given twice
//   v/<model>@<number>           a version; deleted by its removal
//   x/<model>@<number>           a removed version
//   d/<model>@<number>           its bytes are in its publisher's memory alone: made with the version, deleted when
//   they
//                                are on a disk, or with it
//   t/<model>@<tag>              a tag
//   n/<node>                     a member, under its lease
//   b/<node>                     put to learn when the watch has come so far; the value is random
//   r                            put by every removal
//
// A number is 16 hexadecimal digits, so that keys sort as numbers do. '@' stands in no model's name and sorts behind
// '/': the versions of a model and of the models below it lie apart. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "registry/etcd_wire.h"
#include "weft/result.h"

namespace weft {

enum class KeyKind : std::uint8_t { meta, head, version, tombstone, memory, tag, member, barrier, removals };

struct RegistryKey {
  KeyKind kind = KeyKind::meta;
  std::string model;         // head, version, tombstone, memory, tag
  std::uint64_t number = 0;  // version, tombstone, memory
  std::string name;          // tag; member, barrier: the node
};

class RegistryKeys {
 public:
  RegistryKeys(std::string_view prefix, std::string_view cluster);
  // Errc::invalid: the prefix is empty, does not begin with '/' or ends with one; the cluster is no name.
  static Status check(std::string_view prefix, std::string_view cluster);

  etcd::Keys all() const { return etcd::prefixed(root_); }
  etcd::Keys all(KeyKind kind) const;  // version, tombstone, memory, tag, member
  std::string meta() const { return root_ + "meta"; }
  std::string removals() const { return root_ + "r"; }
  std::string head(std::string_view model) const;
  std::string version(std::string_view model, std::uint64_t number) const;
  std::string tombstone(std::string_view model, std::uint64_t number) const;
  std::string memory(std::string_view model, std::uint64_t number) const;
  std::string tag(std::string_view model, std::string_view tag) const;
  std::string member(std::string_view node) const { return root_ + "n/" + std::string(node); }
  std::string barrier(std::string_view node) const { return root_ + "b/" + std::string(node); }
  etcd::Keys versions_of(std::string_view model) const;
  etcd::Keys versions_below(std::string_view model) const;  // of models MODEL/…
  etcd::Keys tags_of(std::string_view model) const;

  // What a value is bound to: the key below PREFIX/CLUSTER/, so that a cluster can be copied below another prefix.
  std::string_view bound(std::string_view key) const { return key.substr(root_.size()); }
  // Errc::invalid: a key that is none of these, a name that none can have; the message says what is wrong.
  Result<RegistryKey> parse(std::string_view key) const;

 private:
  std::string root_;
};

}  // namespace weft
