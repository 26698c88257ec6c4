// The mounted tree without FUSE: what each inode is, contains and reads as. fuse/ is a thin shell around this.
// Stateless: any number that was ever handed out answers again after a restart, as long as its version is there.
// Threads: any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/assembly.h"
#include "weft/cold.h"
#include "weft/commits.h"
#include "weft/pack.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

inline constexpr Ino kRootIno = 1;
inline constexpr Ino kReadmeIno = 2;
inline constexpr Ino kDotWeftIno = 4;
inline constexpr Ino kStatusIno = 5;
inline constexpr Ino kPeersIno = 6;
inline constexpr Ino kMetricsIno = 7;
inline constexpr Ino kEventsIno = 9;  // .weft/events, which no listing has: whoever reads all files would wait in it
// kModelsIno and kHubIno are in store_rows.h. src/vfs/numbers.h says what the other numbers are.

// Numbers of new/, which a mount has that publishes (fuse/drafts): its own, and, with the bits below, those of what is
// in it. The tree here lists the name new/ and knows nothing else of it.
inline constexpr unsigned kDraftNumberBits = 57;
inline constexpr Ino kDraftNumberMask = (Ino{1} << kDraftNumberBits) - 1;
inline constexpr Ino kNewIno = Ino{19} << kDraftNumberBits;
constexpr bool is_draft(Ino ino) {
  return (ino & ~kDraftNumberMask) == kNewIno;
}

enum class FileType : std::uint8_t { regular, directory, link };

// What a file says of itself that may be written to. Others belong to the user whom the mount names.
struct FileOwner {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t mode = 0;  // permission bits
  std::uint64_t atime_ns = 0;
  std::uint64_t ctime_ns = 0;
};

struct Attr {
  Ino ino = 0;
  FileType type = FileType::regular;
  std::uint64_t size = 0;
  std::uint64_t blocks = 0;  // of 512 bytes: owned bytes of a published file (at least 1 if it has bytes), 1 of a view
  std::uint64_t nlink = 1;
  std::uint64_t mtime_ns = 0;    // publish time
  bool lasting_name = false;     // the entry that led here stays true for as long as its directory is there
  bool lasting_attr = false;     // these attributes never change
  bool lasting_entries = false;  // a directory whose names never change: absent ones stay absent
  // The link count or the owned bytes, which change when other versions that hold the same bytes are published or
  // removed. A mount may show the former ones for its attr_timeout.
  bool counted = false;
  bool large = false;                // a published file that is best asked for in large parts
  bool is_namespace = false;         // a directory that has models below it, and is none itself
  std::optional<FileOwner> owner{};  // of a draft
};

// Where a listing goes on: behind an entry, which has the same place for ever. 0: at the beginning.
using ListPlace = std::uint64_t;
inline constexpr ListPlace kFirstPlace = ListPlace{1} << 57U;  // that an entry may have
inline constexpr ListPlace kLastPlace = (ListPlace{1} << 62U) - 1;

struct DirEntry {
  std::string name;
  Attr attr;  // complete where `attr_known`; else only ino, which may be another valid one of the same file, and type
  bool attr_known = false;
  ListPlace place = 0;
};

// A part of a listing.
struct DirPage {
  std::vector<DirEntry> entries;  // none only at the end
  bool last = false;              // nothing comes behind them
};

// Bytes that lie in memory one part after the other.
using MemoryParts = std::vector<std::span<const std::byte>>;

// How the kernel is to read an open file.
enum class ReadMode : std::uint8_t {
  cached,    // through its page cache, or from the backing file if there is one
  changing,  // past the page cache: the content differs from one open to the next (.weft/status)
  written,   // from the backing file, or past the page cache: others write to it
  streamed,  // past the page cache if it can: large parts come from other nodes during the read and are kept as they
             // come
};

// One open file. Holds the locks that keep its bytes; reads from any thread.
class OpenFile {
 public:
  virtual ~OpenFile() = default;
  virtual std::uint64_t size() const = 0;
  // Fills `out` from `offset`; fewer bytes only at the end of the file.
  virtual Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) = 0;
  // The bytes that read() would give, where they lie in memory, in order, while this object lives. Nothing where they
  // do not, or not now: then read() brings them. Fails as read() where they are not on this node, after the same wait.
  // They are for writev(2) and its like, which fail where a page has gone since; who looks at them may die of it.
  virtual Result<MemoryParts> in_memory(std::uint64_t /*offset*/, std::size_t /*count*/) { return MemoryParts(); }
  // in_memory() is to be asked first, for however few bytes: where read() meets them, the kernel may read far beyond.
  virtual bool better_in_memory() const { return false; }
  // A local file that is, byte for byte, this whole file: what passthrough may use. -1 when there is none. Valid while
  // this object lives.
  virtual int backing_fd() const = 0;
  virtual ReadMode mode() const { return ReadMode::cached; }
  // The whole pages of the record that has this byte, where whoever maps the file and wants a page of it soon wants the
  // others too. The last page may reach behind the end of the file.
  virtual std::optional<Range> record_at(std::uint64_t /*offset*/) { return std::nullopt; }
  // As read(), of pages of such a record, into memory that begins with a page.
  virtual Result<std::size_t> read_record(std::uint64_t offset, std::span<std::byte> out) { return read(offset, out); }
  // Of a draft. Errc::read_only: of any other file.
  virtual Status write(std::uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) {
    return Error{Errc::read_only, "a write to a published file"};
  }
  // Who opened it has the answer: what is done ahead of reading may begin, and takes no time from the opening. Without
  // it that begins with the first read().
  virtual void opened() {}
};

// The versions that a file is of: none, one, or the two that a diff compares. 0 fills up.
using FileVersions = std::array<VersionId, 2>;

struct Opened {
  std::shared_ptr<OpenFile> file;
  Attr attr;
  FileVersions versions{};
  std::vector<VersionHold> holds{};  // of these: whoever has the file open keeps them, and the file then stays readable
};

struct VfsOptions {
  // JSON members that the server adds to .weft/status ("\"mode\": \"passthrough\", …").
  std::string mount_status;
  // Who brings bytes and manifests that are known and not here; outlives the tree and what is open. None: reading them
  // fails. What they cannot bring is Errc::io.
  ColdReads* cold = nullptr;
  std::optional<ColdPolicy> cold_policy;  // without: as `cold` advises
  bool publishes = false;                 // new/ is listed
};

using Xattrs = std::vector<std::pair<std::string, std::string>>;

struct StatFs {
  std::uint64_t block_size = 0, blocks = 0, blocks_free = 0, blocks_available = 0, files = 0, files_free = 0;
};

// Lines of .weft/events: those of one record of the journal, which may have none.
struct EventLines {
  std::string text;
  std::uint64_t position = 0;  // behind the record: where the next lines begin
};

// Where an inode is found by name.
struct Place {
  Ino dir = 0;
  std::string name;
};

class Vfs {
 public:
  virtual ~Vfs() = default;
  static std::unique_ptr<Vfs> make(Store& store, const VfsOptions& options);

  virtual Result<Attr> lookup(Ino parent, std::string_view name) = 0;  // not_found, not_dir
  virtual Result<Attr> getattr(Ino ino) = 0;
  // The next entries, without "." and "..", in an order that does not change: whoever goes on at the place of the last
  // one, whatever came and went meanwhile, finds each entry that is there all the while once. At a place that none
  // of its entries had: some of them, or Errc::invalid.
  virtual Result<DirPage> list(Ino dir, ListPlace from) = 0;
  virtual Result<Ino> parent(Ino dir) = 0;
  virtual Result<std::string> readlink(Ino ino) = 0;
  virtual Result<std::shared_ptr<OpenFile>> open(Ino ino) = 0;
  // The same, and its attributes as they are then, and its versions, held.
  virtual Result<Opened> open_with_attr(Ino ino);
  // As Store::take_over_holds.
  virtual Result<std::vector<VersionHold>> take_over_holds(std::span<const VersionId> versions);
  virtual Result<StatFs> statfs() = 0;
  // "user.weft.dtype", ".shape", ".hash" of views; empty for others.
  virtual Result<Xattrs> xattrs(Ino ino) = 0;
  // Another one after each commit, by any process. Later answers show at least the commits up to it.
  virtual Result<std::uint64_t> position() = 0;
  // What .weft/events says behind a position that position() or an EventLines had; a long history in parts, and nothing
  // at the end. By default there is no such file.
  virtual Result<std::vector<EventLines>> events(std::uint64_t position);
  // Tells when events() may have more.
  virtual Result<std::unique_ptr<CommitWatch>> watch_commits();
  // Gives back memory that was not used for some seconds.
  virtual void trim() {}
  // Replaces VfsOptions::mount_status. Each read of .weft/status calls it, from any thread.
  virtual void set_mount_status(std::function<std::string()> json_members) = 0;

  // Assembled files (weft/assembly.h). From here on, files that open() gives without a backing file may get one;
  // `tell` is then called for them, from a thread of the tree's own, until stop_assembling() returns.
  virtual void assemble(const AssemblyOptions& options, std::function<void(Ino)> tell);
  virtual void stop_assembling() {}
  // Nothing is assembled, for this reason: it is said in .weft/status.
  virtual void assemble_nothing(std::string reason);
  // From now on open() gives LMDB files that are not in the page cache with record_at() and without a backing file, or
  // as any others. At first as any others.
  virtual void read_by_record(bool /*on*/) {}
  // Has a published file that open() gives without a backing file got one by now?
  virtual bool assembled(Ino ino);
  // The places of a published file.
  virtual Result<std::vector<Place>> places(Ino ino);
};

}  // namespace weft
