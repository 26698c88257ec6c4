// The packs of a store over an index in memory.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "fakes/memory_index.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "packs/collect.h"
#include "packs/import.h"
#include "packs/packs.h"
#include "packs/verify.h"
#include "store_paths.h"
#include "testing.h"

namespace weft::testing {

using Bytes = std::vector<std::byte>;

template <class T>
Errc code_of(const Result<T>& result) {
  REQUIRE_FALSE(result.ok());
  return result.error().code;
}

inline Bytes join(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
inline std::vector<Range> ranges_of(const std::vector<Bytes>& parts) {
  std::vector<Range> ranges;
  std::uint64_t at = 0;
  for (const Bytes& part : parts) {
    ranges.push_back({at, part.size()});
    at += part.size();
  }
  return ranges;
}

inline std::vector<ContentId> ids_of(const std::vector<Extent>& extents) {
  std::vector<ContentId> ids;
  for (const Extent& extent : extents) ids.push_back(extent.id);
  return ids;
}

// Small windows, so that files of a few MiB reach every code path.
inline ImportTuning small_windows() {
  return {.window_bytes = 2U << 20U, .windows = 2, .threads = 2, .after_read = {}};
}

struct PackStore {
  PackStore() {
    must(make_directories(path + "/packs"));
    packs = std::make_unique<Packs>(safe(path), index);
  }

  std::unique_ptr<Importer> begin(ImportTuning tuning = small_windows()) {
    return must(Importer::begin(safe(path), index, std::move(tuning)));
  }
  // Writes and opens a source file with these bytes.
  Fd source(const Bytes& bytes, const std::string& name = "source") {
    write_file(dir / name, as_text(bytes));
    return must(open_file(dir / name, O_RDONLY));
  }
  Result<std::vector<ContentId>> add(Importer& import, const std::vector<Bytes>& parts) {
    Fd fd = source(join(parts));
    WEFT_TRY(const std::vector<Extent> extents, import.add(fd.get(), "source", ranges_of(parts), no_progress()));
    return ids_of(extents);
  }
  // Publishes a file and returns its content ids.
  std::vector<ContentId> publish(const std::vector<Bytes>& parts) {
    auto import = begin();
    auto ids = must(add(*import, parts));
    commit(*import, "", ids);
    new_blobs.assign(import->new_blobs().begin(), import->new_blobs().end());
    shared_bytes = import->shared_bytes();
    return ids;
  }
  // Commits as a store does: stores shared content again that gc has freed, then makes all content visible under the
  // writer lock.
  void commit(Importer& import, const std::string& who, const std::vector<ContentId>& ids) {
    must(import.seal());
    for (;;) {
      std::vector<ContentId> lost;
      {
        const auto lock = index.lock_writer();
        lost = must(import.lost());
        if (lost.empty()) {
          must(import.place());
          return index.publish_for(who, import.new_blobs(), ids);
        }
      }
      must(import.store_again(lost));
    }
  }
  Bytes read(const ContentId& id) {
    OpenPlace place = must(packs->open_blob(id));
    Bytes bytes(id.length);
    must(read_exact(place.pack->fd(), place.offset, bytes, "pack"));
    return bytes;
  }
  bool holds(const std::vector<ContentId>& ids, const std::vector<Bytes>& parts) {
    if (ids.size() != parts.size()) return false;
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (read(ids[i]) != parts[i]) return false;
    return true;
  }
  std::vector<std::string> pack_files() { return must(list_directory(path + "/packs")); }
  std::vector<std::string> temporaries() {
    auto names = list_directory(path + "/tmp");
    return names.ok() ? *names : std::vector<std::string>{};
  }
  std::uint64_t disk_bytes() {
    std::uint64_t total = 0;
    for (PackId pack : must(packs->list())) total += allocated_bytes(must(stat_file(pack_path(path, pack))));
    return total;
  }
  GcReport gc(bool dry_run = false) { return collect({{dry_run}}); }
  GcReport collect(const CollectInput& input, Progress& progress = no_progress()) {
    GcReport report;
    must(collect_packs(*packs, index, input, progress, report));
    return report;
  }
  FsckReport fsck(bool data = true) {
    FsckReport report;
    must(verify_packs(*packs, index, data, no_progress(), report));
    return report;
  }

  TempDir dir;
  std::string path = dir / "store";
  MemoryIndex index;
  std::unique_ptr<Packs> packs;
  std::vector<NewBlob> new_blobs;
  std::uint64_t shared_bytes = 0;
};

}  // namespace weft::testing
