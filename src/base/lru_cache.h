// A cache bounded by bytes and, if its owner calls drop_unused(), by age. Drops the least recently used entries. The
// newest entry stays, however large. Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"

namespace weft {

template <class Value, class Key = std::uint64_t>
class LruCache {
 public:
  using Pointer = std::shared_ptr<const Value>;

  explicit LruCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  Pointer find(const Key& key) {
    const MutexLock lock(mutex_);
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    found->second->used = Clock::now();
    return found->second->value;
  }

  void put(const Key& key, Pointer value, std::size_t bytes) {
    const MutexLock lock(mutex_);
    if (const auto found = index_.find(key); found != index_.end()) drop(found->second);
    entries_.push_front({key, std::move(value), bytes, Clock::now()});
    index_[key] = entries_.begin();
    bytes_ += bytes;
    while (bytes_ > bytes_max_ && entries_.size() > 1) drop(std::prev(entries_.end()));
  }

  std::size_t bytes() const {
    const MutexLock lock(mutex_);
    return bytes_;
  }

  void clear() {
    const MutexLock lock(mutex_);
    while (!entries_.empty()) drop(entries_.begin());
  }

  // Drops all entries that were not used for `age`, the newest too.
  void drop_unused(std::chrono::steady_clock::duration age) {
    const MutexLock lock(mutex_);
    const auto end = Clock::now() - age;
    while (!entries_.empty() && entries_.back().used <= end) drop(std::prev(entries_.end()));
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Key key;
    Pointer value;
    std::size_t bytes;
    Clock::time_point used;
  };
  using Place = typename std::list<Entry>::iterator;

  void drop(Place place) WEFT_REQUIRES(mutex_) {
    bytes_ -= place->bytes;
    index_.erase(place->key);
    entries_.erase(place);
  }

  const std::size_t bytes_max_;
  mutable Mutex mutex_;
  std::size_t bytes_ WEFT_GUARDED_BY(mutex_) = 0;
  std::list<Entry> entries_ WEFT_GUARDED_BY(mutex_);  // the most recently used first
  std::unordered_map<Key, Place> index_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
