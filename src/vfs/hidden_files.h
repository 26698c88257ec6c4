// The files of a data set's manifest that no listing shows: bundles of small files, and tables. Any thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/lru_cache.h"
#include "reading/cold_file.h"
#include "reading/open_file.h"
#include "weft/model/dataset.h"
#include "weft/programs/vfs.h"
#include "weft/store/store.h"

namespace weft {

class HiddenFiles {
 public:
  HiddenFiles(Store& store, const Cold& cold) : store_(store), cold_(cold) {}

  // Opens a file of the version's manifest, local or remote.
  Result<std::shared_ptr<OpenFile>> open(const VersionRow& version, const Manifest& manifest, std::uint32_t file);
  // Returns a checked table. Uses the table in place in the page cache, or else a copy, and caches it for a while. A
  // disk that fails after the check ends the process by SIGBUS, as for any mapped file.
  Result<DatasetTablePointer> table(const VersionRow& version, const Manifest& manifest, std::uint32_t file);
  void drop_unused(std::chrono::steady_clock::duration age) {
    tables_.drop_unused(age);
    places_.drop_unused(age);
  }

 private:
  // The least size of a table in the cache: each table has a descriptor and a mapping.
  static constexpr std::size_t kTableBytesMin = 64U << 10U;

  Store& store_;
  const Cold cold_;
  KnownPlaces places_;
  LruCache<DatasetTable> tables_{16U << 20U};
  std::array<std::mutex, 16> loading_;  // each guards the loading of some tables, so that none is loaded twice
};

}  // namespace weft
