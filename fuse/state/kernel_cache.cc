#include "fuse/state/kernel_cache.h"

#include <cerrno>

#include "fuse/state/node_id.h"

namespace weft {
namespace {

// libfuse 3.17 takes no flags.
int notify_expired(fuse_session* session, Ino dir, const std::string& name) {
#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 17)
  return fuse_lowlevel_notify_expire_entry(session, dir, name.c_str(), name.size(), FUSE_LL_EXPIRE_ONLY);
#else
  return fuse_lowlevel_notify_expire_entry(session, dir, name.c_str(), name.size());
#endif
}

}  // namespace

// Kernels before 6.2 cannot expire a name, so the name is invalidated.
void SessionCache::expire_name(Ino dir, const std::string& name) {
  if (notify_expired(session_, dir, name) == -ENOSYS)
    fuse_lowlevel_notify_inval_entry(session_, dir, name.c_str(), name.size());
}

int SessionCache::store_pages(std::uint64_t node, std::uint64_t offset, std::span<const std::byte> bytes) {
  fuse_bufvec source = {};  // FUSE_BUFVEC_INIT is no C++
  source.count = 1;
  source.buf[0].size = bytes.size();
  source.buf[0].fd = -1;
  source.buf[0].mem = const_cast<std::byte*>(bytes.data());
  return fuse_lowlevel_notify_store(session_, node, static_cast<off_t>(offset), &source, FUSE_BUF_NO_SPLICE);
}

void SessionCache::forget_pages(Ino ino, std::uint64_t offset, std::uint64_t length) {
  for (const NodeId node : {ino, second_node(ino)})
    fuse_lowlevel_notify_inval_inode(session_, node, static_cast<off_t>(offset), static_cast<off_t>(length));
}

}  // namespace weft
