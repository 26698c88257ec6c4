// Writes a new pack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "os/file_ops.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/result.h"
#include "weft/store/publish.h"

namespace weft {

// A mixed pack keeps the alignment of blobs of this size and more: their offset modulo kPackBlock is that in their
// source file. So assembled files and rewritten packs can share their blocks. That costs one block per blob on average
// and two at most, below 1 %.
inline constexpr std::uint64_t kPackBlock = 4096;
inline constexpr std::uint64_t kAlignedBlobMin = 1U << 20U;

// Memory aligned to kPackBlock.
struct BlockDelete {
  void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{kPackBlock}); }
};
using BlockBuffer = std::unique_ptr<std::byte[], BlockDelete>;
inline BlockBuffer make_block_buffer(std::size_t bytes) {
  return BlockBuffer(new (std::align_val_t{kPackBlock}) std::byte[bytes]);
}

// One new pack in a temporary directory. One thread may call write() while another one calls the other functions.
//
// Long writes bypass the page cache (O_DIRECT) if the file system can. That saves a copy and page cache work, which
// cost more than hashing. It leaves little to sync at the end, and a publish does not evict other processes' pages.
class PackWriter {
 public:
  // A pack of manifests gets a second file with the same bytes (copy_in()).
  static Result<std::unique_ptr<PackWriter>> create(const SafePath& store_path, const SafePath& temp_path,
                                                    PackKind kind = PackKind::blobs);
  // A pack with this id for a directory of packs.
  static Result<std::unique_ptr<PackWriter>> create_in(const SafePath& directory, const SafePath& temp_path, PackId id);

  // Turns the regular file `fd` itself into the pack, by a second name in the temporary directory. Null if that is
  // impossible: another file system or owner, too many names, or a writer has the file open. publish() gives the file
  // to the store's owner. It fails with Errc::busy, and restores the owner, if a process has opened the file for
  // writing since.
  static Result<std::unique_ptr<PackWriter>> take_in(const SafePath& directory, const SafePath& temp_path, PackId id,
                                                     int fd, Take take);
  // The same, with a new id for a pack of the store. A file that still arrives gets its second name and its lease from
  // hold() alone: meanwhile its receiver may have it open for writing.
  static Result<std::unique_ptr<PackWriter>> take(const SafePath& store_path, const SafePath& temp_path, int fd,
                                                  Take take);
  static Result<std::unique_ptr<PackWriter>> take_arriving(const SafePath& store_path, const SafePath& temp_path,
                                                           int fd, Take take);
  // Gives such a file its lease and its second name, once its last byte is there. Errc::busy: a process has the file
  // open for writing, or the file cannot get a second name any more.
  Status hold();

  PackId id() const { return id_; }
  int fd() const { return fd_.get(); }
  const SafePath& where() const { return path_; }
  bool empty() const { return lines_.empty(); }  // valid before begin_sync()

  // Copies nothing if the memory address and the offset are congruent modulo kPackBlock. Blocks of zeros become holes
  // (holes.h).
  Status write(std::uint64_t offset, std::span<const std::byte> bytes);
  // For mixed packs: reserves the place of the next blob. `like` is the blob's offset in its source file or old pack.
  std::uint64_t reserve(std::uint64_t length, std::uint64_t like);
  // Undoes the last reservation, at `offset`. Bytes written there are overwritten or cut off.
  void give_back(std::uint64_t offset);
  PackEntry take_entry(const ContentId& id);  // removes a listed blob, to be moved to another place
  void list(const PackEntry& entry);          // a blob that is or will be written at entry.offset
  Status set_size(std::uint64_t size);
  void set_merged() { toc_.merged = true; }
  void set_cached() { toc_.cached = true; }
  void set_boot(std::string boot) { toc_.boot = std::move(boot); }
  // Writes only to the page cache: sync() does not wait for the disk, and the .toc names this boot (unsynced.h). Call
  // before the first write().
  void keep_in_memory();
  // Frees the blocks before, between and after the listed blobs.
  Status prune();

  // Ends writing and starts to write .pack and .toc to the disk. Begin all files before the first sync(): a file system
  // may commit them together, for one wait.
  Status begin_sync();
  Status sync();     // makes the files durable, still in the temporary directory; calls begin_sync() if needed
  Status publish();  // moves the files to the directory; the caller syncs the directory
  Status unlink();   // for a pack that stayed empty

 private:
  PackWriter(PackId id, Fd fd, SafePath path, SafePath directory)
      : id_(id), fd_(std::move(fd)), path_(std::move(path)), directory_(std::move(directory)) {}
  static Result<bool> can_take(const SafePath& temp_path, int fd, Take take);
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
  bool cut_ = false;         // sync cuts off the bytes after the last blob
  Fd copy_;                  // the second file of a pack of manifests; invalid for other packs
  Fd direct_;                // the same file with O_DIRECT; none if the file system has no O_DIRECT
  bool past_cache_ = false;  // some bytes were written by direct_
  BlockBuffer bounce_;
  std::uint64_t buffered_ = 0;      // bytes written through the page cache
  std::optional<ReadLease> taken_;  // for a pack that was a user's file
  PackToc toc_;                     // without entries
  TocLines lines_;
  Fd toc_fd_;  // from begin_sync() to sync()
};

}  // namespace weft
