// The open nodes. All opens of a node share one OpenFile, and one backing id or none: the kernel refuses to open or map
// a node both by passthrough and otherwise. Opens with ReadWay::straight and ReadWay::cached can coexist. An OpenTable
// holds the state of the open nodes that a new server needs. An open node holds its versions, so that each server can
// open it again after a removal and gc. Any thread.
//
// The kernel reads a file by passthrough without this process, and has its own reference to the backing file. So only
// the kOpenFilesKept of these nodes that were used last keep their OpenFile, which has descriptors and reads ahead. The
// others open it again if a request comes: the number of open files does not depend on this process's descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/user_shares.h"
#include "drafts/draft_tree.h"
#include "fuse/kernel/init_exchange.h"
#include "fuse/kernel/passthrough.h"
#include "fuse/process/open_table.h"
#include "fuse/state/node_id.h"
#include "fuse/state/recent_nodes.h"
#include "weft/programs/vfs.h"

namespace weft {

struct OpenAnswer {
  ReadWay way = ReadWay::cached;
  std::int32_t backing_id = 0;
  bool joined = false;                 // the node was already open and is read as before
  std::shared_ptr<OpenFile> opened{};  // call opened() on it after the reply
};

inline constexpr std::size_t kOpenFilesKept = 256;

// The opener of a draft holds this share of the server's descriptors until the handle is closed. All handles of a user
// for one draft hold the same share: they take no more descriptors.
struct OpenShare {
  uid_t user = 0;
  std::shared_ptr<void> held{};
};

class OpenFiles {
 public:
  // `drafts`: null if the mount does not publish. All outlive this.
  OpenFiles(Vfs& vfs, DraftTree* drafts, Passthrough& passthrough, OpenTable& table, const InitWords& agreed);

  // Sets the device that backing ids belong to. Call before the first open.
  void set_device(int device) { device_ = device; }

  // Opens `node` as `handle`. Each success needs one close(). A handle that is already open gets the same answer;
  // closing one that is not open has no effect. A draft needs a share, so that no user's open drafts take the
  // descriptors that others read with.
  Result<OpenAnswer> open(NodeId node, std::uint64_t handle, OpenShare share = {});
  // Returns the share for a draft that the user opens as `handle`. `node`: nothing if the draft is to be made. Errc::io
  // with EMFILE: the user, or all users, have too many drafts open.
  Result<OpenShare> share_for_draft(uid_t user, std::uint64_t handle, std::optional<NodeId> node);
  uid_t opener(std::uint64_t handle) const;  // of a draft; 0 for other handles
  void close(NodeId node, std::uint64_t handle);

  // Returns nullptr if the node is not open. A node that an earlier server opened is opened here on first use, and may
  // fail.
  Result<std::shared_ptr<OpenFile>> find(NodeId node);
  // Returns the attributes of an inode as of its open. The store may not have it any more.
  std::optional<Attr> attr(NodeId node) const;
  // True if the node is open and its reads and mappings are served by this process for as long as it is open.
  bool is_served(NodeId node) const;
  // Call on a READ for the page cache: the file is mapped. A mapping of a file open straight drops all its cached
  // pages, so later opens, which may map it too, are cached.
  void mapped(NodeId node);
  // Stream state of open handles of .weft/events, as in OpenTable. streams() lists the handles.
  std::vector<std::uint64_t> streams() const;
  std::optional<StreamPlace> stream_place(std::uint64_t handle, std::uint64_t offset = StreamSlot::kNoPlace - 1) const;
  void set_stream_place(std::uint64_t handle, std::uint64_t read_at, const StreamPlace& place);
  std::uint64_t poll_handle(std::uint64_t handle) const;
  void set_poll_handle(std::uint64_t handle, std::uint64_t poll_handle);
  // Opens that the kernel refused to pass through, and the first reason.
  struct Refused {
    std::uint64_t opens = 0;
    std::string problem = {};
  };
  Refused refused() const;

  // Call after a restart, before any request is served. Closes the backing ids that a killed server left behind.
  void close_stray_ids();
  // Call after a restart. Opens the open nodes, so that their packs are locked again.
  void reopen();

 private:
  struct Entry {
    std::uint64_t opens = 0;         // guarded by OpenFiles::mutex_
    Mutex opening;                   // locked before OpenFiles::mutex_; one thread opens, the others wait
    std::shared_ptr<OpenFile> file;  // this and the fields below: written with both locks held, read with either
    std::optional<Attr> attr;        // nothing: not opened by this server yet
    FileVersions versions{};
    std::vector<VersionHold> holds;
    OpenAnswer answer;
    bool answered = false;  // the kernel may know `answer`, so it is fixed while the inode is open
    bool mapped = false;    // opens that join get cached instead of straight
    std::map<uid_t, std::weak_ptr<void>> shares;  // of a draft, by opener; guarded by OpenFiles::mutex_
  };
  std::shared_ptr<void> join(Entry& entry, OpenShare share) WEFT_REQUIRES(mutex_);
  void take_over_holds() WEFT_REQUIRES(mutex_);
  std::shared_ptr<Entry> enter(NodeId node) WEFT_EXCLUDES(mutex_);
  void leave(NodeId node) WEFT_EXCLUDES(mutex_);
  Status fill(NodeId node, Entry& entry) WEFT_REQUIRES(entry.opening) WEFT_EXCLUDES(mutex_);
  Result<std::shared_ptr<OpenFile>> open_again(NodeId node, Entry& entry) WEFT_EXCLUDES(entry.opening, mutex_);
  Result<OpenAnswer> open_entry(NodeId node, std::uint64_t handle, OpenShare& share, Entry& entry)
      WEFT_EXCLUDES(entry.opening, mutex_);
  bool is_read_by_kernel(NodeId node, const Entry& entry) const WEFT_REQUIRES(mutex_);
  void use(NodeId node, const Entry& entry) WEFT_REQUIRES(mutex_);
  void drop_oldest() WEFT_EXCLUDES(mutex_);
  OpenAnswer choose(const OpenFile& file) WEFT_EXCLUDES(mutex_);
  void close_unrecorded(std::int32_t first, std::int32_t end) WEFT_REQUIRES(mutex_);

  Result<Opened> open_new(Ino ino, bool written);

  Vfs& vfs_;
  DraftTree* const drafts_;
  Passthrough& passthrough_;
  const InitWords& agreed_;
  int device_ = -1;
  UserShares draft_descriptors_;
  mutable Mutex mutex_;
  Refused refused_ WEFT_GUARDED_BY(mutex_);
  OpenTable& table_ WEFT_GUARDED_BY(mutex_);
  std::unordered_map<NodeId, std::shared_ptr<Entry>> entries_ WEFT_GUARDED_BY(mutex_);
  RecentNodes kept_ WEFT_GUARDED_BY(mutex_);  // nodes with a file, though the kernel reads without it
  std::unordered_map<std::uint64_t, std::shared_ptr<void>> shares_
      WEFT_GUARDED_BY(mutex_);                         // of open drafts, by handle
  std::uint32_t opening_ WEFT_GUARDED_BY(mutex_) = 0;  // opens that are not in the table yet
  std::int32_t backing_id_max_ WEFT_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
