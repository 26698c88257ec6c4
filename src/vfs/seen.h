// Caches the index's rows of inodes, and names that may change, until the next commit: opening a path again does not
// read the index. Any thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/lru_cache.h"
#include "weft/programs/vfs.h"
#include "weft/store/snapshot.h"
#include "weft/store/store.h"

namespace weft {

struct SeenInode {
  IndexState state;  // the index had the row in this state
  InodeRow row;
  Attr attr;
};

class Seen {
 public:
  explicit Seen(Store& store) : store_(store) {}

  // Returns nullptr if the cache has no row for the present state of the index.
  std::shared_ptr<const SeenInode> inode(Ino ino) { return current(inodes_.find(ino)); }
  void put(Ino ino, SeenInode seen) {
    const std::size_t bytes = kEntryBytes + seen.row.name.size();
    inodes_.put(ino, std::make_shared<const SeenInode>(std::move(seen)), bytes);
  }

  std::shared_ptr<const Attr> name(Ino dir, std::string_view name) {
    const auto known = current(names_.find(key(dir, name)));
    if (!known || known->dir != dir || known->name != name) return nullptr;
    return {known, &known->attr};
  }
  void put(Ino dir, std::string_view name, const IndexState& state, const Attr& attr) {
    names_.put(key(dir, name), std::make_shared<const SeenName>(SeenName{state, dir, std::string(name), attr}),
               kEntryBytes + name.size());
  }

  void drop_unused(std::chrono::steady_clock::duration age) {
    inodes_.drop_unused(age);
    names_.drop_unused(age);
  }

 private:
  static constexpr std::size_t kBytesMax = 512U << 10U;  // of each cache
  static constexpr std::size_t kEntryBytes = 512;

  struct SeenName {
    IndexState state;
    Ino dir = 0;
    std::string name;
    Attr attr;
  };
  static std::uint64_t key(Ino dir, std::string_view name) {
    return std::hash<std::string_view>{}(name) + dir * 0x9e3779b97f4a7c15ULL;
  }
  template <class Entry>
  std::shared_ptr<const Entry> current(std::shared_ptr<const Entry> entry) {
    if (!entry) return nullptr;
    const auto now = store_.state();
    return now.ok() && *now == entry->state ? std::move(entry) : nullptr;
  }

  Store& store_;
  LruCache<SeenInode> inodes_{kBytesMax};
  LruCache<SeenName> names_{kBytesMax};
};

}  // namespace weft
