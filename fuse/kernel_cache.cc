#include "kernel_cache.h"

#include <cerrno>

#include "node_id.h"

namespace weft {

// Kernels before 6.2 cannot expire a name: they forget it.
void SessionCache::expire_name(Ino dir, const std::string& name) {
  if (fuse_lowlevel_notify_expire_entry(session_, dir, name.c_str(), name.size(), FUSE_LL_EXPIRE_ONLY) == -ENOSYS)
    forget_name(dir, name);
}

void SessionCache::forget_name(Ino dir, const std::string& name) {
  fuse_lowlevel_notify_inval_entry(session_, dir, name.c_str(), name.size());
}

void SessionCache::forget_attr(Ino ino) {
  for (const NodeId node : {ino, second_node(ino)}) fuse_lowlevel_notify_inval_inode(session_, node, -1, 0);
}

void SessionCache::forget_content(Ino ino) {
  fuse_lowlevel_notify_inval_inode(session_, ino, 0, 0);
}

}  // namespace weft
