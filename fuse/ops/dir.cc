#include <cerrno>
#include <vector>

#include "fuse/ops/ops.h"

namespace weft {
namespace {

// Directory entries of one reply, in the kernel's format.
class EntryBuffer {
 public:
  // `attributes`: the entries' attributes are current.
  EntryBuffer(Server& server, fuse_req_t request, std::size_t size, bool attributes)
      : server_(server), request_(request), bytes_(size), attributes_(attributes) {}

  // False if the entry does not fit.
  bool add(const DirEntry& entry) {
    struct stat facts {};
    facts.st_ino = entry.attr.ino;
    facts.st_mode = mode_of(entry.attr, server_.options);
    return took(fuse_add_direntry(request_, here(), room(), entry.name.c_str(), &facts, next_of(entry)));
  }

  bool add_plus(const DirEntry& entry) {
    fuse_entry_param facts = to_entry(entry.attr, server_.options);
    facts.ino = choose_node(server_, entry.attr);
    if (!entry.attr_known || !attributes_) facts.ino = 0;  // the kernel then uses only name, inode and type
    return took(fuse_add_direntry_plus(request_, here(), room(), entry.name.c_str(), &facts, next_of(entry)));
  }

  void reply() { fuse_reply_buf(request_, bytes_.data(), used_); }

 private:
  // The offset at which a later call continues.
  static off_t next_of(const DirEntry& entry) { return static_cast<off_t>(entry.place); }
  char* here() { return bytes_.data() + used_; }
  std::size_t room() const { return bytes_.size() - used_; }
  bool took(std::size_t needed) {
    if (needed > room()) return false;
    used_ += needed;
    return true;
  }

  Server& server_;
  fuse_req_t request_;
  std::vector<char> bytes_;
  bool attributes_;
  std::size_t used_ = 0;
};

using AddEntry = bool (EntryBuffer::*)(const DirEntry&);

// Ends a listing whose names may change. The kernel would cache a listing that ends with an empty reply. It ignores a
// reply of this few bytes, and asks again for the next reader.
constexpr char kDirEndNotKept[8] = {};

Status reply_entries(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset, AddEntry add) {
  const ListPlace place = offset < 0 ? 0 : static_cast<ListPlace>(offset);
  WEFT_TRY(const auto found, server.listings.find(server.vfs, dir, place));
  const auto& entries = found.listing->page.entries;
  if (found.index == entries.size() && !found.listing->lasting) {
    fuse_reply_buf(request, kDirEndNotKept, std::min(size, sizeof kDirEndNotKept));
    return {};
  }
  EntryBuffer buffer(server, request, std::min(size, kReadBytesMax), found.current);
  for (std::size_t i = found.index; i < entries.size(); ++i)
    if (!(buffer.*add)(entries[i])) break;
  buffer.reply();
  return {};
}

}  // namespace

// Keeps no state for open directories. ENOSYS tells the kernel to open directories itself. It then caches their
// listings as far as reply_entries() allows.
Status op_opendir(Server& server, fuse_req_t request, fuse_ino_t dir, fuse_file_info* file) {
  if (opens_directories(server.shared.head().init)) {
    fuse_reply_err(request, ENOSYS);
    return {};
  }
  if (!is_draft(ino_of(dir))) {
    WEFT_TRY(const Attr attr, server.vfs.getattr(dir));
    file->cache_readdir = attr.lasting_entries ? 1 : 0;
    file->keep_cache = attr.lasting_entries ? 1 : 0;
  }
  fuse_reply_open(request, file);
  return {};
}

Status op_readdir(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset, fuse_file_info*) {
  return reply_entries(server, request, dir, size, offset, &EntryBuffer::add);
}

Status op_readdirplus(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset, fuse_file_info*) {
  return reply_entries(server, request, dir, size, offset, &EntryBuffer::add_plus);
}

}  // namespace weft
