#include "fuse/state/node_id.h"

#include "fuse/state/server.h"

namespace weft {

NodeId choose_node(Server& server, const Attr& attr) {
  const NodeId first = attr.ino;
  if (attr.type != FileType::regular || !server.open_files.is_served(first)) return first;
  if (!server.vfs.assembled(attr.ino)) return first;
  const NodeId second = second_node(attr.ino);
  return server.open_files.is_served(second) ? first : second;
}

void reconsider_node(Server& server, Ino ino) {
  if (!server.open_files.is_served(ino) && !server.open_files.is_served(second_node(ino))) {
    const auto attr = server.vfs.getattr(ino);
    if (attr.ok()) server.notifier.drop_pages(ino, attr->size);
    return;
  }
  auto place = server.vfs.place(ino);
  if (place.ok()) server.notifier.invalidate_entry(place->dir, std::move(place->name));
}

}  // namespace weft
