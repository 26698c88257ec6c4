// A pack that is being written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "os/file_ops.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/publish.h"
#include "weft/result.h"

namespace weft {

// Blobs of this size and more lie in a mixed pack as they lie in their file, modulo kPackBlock, so that a file that is
// put together from packs, and a pack that gc rewrites, can share their blocks. It costs a block on average, two at
// most: below 1 %.
inline constexpr std::uint64_t kPackBlock = 4096;
inline constexpr std::uint64_t kAlignedBlobMin = 1U << 20U;

// Memory that begins at a multiple of kPackBlock.
struct BlockDelete {
  void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{kPackBlock}); }
};
using BlockBuffer = std::unique_ptr<std::byte[], BlockDelete>;
inline BlockBuffer make_block_buffer(std::size_t bytes) {
  return BlockBuffer(new (std::align_val_t{kPackBlock}) std::byte[bytes]);
}

// One new pack below a temporary directory. write() and the rest may be called by two threads, each by one at a time.
//
// Long writes go past the page cache (O_DIRECT) where the file system can: it saves a copy and the page cache's work,
// more than hashing costs, leaves nothing to wait for at the end, and a publish does not push out what others read.
class PackWriter {
 public:
  static Result<std::unique_ptr<PackWriter>> create(const SafePath& store_path, const SafePath& temp_path,
                                                    PackKind kind = PackKind::blobs);
  // For a directory of packs, with this id.
  static Result<std::unique_ptr<PackWriter>> create_in(const SafePath& directory, const SafePath& temp_path, PackId id);

  // The regular file `fd` itself, by one more name below the temporary directory, which it keeps if it is dropped. Null
  // where it cannot be: another file system or owner, or somebody can write to it. publish() gives it to the store's
  // owner; Errc::busy, and it stays as it is, if somebody has opened it for writing since.
  static Result<std::unique_ptr<PackWriter>> take_in(const SafePath& directory, const SafePath& temp_path, PackId id,
                                                     int fd, Take take);
  // The same, for a new pack of the store.
  static Result<std::unique_ptr<PackWriter>> take(const SafePath& store_path, const SafePath& temp_path, int fd,
                                                  Take take);

  PackId id() const { return id_; }
  int fd() const { return fd_.get(); }
  const SafePath& where() const { return path_; }
  bool empty() const { return lines_.empty(); }  // before begin_sync()

  // Without a copy if bytes and offset are congruent modulo kPackBlock. Blocks of zeros stay holes (holes.h).
  Status write(std::uint64_t offset, std::span<const std::byte> bytes);
  // Mixed packs: the place of the next blob, which lies at `like` in its file, or in the pack where it was.
  std::uint64_t reserve(std::uint64_t length, std::uint64_t like);
  // Takes back the last reservation, at `offset`. What was written there is overwritten or cut off.
  void give_back(std::uint64_t offset);
  PackEntry take_entry(const ContentId& id);  // a listed blob that lies elsewhere from now on
  void list(const PackEntry& entry);          // a blob that is, or will be, written at entry.offset
  Status set_size(std::uint64_t size);
  void set_merged() { toc_.merged = true; }
  void set_boot(std::string boot) { toc_.boot = std::move(boot); }
  // The bytes go to the page cache, and sync() does not wait for them to be on the disk: the .toc says so, by its boot
  // (unsynced.h). Before the first write().
  void keep_in_memory();
  // Gives back blocks before, between and behind the listed blobs.
  Status prune();

  // Ends writing: .pack and .toc are under way to the disk. What a file system commits at once costs one wait then: all
  // that is to be durable is begun before the first sync().
  Status begin_sync();
  Status sync();     // both are durable, still under the temporary directory; begins where nobody has
  Status publish();  // both appear in the directory, which the caller syncs
  Status unlink();   // for one that turned out empty

 private:
  PackWriter(PackId id, Fd fd, SafePath path, SafePath directory)
      : id_(id), fd_(std::move(fd)), path_(std::move(path)), directory_(std::move(directory)) {}
  Status take_over() const;
  Status write_run(std::uint64_t offset, std::span<const std::byte> bytes);
  Status write_buffered(std::uint64_t offset, std::span<const std::byte> bytes);
  Status write_direct(std::uint64_t offset, std::span<const std::byte> bytes);
  std::uint64_t listed_end() const;
  std::span<const std::byte> aligned(std::span<const std::byte> bytes);
  PackId id_;
  Fd fd_;
  SafePath path_;  // without suffix
  SafePath directory_;
  std::uint64_t end_ = 0;
  bool in_memory_ = false;
  bool cut_ = false;         // bytes behind the last blob are to go
  Fd direct_;                // the same file with O_DIRECT; none where that cannot be
  bool past_cache_ = false;  // something went by direct_
  BlockBuffer bounce_;
  std::uint64_t buffered_ = 0;      // bytes through the page cache so far
  std::optional<ReadLease> taken_;  // it was a file of a user's
  PackToc toc_;                     // but for its entries
  TocLines lines_;
  Fd toc_fd_;  // from begin_sync() to sync()
};

}  // namespace weft
