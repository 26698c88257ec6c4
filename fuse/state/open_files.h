// The nodes that are open now. All opens of one node at one time share one OpenFile, and one backing id or none: the
// kernel refuses a node that is open passthrough and otherwise at once, or a mapping of it. Straight and cached go
// together. An OpenTable keeps what a new server must know of the open nodes. An open node holds its versions, so
// that each server can open it again, whatever was removed and collected. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fuse/drafts/draft_tree.h"
#include "fuse/kernel/init_exchange.h"
#include "fuse/kernel/passthrough.h"
#include "fuse/process/open_table.h"
#include "fuse/state/node_id.h"
#include "weft/vfs.h"

namespace weft {

struct OpenAnswer {
  ReadWay way = ReadWay::cached;
  std::int32_t backing_id = 0;
  bool joined = false;                 // it was open already, and is read as before
  std::shared_ptr<OpenFile> opened{};  // to be told so once the kernel has this answer
};

class OpenFiles {
 public:
  // `drafts`: null where nothing is published. All outlive this.
  OpenFiles(Vfs& vfs, DraftTree* drafts, Passthrough& passthrough, OpenTable& table, const InitWords& agreed);

  // The device that backing ids belong to; before the first open.
  void set_device(int device) { device_ = device; }

  // Opens `node` as `handle`; each success is paid back by one close(). A handle that is open already gets its answer
  // again, one that is not open closes without effect.
  Result<OpenAnswer> open(NodeId node, std::uint64_t handle);
  void close(NodeId node, std::uint64_t handle);

  // nullptr when it is not open. What is open since before this server's time is opened here when it is first asked
  // for, and an error says why that failed.
  Result<std::shared_ptr<OpenFile>> find(NodeId node);
  // What an inode was when it was opened: it may be gone from the store by now.
  std::optional<Attr> attr(NodeId node) const;
  // Is it open, and what is read and mapped of it comes from us, for as long as it is?
  bool is_served(NodeId node) const;
  // The kernel's page cache asks for bytes of it: it is mapped. A mapping of one that is open straight drops all pages
  // of it, so whoever opens it from now on, and may map it too, is read cached.
  void mapped(NodeId node);
  // Of open handles of .weft/events: OpenTable's. streams() lists them.
  std::vector<std::uint64_t> streams() const;
  std::optional<StreamPlace> stream_place(std::uint64_t handle, std::uint64_t offset = StreamSlot::kNoPlace - 1) const;
  void set_stream_place(std::uint64_t handle, std::uint64_t read_at, const StreamPlace& place);
  std::uint64_t poll_handle(std::uint64_t handle) const;
  void set_poll_handle(std::uint64_t handle, std::uint64_t poll_handle);
  // What the kernel would not pass through, and why at first.
  struct Refused {
    std::uint64_t opens = 0;
    std::string problem = {};
  };
  Refused refused() const;

  // After a restart, before any request is served: closes the backing ids that a killed server left over.
  void close_stray_ids();
  // After a restart: opens what is open, so that its packs are locked again.
  void reopen();

 private:
  struct Entry {
    std::uint64_t opens = 0;         // guarded by OpenFiles::mutex_
    std::mutex opening;              // before OpenFiles::mutex_; one thread opens, the others wait for it
    std::shared_ptr<OpenFile> file;  // written under both, so either suffices to read; the rest alike
    Attr attr;
    FileVersions versions{};
    std::vector<VersionHold> holds;
    OpenAnswer answer;
    bool answered = false;  // the kernel may know `answer`: it stays while the inode is open
    bool mapped = false;    // straight becomes cached for those who join
  };
  void take_over_holds();
  std::shared_ptr<Entry> enter(NodeId node);
  void leave(NodeId node);
  Status fill(NodeId node, Entry& entry);
  Result<OpenAnswer> open_entry(NodeId node, std::uint64_t handle, Entry& entry);
  OpenAnswer choose(const OpenFile& file);
  void close_unrecorded(std::int32_t first, std::int32_t end);

  Result<Opened> open_new(Ino ino, bool written);

  Vfs& vfs_;
  DraftTree* const drafts_;
  Passthrough& passthrough_;
  const InitWords& agreed_;
  int device_ = -1;
  mutable std::mutex mutex_;
  Refused refused_;                                             // guarded by mutex_
  OpenTable& table_;                                            // guarded by mutex_
  std::unordered_map<NodeId, std::shared_ptr<Entry>> entries_;  // guarded by mutex_
  std::uint32_t opening_ = 0;        // guarded by mutex_; opens that are not in the table yet
  std::int32_t backing_id_max_ = 0;  // guarded by mutex_
};

}  // namespace weft
