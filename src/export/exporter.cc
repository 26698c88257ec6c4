#include "export/exporter.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "base/thread_pool.h"
#include "blobs/open_blobs.h"
#include "os/sys.h"
#include "reading/gathered_file.h"
#include "reading/open_file.h"
#include "weft/content.h"

namespace weft {
namespace {

// Caches the last few segments, because consecutive files mostly share one. One thread.
class BundledBytes {
 public:
  // `manifest` outlives this object. The caller holds the version.
  BundledBytes(Store& store, const Manifest& manifest)
      : store_(store), bundles_(files_of(manifest, FileRole::bundle)) {}

  // Returns the bytes of a file, valid until the next call. Errc::corrupt: the stored bytes are damaged, or the file
  // does not lie in one segment.
  Result<std::span<const std::byte>> of(const SmallFile& file);

 private:
  struct Segment {
    const Extent* extent = nullptr;
    std::vector<std::byte> bytes;
  };
  Result<std::vector<std::byte>> read(const Extent& extent, const SmallFile& file) const;

  Store& store_;
  const std::span<const File> bundles_;
  std::list<Segment> known_;  // most recently used first
};

constexpr std::size_t kSegmentsKept = 4;

Result<std::vector<std::byte>> BundledBytes::read(const Extent& extent, const SmallFile& file) const {
  if (extent.id.length > kSegmentMax)
    return Error{Errc::corrupt, fmt::format("{}: expected a segment of at most {} bytes, got {}", file.path,
                                            kSegmentMax, extent.id.length)};
  WEFT_TRY(const auto places, open_blobs(store_, std::span(&extent.id, 1)));
  std::vector<std::byte> bytes(extent.id.length);
  WEFT_CHECK(read_exact(places.front().pack->fd(), places.front().offset, bytes, file.path));
  std::vector<Digest> chunks(chunk_count(bytes.size()));
  sha256_chunks(bytes, chunks);
  if (tree_root(bytes.size(), chunks) != extent.id.root)
    return Error{Errc::corrupt, fmt::format("{}: the stored bytes of its bundle are damaged: expected the digest {}; "
                                            "run `weft fsck`",
                                            file.path, to_hex(extent.id.root))};
  return bytes;
}

Result<std::span<const std::byte>> BundledBytes::of(const SmallFile& file) {
  if (file.bytes.length == 0) return std::span<const std::byte>();
  const std::vector<Extent>& extents = bundles_[file.bundle].extents;
  const auto behind = std::ranges::upper_bound(extents, file.bytes.offset, {}, &Extent::offset);
  const Extent& extent = *std::prev(behind);  // the first extent begins at 0
  const std::uint64_t at = file.bytes.offset - extent.offset;
  if (at > extent.id.length || file.bytes.length > extent.id.length - at)
    return Error{Errc::corrupt, fmt::format("{}: expected its bytes in one segment", file.path)};
  const auto known = std::ranges::find(known_, &extent, &Segment::extent);
  if (known != known_.end()) {
    known_.splice(known_.begin(), known_, known);
  } else {
    WEFT_TRY(std::vector<std::byte> bytes, read(extent, file));
    known_.push_front({&extent, std::move(bytes)});
    if (known_.size() > kSegmentsKept) known_.pop_back();
  }
  return std::span<const std::byte>(known_.front().bytes).subspan(at, file.bytes.length);
}

// Most extents in a group of files whose blobs are looked up together. A lookup for each small file would take longer
// than its copy.
constexpr std::size_t kGroupExtentsMax = 256;

// Copies one file by chunks, and hashes them, on all threads of a pool. Only hashes them if `out` is -1.
class FileCopy {
 public:
  FileCopy(const File& file, std::span<const OpenPlace> places, int out, std::string where, Progress& progress)
      : file_(file), places_(places), out_(out), where_(std::move(where)), progress_(progress) {}

  Status run(ThreadPool& pool) {
    cut_chunks();
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

  void cut_chunks() {
    for (std::size_t i = 0; i < file_.extents.size(); ++i) {
      const std::uint64_t length = file_.extents[i].id.length;
      for (std::uint64_t at = 0; at < length; at += kDigestChunk)
        chunks_.push_back({i, at, static_cast<std::size_t>(std::min(kDigestChunk, length - at))});
    }
    digests_.resize(chunks_.size());
  }

  Error damaged(const Extent& extent) const {
    return Error{Errc::corrupt,
                 fmt::format("{}: the stored bytes {}..{} are damaged: expected the digest {}; run `weft fsck`",
                             file_.path, extent.offset, extent.offset + extent.id.length, to_hex(extent.id.root))};
  }

  Status copy_chunk(std::size_t index) {
    if (progress_.cancelled()) return Error{Errc::cancelled, "interrupted"};
    const Chunk& chunk = chunks_[index];
    const OpenPlace& place = places_[chunk.extent];
    std::vector<std::byte> buffer(chunk.length);
    WEFT_CHECK(read_exact(place.pack->fd(), place.offset + chunk.offset, buffer, file_.path));
    digests_[index] = sha256(buffer);
    if (out_ < 0) return {};
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

  const File& file_;
  std::span<const OpenPlace> places_;  // by extent of the file
  int out_;
  std::string where_;
  Progress& progress_;
  std::vector<Chunk> chunks_;
  std::vector<Digest> digests_;  // by index of chunks_
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  Status status_;  // guarded by mutex_ while threads run
};

// Returns the first files of `files` that form one group: at most kGroupExtentsMax extents, or one file.
std::span<const File> next_group(std::span<const File> files) {
  std::size_t count = 0, extents = 0;
  while (count < files.size() && (count == 0 || extents + files[count].extents.size() <= kGroupExtentsMax))
    extents += files[count++].extents.size();
  return files.first(count);
}

Result<std::vector<OpenPlace>> find_places(Store& store, std::span<const File> files) {
  std::vector<ContentId> blobs;
  for (const File& file : files)
    for (const Extent& extent : file.extents) blobs.push_back(extent.id);
  auto places = open_blobs(store, blobs);
  if (places.ok()) return places;
  if (files.size() == 1)
    return Error{places.error().code, fmt::format("{}: {}", files.front().path, places.error().message)};
  // Look up each file alone, so that the error names the file.
  for (std::size_t i = 0; i < files.size(); ++i) WEFT_CHECK(find_places(store, files.subspan(i, 1)));
  return places;
}

constexpr std::uint64_t kGatheredPiece = 4U << 20U;  // bytes that one read of a scattered tensor gathers

// Returns the extents that the runs of these tensors lie in, as one file, each once.
File extents_of_runs(const Manifest& manifest, std::span<const Tensor* const> tensors) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  File out;
  for (const Tensor* tensor : tensors)
    for (const TensorRun& run : tensor->runs)
      if (known.emplace(run.file, run.extent).second)
        out.extents.push_back(manifest.files[run.file].extents[run.extent]);
  return out;
}

// Opens the elements of a scattered tensor, in C order.
Result<std::shared_ptr<OpenFile>> open_elements(Store& store, const Manifest& manifest, const Tensor& tensor,
                                                const std::string& where) {
  GatheredTensor gathered;
  gathered.shape = tensor.shape;
  gathered.strides = tensor.strides;
  gathered.element_bytes = dtype_info(tensor.dtype)->block_bytes;
  if (!tensor.grid.empty()) {
    WEFT_TRY(gathered.grid, Grid::of(tensor.dtype, tensor.shape, tensor.grid));
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::shared_ptr<OpenFile>> extents;  // the runs may be millions
  for (const TensorRun& run : tensor.runs) {
    std::shared_ptr<OpenFile>& extent = extents[{run.file, run.extent}];
    if (!extent) {
      const ContentId& blob = manifest.files[run.file].extents[run.extent].id;
      WEFT_TRY(extent, open_blobs(store, where, "", std::span(&blob, 1)));
    }
    gathered.add(extent, {run.offset, run.length});
  }
  return open_gathered(std::move(gathered));
}

class Exporter {
 public:
  Exporter(Store& store, ExportPlace& place, std::string where, Progress& progress)
      : store_(store), place_(place), where_(std::move(where)), progress_(progress) {}

  // Merges the published files, the small files and the empty directories by path.
  Status run(const Manifest& manifest, std::span<const SmallFile> small) {
    BundledBytes bundled(store_, manifest);
    empty_ = manifest.directories;
    std::span<const File> files = published_files(manifest);
    for (const SmallFile& one : small) {
      const auto before = std::ranges::lower_bound(files, one.path, {}, &File::path);
      const auto count = static_cast<std::size_t>(before - files.begin());
      WEFT_CHECK(write_all(files.first(count)));
      files = files.subspan(count);
      WEFT_CHECK(write(one, bundled));
    }
    WEFT_CHECK(write_all(files));
    WEFT_CHECK(make_empty(empty_.size()));
    progress_.phase("making the files durable");
    return place_.publish();
  }

  // Writes the view. It outlives the place, as the manifest does.
  Status run(const Manifest& manifest, const SafetensorsView& view) {
    empty_ = manifest.directories;
    for (const ViewEntry& entry : view_entries(manifest, view)) {
      if (entry.kind == ViewEntry::Kind::published) WEFT_CHECK(write_all(std::span(&manifest.files[entry.index], 1)));
      if (entry.kind != ViewEntry::Kind::made) continue;
      const ViewFile& made = view.made[entry.index];
      WEFT_CHECK(made.kind == ViewFile::Kind::container ? write_container(manifest, made)
                                                        : write_text(made, render_view_text(manifest, view, made)));
    }
    WEFT_CHECK(make_empty(empty_.size()));
    progress_.phase("making the files durable");
    return place_.publish();
  }

 private:
  Status write_text(const ViewFile& made, const std::string& text) {
    return write({made.path, text.size()}, [&](int out, const std::string& where) {
      return write_exact(out, 0, std::as_bytes(std::span(text)), where);
    });
  }

  // Tensors that are one extent are copied as those of a published file are. The others are gathered, after the extents
  // that have their bytes were verified.
  Status write_container(const Manifest& manifest, const ViewFile& made) {
    progress_.phase(fmt::format("writing {}", made.path));
    const ViewContainer container = view_container(manifest, made);
    File whole;
    whole.path = made.path;
    std::vector<const Tensor*> scattered;
    std::vector<std::uint64_t> offsets;  // of the scattered tensors
    std::uint64_t offset = container.header.size();
    for (const TensorRef& ref : container.tensors) {
      const File& file = manifest.files[ref.file];
      const Tensor& tensor = file.tensors[ref.tensor];
      if (tensor.extent != kNoExtent) whole.extents.push_back({offset, file.extents[tensor.extent].id});
      if (tensor.scattered()) {
        scattered.push_back(&tensor);
        offsets.push_back(offset);
      }
      offset += stored_bytes(file, tensor);
    }
    WEFT_TRY(const auto places, find_places(store_, std::span(&whole, 1)));
    return write({made.path, container.size}, [&](int out, const std::string& where) -> Status {
      WEFT_CHECK(write_exact(out, 0, std::as_bytes(std::span(container.header)), where));
      WEFT_CHECK(FileCopy(whole, places, out, where, progress_).run(pool_));
      WEFT_CHECK(verify(manifest, made.path, scattered));
      for (std::size_t i = 0; i < scattered.size(); ++i)
        WEFT_CHECK(write_gathered(manifest, *scattered[i], out, offsets[i], where));
      return {};
    });
  }

  Status verify(const Manifest& manifest, const std::string& path, std::span<const Tensor* const> tensors) {
    File sources = extents_of_runs(manifest, tensors);
    sources.path = path;
    WEFT_TRY(const auto places, find_places(store_, std::span(&sources, 1)));
    return FileCopy(sources, places, -1, path, progress_).run(pool_);
  }

  Status write_gathered(const Manifest& manifest, const Tensor& tensor, int out, std::uint64_t offset,
                        const std::string& where) {
    WEFT_TRY(const auto elements, open_elements(store_, manifest, tensor, where));
    std::vector<std::byte> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(elements->size(), kGatheredPiece)));
    for (std::uint64_t at = 0; at < elements->size();) {
      if (progress_.cancelled()) return Error{Errc::cancelled, "interrupted"};
      WEFT_TRY(const std::size_t got, elements->read(at, buffer));
      if (got == 0) return Error{Errc::io, where + ": a tensor ended before its end"};
      WEFT_CHECK(write_exact(out, offset + at, std::span(buffer).first(got), where));
      progress_.advance(got);
      at += got;
    }
    return {};
  }

  Status write_all(std::span<const File> files) {
    while (!files.empty()) {
      const auto group = next_group(files);
      WEFT_TRY(const auto places, find_places(store_, group));
      std::span<const OpenPlace> rest(places);
      for (const File& file : group) {
        WEFT_CHECK(write(file, rest.first(file.extents.size())));
        rest = rest.subspan(file.extents.size());
      }
      files = files.subspan(group.size());
    }
    return {};
  }

  // Makes the next empty directories.
  Status make_empty(std::size_t count) {
    for (const std::string& path : empty_.first(count)) WEFT_CHECK(place_.make_directory(path));
    empty_ = empty_.subspan(count);
    return {};
  }

  // Lets `copy` write the bytes, unless the place has them.
  Status write(const ExportedFile& file, const std::function<Status(int out, const std::string& where)>& copy) {
    if (progress_.cancelled()) return Error{Errc::cancelled, "interrupted"};
    const auto behind =
        std::ranges::lower_bound(empty_, file.path, {}, [](const std::string& one) -> std::string_view { return one; });
    WEFT_CHECK(make_empty(static_cast<std::size_t>(behind - empty_.begin())));
    WEFT_TRY(const bool reused, place_.reuse(file));
    if (reused) {
      progress_.advance(file.size);
      return {};
    }
    WEFT_TRY(const Fd out, place_.create(file));
    WEFT_CHECK(copy(out.get(), fmt::format("{}/{}", where_, file.path)));
    return place_.complete(file, out);
  }

  Status write(const SmallFile& file, BundledBytes& bundled) {
    WEFT_TRY(const auto bytes, bundled.of(file));
    return write({file.path, bytes.size(), file.execute, sha256(bytes)},
                 [&](int out, const std::string& where) -> Status {
                   WEFT_CHECK(write_exact(out, 0, bytes, where));
                   progress_.advance(bytes.size());
                   return {};
                 });
  }

  Status write(const File& file, std::span<const OpenPlace> places) {
    progress_.phase(fmt::format("writing {}", file.path));
    return write({file.path, file.size, file.execute, file.sha256}, [&](int out, const std::string& where) {
      return FileCopy(file, places, out, where, progress_).run(pool_);
    });
  }

  Store& store_;
  ExportPlace& place_;
  std::string where_;
  Progress& progress_;
  ThreadPool pool_{0};
  std::span<const std::string> empty_;  // directories that are not made yet
};

}  // namespace

Result<std::vector<SmallFile>> sorted_small_files(Store& store, const Manifest& manifest) {
  std::vector<SmallFile> small;
  WEFT_CHECK(each_small_file(store, manifest, [&small](const SmallFile& file) -> Status {
    small.push_back(file);
    return {};
  }));
  std::ranges::sort(small, {}, &SmallFile::path);
  return small;
}

Status write_view(Store& store, const Manifest& manifest, const SafetensorsView& view, ExportPlace& place,
                  const std::string& where, Progress& progress) {
  progress.total(view_bytes(manifest, view));
  return Exporter(store, place, where, progress).run(manifest, view);
}

std::uint64_t view_bytes(const Manifest& manifest, const SafetensorsView& view) {
  std::uint64_t bytes = 0;
  for (const ViewEntry& entry : view_entries(manifest, view)) {
    if (entry.kind == ViewEntry::Kind::published) bytes += manifest.files[entry.index].size;
    if (entry.kind != ViewEntry::Kind::made) continue;
    const ViewFile& made = view.made[entry.index];
    bytes += made.kind == ViewFile::Kind::container ? view_container(manifest, made).size
                                                    : render_view_text(manifest, view, made).size();
  }
  return bytes;
}

Status write_files(Store& store, const Manifest& manifest, std::span<const SmallFile> small, ExportPlace& place,
                   const std::string& where, Progress& progress) {
  progress.total(logical_bytes(manifest));
  return Exporter(store, place, where, progress).run(manifest, small);
}

}  // namespace weft
