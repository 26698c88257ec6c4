#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>

#include "base/sha256.h"
#include "base/sys.h"
#include "base/thread_pool.h"
#include "weft/node.h"

namespace weft {
namespace {

// What an export made, so that a failed one can take it away again: in the order it was made.
class Made {
 public:
  Made() = default;
  ~Made() {
    for (auto path = paths_.rbegin(); path != paths_.rend(); ++path) {
      std::error_code ignored;  // best effort; the first failure is the one that is told
      std::filesystem::remove(*path, ignored);
    }
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  void add(std::string path) { paths_.push_back(std::move(path)); }
  void keep() { paths_.clear(); }

 private:
  std::vector<std::string> paths_;
};

// The chunks of one file, copied and hashed by all threads of a pool. An extent's place is locked only while the file
// is copied.
class FileCopy {
 public:
  FileCopy(Store& store, const File& file, int out, std::string where, Progress& progress)
      : store_(store), file_(file), out_(out), where_(std::move(where)), progress_(progress) {}

  Status run(ThreadPool& pool) {
    WEFT_CHECK(find_places());
    pool.parallel_for(chunks_.size(), [&](std::size_t i) {
      if (stop_.load(std::memory_order_relaxed)) return;
      if (Status copied = copy_chunk(i); !copied.ok()) fail(std::move(copied).error());
    });
    WEFT_CHECK(std::move(status_));
    return verify();
  }

 private:
  struct Chunk {
    std::size_t extent = 0;
    std::uint64_t offset = 0;  // in the extent
    std::size_t length = 0;
  };

  Status find_places() {
    for (std::size_t i = 0; i < file_.extents.size(); ++i) {
      const ContentId& id = file_.extents[i].id;
      auto place = store_.lock_blob(id);
      if (!place.ok()) return Error{place.error().code, fmt::format("{}: {}", file_.path, place.error().message)};
      places_.push_back(std::move(place).value());
      for (std::uint64_t at = 0; at < id.length; at += kDigestChunk)
        chunks_.push_back({i, at, static_cast<std::size_t>(std::min(kDigestChunk, id.length - at))});
    }
    digests_.resize(chunks_.size());
    return {};
  }

  Error damaged(const Extent& extent) const {
    return Error{Errc::corrupt,
                 fmt::format("{}: the stored bytes {}..{} are damaged: expected the digest {}; run `weft fsck`",
                             file_.path, extent.offset, extent.offset + extent.id.length, to_hex(extent.id.root))};
  }

  Status copy_chunk(std::size_t index) {
    if (progress_.cancelled()) return Error{Errc::cancelled, "interrupted"};
    const Chunk& chunk = chunks_[index];
    const LockedPlace& place = places_[chunk.extent];
    std::vector<std::byte> buffer(chunk.length);
    WEFT_CHECK(read_exact(place.pack->fd(), place.offset + chunk.offset, buffer, file_.path));
    digests_[index] = sha256(buffer);
    WEFT_CHECK(write_exact(out_, file_.extents[chunk.extent].offset + chunk.offset, buffer, where_));
    progress_.advance(chunk.length);
    return {};
  }

  Status verify() const {
    std::size_t first = 0;
    for (const Extent& extent : file_.extents) {
      auto chunks = std::span(digests_).subspan(first, chunk_count(extent.id.length));
      first += chunks.size();
      if (tree_root(extent.id.length, chunks) != extent.id.root) return damaged(extent);
    }
    return {};
  }

  void fail(Error error) {
    std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = std::move(error);
    stop_.store(true, std::memory_order_relaxed);
  }

  Store& store_;
  const File& file_;
  int out_;
  std::string where_;
  Progress& progress_;
  std::vector<LockedPlace> places_;
  std::vector<Chunk> chunks_;
  std::vector<Digest> digests_;  // of chunks_
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  Status status_;  // guarded by mutex_ while threads run
};

class Exporter {
 public:
  Exporter(Store& store, const Manifest& manifest, std::string directory, Progress& progress)
      : store_(store), manifest_(manifest), directory_(std::move(directory)), progress_(progress) {}

  Status run() {
    WEFT_CHECK(open_directory());
    progress_.total(logical_bytes(manifest_));
    for (const File& file : manifest_.files) {
      if (progress_.cancelled()) return Error{Errc::cancelled, "interrupted"};
      progress_.phase(fmt::format("writing {}", file.path));
      WEFT_CHECK(make_parents(file.path));
      WEFT_CHECK(write(file));
    }
    for (const std::string& directory : directories_) WEFT_CHECK(sync_directory(directory_ + "/" + directory));
    made_.keep();
    return {};
  }

 private:
  Status open_directory() {
    Status made = make_directory(directory_);
    if (made.ok()) {
      made_.add(directory_);
      return {};
    }
    if (made.error().code != Errc::exists) return made;
    WEFT_TRY(auto names, list_directory(directory_));
    if (!names.empty())
      return Error{Errc::exists, fmt::format("{}: expected an empty directory, got {} entries (\"{}\", …)", directory_,
                                             names.size(), names.front())};
    return {};
  }

  Status make_parents(const std::string& path) {
    for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      std::string parent = path.substr(0, slash);
      if (!directories_.insert(parent).second) continue;
      WEFT_CHECK(make_directory(directory_ + "/" + parent));
      made_.add(directory_ + "/" + parent);
    }
    return {};
  }

  Status write(const File& file) {
    std::string target = directory_ + "/" + file.path;
    std::string temporary = target.substr(0, target.rfind('/') + 1) + ".weft-" + random_hex(8);
    WEFT_TRY(Fd out, open_file(temporary, O_WRONLY | O_CREAT | O_EXCL, 0644));
    made_.add(temporary);
    WEFT_CHECK(FileCopy(store_, file, out.get(), target, progress_).run(pool_));
    WEFT_CHECK(sync_file(out.get(), target));
    WEFT_CHECK(rename_new(temporary, target));
    made_.add(target);
    return {};
  }

  Store& store_;
  const Manifest& manifest_;
  std::string directory_;
  Progress& progress_;
  std::set<std::string> directories_ = {""};  // made, relative; "" is the root
  Made made_;
  ThreadPool pool_{0};
};

}  // namespace

Result<ExportReport> export_version(Store& store, std::string_view spec, const std::string& directory,
                                    Progress& progress) {
  WEFT_TRY(auto snapshot, store.snapshot());
  WEFT_TRY(VersionRow row, resolve_version(*snapshot, spec));
  snapshot.reset();
  WEFT_TRY(LoadedVersion version, load_version(store, row));
  const Manifest& manifest = version.tree->manifest();
  WEFT_CHECK(Exporter(store, manifest, directory, progress).run());
  return ExportReport{manifest.files.size(), logical_bytes(manifest)};
}

}  // namespace weft
