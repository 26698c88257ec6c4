// The rules about the files of STORE/drafts/tree, for the mounts and for gc: which directories all users share, and
// which bytes count as drafts'. Pure, not thread-safe.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

namespace weft {

inline constexpr mode_t kSharedMode = 01777;  // of new/ and of its namespaces

struct DraftRules {
  uid_t owner = 0;           // of STORE/drafts/tree
  uid_t owner_of_packs = 0;  // of STORE/packs

  // `tree`: the facts of STORE/drafts/tree.
  static DraftRules of(const std::string& store, const struct stat& tree);

  // True for new/ and its namespaces.
  bool is_shared(const struct stat& st) const;
  // False for a pack of a version: it is the store owner's, and has a second name in packs/. A user's file counts even
  // with two names: the user can give it a second one through the process that publishes it.
  bool counts(const struct stat& st) const;
};

// The bytes and inodes that drafts take of the file system.
struct DraftUse {
  std::uint64_t bytes = 0;
  std::map<uid_t, std::uint64_t> inodes{};  // by owner
};

// Adds up the use of entries by DraftRules. A file with several names among the entries counts once, with the first
// name. A file of the store's owner with all its names among them is no pack, and counts too, with the last name.
class DraftCount {
 public:
  explicit DraftCount(const DraftRules& rules) : rules_(rules) {}
  void add(const struct stat& st);
  const DraftUse& use() const { return use_; }  // of the entries so far

 private:
  struct Named {
    nlink_t names = 0;  // among the entries
    bool counted = false;
  };
  void count(const struct stat& st);
  const DraftRules& rules_;
  DraftUse use_;
  std::map<ino_t, Named> named_;  // files with several
};

}  // namespace weft
