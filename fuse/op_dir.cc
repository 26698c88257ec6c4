#include <vector>

#include "ops.h"

namespace weft {
namespace {

// Directory entries of one reply, packed as the kernel wants them.
class EntryBuffer {
 public:
  EntryBuffer(Server& server, fuse_req_t request, std::size_t size, bool told)
      : server_(server), request_(request), bytes_(size), told_(told) {}

  // False when it does not fit any more. `next` is where a later call goes on.
  bool add(const DirEntry& entry, off_t next) {
    struct stat facts {};
    facts.st_ino = entry.attr.ino;
    facts.st_mode = mode_of(entry.attr.type, server_.options);
    return took(fuse_add_direntry(request_, here(), room(), entry.name.c_str(), &facts, next));
  }

  bool add_plus(const DirEntry& entry, off_t next) {
    fuse_entry_param facts = to_entry(entry.attr, server_.options, told_);
    facts.ino = choose_node(server_, entry.attr);
    if (!entry.attr_known) facts.ino = 0;  // the kernel then takes the name, inode and type alone
    return took(fuse_add_direntry_plus(request_, here(), room(), entry.name.c_str(), &facts, next));
  }

  void reply() { fuse_reply_buf(request_, bytes_.data(), used_); }

 private:
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
  bool told_;  // as to_entry() wants it
  std::size_t used_ = 0;
};

using AddEntry = bool (EntryBuffer::*)(const DirEntry&, off_t);

Status reply_entries(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset,
                     const fuse_file_info* file, AddEntry add) {
  auto listing = server.listings.find(file->fh);
  if (!listing) {  // not read so far, or a handle from before a restart of the server
    WEFT_TRY(listing, render_listing(server.vfs, dir, server.freshness.now()));
    server.listings.fill(file->fh, listing);
  }
  const auto& entries = listing->entries;
  const Freshness::Pass pass = server.freshness.pass(listing->looked);
  EntryBuffer buffer(server, request, std::min(size, kReadBytesMax), pass.keeps());
  for (std::size_t i = offset < 0 ? 0 : static_cast<std::size_t>(offset); i < entries.size(); ++i)
    if (!(buffer.*add)(entries[i], static_cast<off_t>(i + 1))) break;
  buffer.reply();
  return {};
}

}  // namespace

Status op_opendir(Server& server, fuse_req_t request, fuse_ino_t dir, fuse_file_info* file) {
  const Freshness::Time looked = server.freshness.now();
  WEFT_TRY(const Attr attr, server.vfs.getattr(dir));
  std::shared_ptr<const Listing> listing;  // where names last it is rendered when it is read: the kernel may know them
  if (!attr.lasting_entries) {
    WEFT_TRY(listing, render_listing(server.vfs, dir, looked));
  }
  file->fh = server.listings.keep(std::move(listing));
  file->cache_readdir = attr.lasting_entries ? 1 : 0;
  file->keep_cache = attr.lasting_entries ? 1 : 0;
  if (fuse_reply_open(request, file) < 0) server.listings.drop(file->fh);
  return {};
}

Status op_readdir(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset, fuse_file_info* file) {
  return reply_entries(server, request, dir, size, offset, file, &EntryBuffer::add);
}

Status op_readdirplus(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset,
                      fuse_file_info* file) {
  return reply_entries(server, request, dir, size, offset, file, &EntryBuffer::add_plus);
}

Status op_releasedir(Server& server, fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  server.listings.drop(file->fh);
  fuse_reply_err(request, 0);
  return {};
}

}  // namespace weft
