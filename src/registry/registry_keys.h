// The keys of a cluster in etcd, below PREFIX/CLUSTER/:
//
//   meta                         the identity of the cluster: created once, never changed
//   m/<model>                    a head: the model's next number. Never deleted, so that no number is used twice
//   v/<model>@<number>           a version; put again when it gets another message or metrics, deleted by its removal
//                                and put again by an undelete
//   x/<model>@<number>           a tombstone: a removed version; deleted by an undelete
//   d/<model>@<number>           a version whose bytes are only in its publisher's memory: put with the version,
//                                deleted with it, or once the bytes are on a disk
//   t/<model>@<tag>              a tag
//   n/<node>                     a member, under its lease
//   k/<node>                     a node that the cluster knows, present or absent: put by the node, deleted when it is
//                                forgotten
//   b/<node>                     a barrier: put to learn when the watch has received it; the value is random
//   c/<digits>                   a claim: the node that has it, under a lease of its own
//   c/<digits>/next              the node that gets the claim next, under a lease of its own
//   c/<digits>/last              the node that had the claim last, for an hour
//   j/<id>                       how often a join token was used, under a lease; <id> is 32 hexadecimal digits
//   p/<model>@<number>           a purged version; never deleted
//   g                            the latest collection of the origin; never deleted
//   r                            put by every removal
//   h                            put by every change of names; the value is random. Its revisions are the registry's
//                                history
//   s/<node>                     the last generation whose reconciliation the node has completed, and the changes that
//                                the registry refused
//
// A number is 16 hexadecimal digits, so that keys sort by number. '@' occurs in no model name and sorts after '/', so
// the versions of a model are separate from those of the models below it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "registry/etcd/etcd_wire.h"
#include "weft/result.h"

namespace weft {

enum class KeyKind : std::uint8_t {
  meta,
  head,
  version,
  tombstone,
  memory,
  tag,
  member,
  barrier,
  claim,
  removals,
  collection,
  purge,
  history,
  share,
  join,
  node
};

struct RegistryKey {
  KeyKind kind = KeyKind::meta;
  std::string model;         // head, version, tombstone, memory, tag, purge
  std::uint64_t number = 0;  // version, tombstone, memory, purge
  std::string name;          // tag; member, barrier, node, share: the node; claim: its digits
};

class RegistryKeys {
 public:
  RegistryKeys(std::string_view prefix, std::string_view cluster);
  // Errc::invalid: the prefix is empty, does not begin with '/' or ends with one; the cluster is no name.
  static Status check(std::string_view prefix, std::string_view cluster);

  etcd::Keys all() const { return etcd::prefixed(root_); }
  etcd::Keys all(KeyKind kind) const;  // `kind` is version, tombstone, memory, tag, purge, share, member or node
  std::string meta() const { return root_ + "meta"; }
  std::string removals() const { return root_ + "r"; }
  std::string collection() const { return root_ + "g"; }
  std::string history() const { return root_ + "h"; }
  std::string share(std::string_view node) const { return root_ + "s/" + std::string(node); }
  std::string head(std::string_view model) const;
  std::string version(std::string_view model, std::uint64_t number) const;
  std::string tombstone(std::string_view model, std::uint64_t number) const;
  std::string memory(std::string_view model, std::uint64_t number) const;
  std::string purge(std::string_view model, std::uint64_t number) const;
  std::string tag(std::string_view model, std::string_view tag) const;
  std::string member(std::string_view node) const { return root_ + "n/" + std::string(node); }
  std::string node(std::string_view node) const { return root_ + "k/" + std::string(node); }
  std::string barrier(std::string_view node) const { return root_ + "b/" + std::string(node); }
  std::string claim(std::string_view digits) const { return root_ + "c/" + std::string(digits); }
  etcd::Keys claim_line(std::string_view digits) const { return etcd::prefixed(claim(digits) + "/w/"); }
  std::string claim_place(std::string_view digits, std::uint64_t lease) const;
  std::string claim_last(std::string_view digits) const { return claim(digits) + "/last"; }
  std::string join(std::string_view digits) const { return root_ + "j/" + std::string(digits); }
  etcd::Keys versions_of(std::string_view model) const;
  etcd::Keys tombstones_of(std::string_view model) const;
  etcd::Keys versions_below(std::string_view model) const;  // versions of models MODEL/…
  etcd::Keys tags_of(std::string_view model) const;

  // Returns the part of a key to which its value is bound: the path below PREFIX/CLUSTER/. So a cluster can be copied
  // to another prefix.
  std::string_view bound(std::string_view key) const { return key.substr(root_.size()); }
  // Errc::invalid for an unknown key or an invalid name; the message says what is wrong.
  Result<RegistryKey> parse(std::string_view key) const;

 private:
  std::string root_;
};

}  // namespace weft
