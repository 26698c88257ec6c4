// The mounted tree without FUSE (vfs/vfs.cc): what each inode is, contains and reads as. fuse/ is a thin shell around
// it. Stateless: an inode number is valid after a restart too, as long as its version exists. Threads: any.
#pragma once

#include <sys/statvfs.h>

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

#include "weft/bytes/cold.h"
#include "weft/bytes/pack.h"
#include "weft/result.h"
#include "weft/store/assembly.h"
#include "weft/store/commits.h"
#include "weft/store/store.h"

namespace weft {

inline constexpr Ino kRootIno = 1;
inline constexpr Ino kReadmeIno = 2;
inline constexpr Ino kDotWeftIno = 4;
inline constexpr Ino kStatusIno = 5;
inline constexpr Ino kPeersIno = 6;
inline constexpr Ino kMetricsIno = 7;
// .weft/events. No listing has it, because a program that reads all files would wait in it.
inline constexpr Ino kEventsIno = 9;
// kModelsIno and kHubIno are in store_rows.h. src/vfs/numbers.h defines the other numbers.

// Numbers of new/, which a publishing mount has (fuse/drafts): its own number, and, with the bits below, those of its
// contents. The tree here lists the name new/ and knows nothing else about it.
inline constexpr unsigned kDraftNumberBits = 57;
inline constexpr Ino kDraftNumberMask = (Ino{1} << kDraftNumberBits) - 1;
inline constexpr Ino kNewIno = Ino{22} << kDraftNumberBits;
constexpr bool is_draft(Ino ino) {
  return (ino & ~kDraftNumberMask) == kNewIno;
}

enum class FileType : std::uint8_t { regular, directory, link };

struct Attr {
  Ino ino = 0;
  FileType type = FileType::regular;
  std::uint64_t size = 0;
  std::uint64_t blocks = 0;  // of 512 bytes: owned bytes of a published file (at least 1 if it has bytes), 1 of a view
  std::uint64_t nlink = 1;
  std::uint64_t mtime_ns = 0;    // publish time
  bool lasting_name = false;     // the entry that led here is valid as long as its directory exists
  bool lasting_attr = false;     // these attributes never change
  bool lasting_entries = false;  // a directory whose entries never change: absent names stay absent
  // True if the link count or the owned bytes change when other versions with the same bytes are published or removed.
  // A mount may show the old values for its attr_timeout.
  bool counted = false;
  bool large = false;         // a published file that is best read in large parts
  bool is_namespace = false;  // a directory above models that is not a model
  std::uint8_t execute = 0;   // x bits of a published file (File::execute)
};

// A place in a listing: after an entry, whose place never changes. 0: the beginning.
using ListPlace = std::uint64_t;
inline constexpr ListPlace kFirstPlace = ListPlace{1} << 57U;  // smallest place of an entry
inline constexpr ListPlace kLastPlace = (ListPlace{1} << 62U) - 1;

struct DirEntry {
  std::string name;
  Attr attr;  // complete if `attr_known`; else only the type and an ino, which may be another valid one of the file
  bool attr_known = false;
  ListPlace place = 0;
};

// A page of a listing.
struct DirPage {
  std::vector<DirEntry> entries;  // empty only at the end
  bool last = false;              // no entries follow
};

// Bytes in memory, as parts that follow one another.
using MemoryParts = std::vector<std::span<const std::byte>>;

// How the kernel should read an open file.
enum class ReadMode : std::uint8_t {
  cached,    // through its page cache, or from the backing file if there is one
  changing,  // past the page cache: the content differs from one open to the next (.weft/status)
  written,   // from the backing file, or past the page cache: others write to it
  streamed,  // past the page cache if possible: large parts are fetched during the read, and kept as they come
};

// Bytes in a local file, from an offset on.
struct LocalPlace {
  int fd = -1;  // owned by another object
  std::uint64_t offset = 0;
};

// An open file. Holds the locks that keep its bytes; reads from any thread.
class OpenFile {
 public:
  virtual ~OpenFile() = default;
  virtual std::uint64_t size() const = 0;
  // Fills `out` from `offset`. Returns fewer bytes only at the end of the file.
  virtual Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) = 0;
  // Returns the bytes of read() as places in memory, in order, valid while this object lives. Empty if they are not in
  // memory now; then call read(). If they are not on this node, waits and fails as read() does. The places are for
  // writev(2) and similar calls, which fail if a page has gone since. A direct access to such a page raises SIGBUS.
  virtual Result<MemoryParts> in_memory(std::uint64_t /*offset*/, std::size_t /*count*/) { return MemoryParts(); }
  // True if in_memory() should be called first, for any number of bytes: because read() may make the kernel read far
  // ahead.
  virtual bool better_in_memory() const { return false; }
  // Returns a local file that is, byte for byte, this whole file, for passthrough; -1 if there is none. Valid while
  // this object lives.
  virtual int backing_fd() const = 0;
  // Returns the place of these bytes in a local file; nothing if no file has them in one piece. Valid while this object
  // lives.
  virtual std::optional<LocalPlace> place_of(Range range) const {
    if (backing_fd() < 0 || range.offset > size() || range.length > size() - range.offset) return std::nullopt;
    return LocalPlace{backing_fd(), range.offset};
  }
  virtual ReadMode mode() const { return ReadMode::cached; }
  // Returns the whole pages of the record that contains this byte. A program that maps the file and reads one of these
  // pages soon needs the others. The last page may extend beyond the end of the file. Nothing: the file is not read by
  // records.
  virtual std::optional<Range> record_at(std::uint64_t /*offset*/) { return std::nullopt; }
  // Like read(), for pages of such a record. `out` begins at a page boundary.
  virtual Result<std::size_t> read_record(std::uint64_t offset, std::span<std::byte> out) { return read(offset, out); }
  // Writes to a draft. Errc::read_only: any other file.
  virtual Status write(std::uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) {
    return Error{Errc::read_only, "a write to a published file"};
  }
  // The kernel has the reply to the open. Read-ahead may start, because it cannot delay the open. Without this call it
  // starts with the first read().
  virtual void opened() {}
};

// The versions of a file: none, one, or the two that a diff compares. Unused ones are 0.
using FileVersions = std::array<VersionId, 2>;

struct Opened {
  std::shared_ptr<OpenFile> file;
  Attr attr;
  FileVersions versions{};
  std::vector<VersionHold> holds{};  // of `versions`: while the open file keeps them, it stays readable
};

struct VfsOptions {
  // Fetches known bytes and manifests that are not local; outlives the tree and its open files. nullptr: reads of them
  // fail. Errc::io: it could not fetch them.
  ColdReads* cold = nullptr;
  std::optional<ColdPolicy> cold_policy;  // none: as `cold` advises
  bool publishes = false;                 // new/ is listed
};

using Xattrs = std::vector<std::pair<std::string, std::string>>;

// Lines of .weft/events for one record of the journal, which may have none.
struct EventLines {
  std::string text;
  std::uint64_t position = 0;  // after the record: where the next lines begin
};

// A directory and a name that lead to an inode.
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
  // Returns the next entries, without "." and "..", in an order that never changes. A caller that continues at the
  // place of the last entry finds each entry that exists during the whole listing once, whatever is added or deleted.
  // At a place that no entry had: some of the entries, or Errc::invalid.
  virtual Result<DirPage> list(Ino dir, ListPlace from) = 0;
  virtual Result<Ino> parent(Ino dir) = 0;
  virtual Result<std::string> readlink(Ino ino) = 0;
  virtual Result<std::shared_ptr<OpenFile>> open(Ino ino) = 0;
  // Opens a file and returns its present attributes and its held versions too.
  virtual Result<Opened> open_with_attr(Ino ino) = 0;
  // As Store::take_over_holds.
  virtual Result<std::vector<VersionHold>> take_over_holds(std::span<const VersionId> versions) = 0;
  virtual Result<struct statvfs> statfs() = 0;  // of the store's file system
  // "user.weft.dtype", ".shape", ".hash" of views; empty for others.
  virtual Result<Xattrs> xattrs(Ino ino) = 0;
  // Returns the plain SHA-256 of a published file (File::sha256), or nothing for any other inode.
  virtual Result<std::optional<Digest>> sha256_of(Ino ino) = 0;
  // Returns a position that changes with each commit of any process. Later answers include all commits up to it.
  virtual Result<std::uint64_t> position() = 0;
  // Returns the lines of .weft/events after a position from position() or EventLines, a long history in parts; nothing
  // at the end.
  virtual Result<std::vector<EventLines>> events(std::uint64_t position) = 0;
  // Reports when events() may have more.
  virtual Result<std::unique_ptr<CommitWatch>> watch_commits() = 0;
  // Frees memory that was not used for some seconds.
  virtual void trim() = 0;
  // Sets the JSON members that the server adds to .weft/status ("\"mode\": \"passthrough\", …"). Each read of that file
  // calls the function, from any thread.
  virtual void set_mount_status(std::function<std::string()> json_members) = 0;

  // Assembled files (weft/store/assembly.h). From now on, a file that open() returns without a backing file may get
  // one. `tell` is then called for its inode, on a thread of the tree, until stop_assembling() returns.
  virtual void assemble(const AssemblyOptions& options, std::function<void(Ino)> tell) = 0;
  virtual void stop_assembling() = 0;
  // Nothing is assembled. .weft/status shows the reason.
  virtual void assemble_nothing(std::string reason) = 0;
  // Switches reads by record on or off; at first they are off. With them, open() gives LMDB files that are not in the
  // page cache record_at() and no backing file. Without them, LMDB files are like any others.
  virtual void read_by_record(bool on) = 0;
  // True if a published file that open() returned without a backing file has one by now.
  virtual bool assembled(Ino ino) = 0;
  // Returns where a published file is.
  virtual Result<Place> place(Ino ino) = 0;
};

}  // namespace weft
