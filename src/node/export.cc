#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "base/sha256.h"
#include "base/sys.h"
#include "base/thread_pool.h"
#include "node/export_target.h"
#include "store/hash.h"
#include "weft/node.h"

namespace weft {
namespace {

// The chunks of one file, copied and hashed by all threads of a pool. An extent's place is locked only while the file
// is copied.
class FileCopy {
 public:
  // Of the file's packs one stays open in `held`: the next file likely lies in it too.
  FileCopy(Store& store, const File& file, int out, std::string where, std::shared_ptr<const PackReader>& held,
           Progress& progress)
      : store_(store), file_(file), out_(out), where_(std::move(where)), held_(held), progress_(progress) {}

  Status run(ThreadPool& pool) {
    WEFT_CHECK(find_places());
    if (store_.info().digest == DigestMode::none) return run_unproven(pool);
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
    if (!places_.empty()) held_ = places_.back().pack;
    return {};
  }

  // A store without digests has the XXH3-128 alone, which is one hash over a whole extent.
  Status run_unproven(ThreadPool& pool) {
    pool.parallel_for(places_.size(), [&](std::size_t i) {
      if (Status copied = copy_extent(i); !copied.ok()) fail(std::move(copied).error());
    });
    return std::move(status_);
  }

  Status copy_extent(std::size_t index) {
    const Extent& extent = file_.extents[index];
    std::vector<std::byte> buffer(std::min(kDigestChunk, extent.id.length));
    Xxh3Stream hash;
    for (std::uint64_t at = 0; at < extent.id.length && !stop_.load(std::memory_order_relaxed);) {
      if (progress_.cancelled()) return Error{Errc::cancelled, "interrupted"};
      auto piece = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), extent.id.length - at));
      WEFT_CHECK(read_exact(places_[index].pack->fd(), places_[index].offset + at, piece, file_.path));
      hash.update(piece);
      WEFT_CHECK(write_exact(out_, extent.offset + at, piece, where_));
      progress_.advance(piece.size());
      at += piece.size();
    }
    if (stop_.load(std::memory_order_relaxed) || hash.digest128() == extent.id.xxh) return {};
    return damaged(extent, "XXH3-128", to_hex(extent.id.xxh));
  }

  Error damaged(const Extent& extent, std::string_view what, std::string_view expected) const {
    return Error{Errc::corrupt,
                 fmt::format("{}: the stored bytes {}..{} are damaged: expected the {} {}; run `weft fsck`", file_.path,
                             extent.offset, extent.offset + extent.id.length, what, expected)};
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
      if (tree_root(extent.id.length, chunks) != extent.id.root)
        return damaged(extent, "digest", to_hex(extent.id.root));
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
  std::shared_ptr<const PackReader>& held_;
  Progress& progress_;
  std::vector<LockedPlace> places_;
  std::vector<Chunk> chunks_;
  std::vector<Digest> digests_;  // of chunks_
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  Status status_;  // guarded by mutex_ while threads run
};

Status export_files(Store& store, const Manifest& manifest, const std::string& directory, Progress& progress) {
  WEFT_TRY(ExportTarget target, ExportTarget::open(directory));
  ThreadPool pool(0);
  std::shared_ptr<const PackReader> held;
  progress.total(logical_bytes(manifest));
  for (const File& file : manifest.files) {
    if (progress.cancelled()) return Error{Errc::cancelled, "interrupted"};
    progress.phase(fmt::format("writing {}", file.path));
    WEFT_TRY(const Fd out, target.create(file.path));
    const std::string where = fmt::format("{}/{}", directory, file.path);
    WEFT_CHECK(FileCopy(store, file, out.get(), where, held, progress).run(pool));
  }
  progress.phase("making the files durable");
  return target.publish();
}

}  // namespace

Result<ExportReport> export_version(Store& store, std::string_view spec, const std::string& directory,
                                    Progress& progress) {
  WEFT_TRY(auto snapshot, store.snapshot());
  WEFT_TRY(VersionRow row, resolve_version(*snapshot, spec));
  snapshot.reset();
  WEFT_TRY(LoadedVersion version, load_version(store, row));
  const Manifest& manifest = version.tree->manifest();
  WEFT_CHECK(export_files(store, manifest, directory, progress));
  return ExportReport{manifest.files.size(), logical_bytes(manifest)};
}

}  // namespace weft
