// Namespaces of models/ in new/. Each is a directory that all users share.
#include <algorithm>
#include <string>

#include "fuse/ops/draft_ops.h"

namespace weft {
namespace {

// Returns the directory of models/ that a shared directory of new/ stands for, or nothing.
std::optional<Ino> namespace_of(Server& server, Ino dir) {
  if (!server.drafts->is_shared(dir)) return std::nullopt;
  const auto path = server.drafts->places().path(dir);
  if (!path.ok()) return std::nullopt;
  Ino found = kModelsIno;
  for (std::size_t begin = 0; begin < path->size();) {
    const std::size_t end = std::min(path->find('/', begin), path->size());
    const auto attr = server.vfs.lookup(found, path->substr(begin, end - begin));
    if (!attr.ok() || !attr->is_namespace) return std::nullopt;
    found = attr->ino;
    begin = end + 1;
  }
  return found;
}

}  // namespace

Result<DraftFound> share_namespace(Server& server, Ino dir, const std::string& name) {
  const auto above = namespace_of(server, dir);
  const auto attr = above ? server.vfs.lookup(*above, name) : Error{Errc::not_found, name};
  if (attr.ok() && attr->is_namespace) return server.drafts->share(dir, name);
  return Error{Errc::not_found, name + ": models/ has no such namespace"};
}

void share_namespaces(Server& server, Ino dir) {
  const auto position = server.vfs.position();
  if (!position.ok() || server.namespaces.is_done(dir, *position)) return;
  const auto above = namespace_of(server, dir);
  if (!above) return;
  for (ListPlace from = 0;;) {
    const auto page = server.vfs.list(*above, from);
    if (!page.ok() || page->entries.empty()) return;
    for (const DirEntry& entry : page->entries) {
      if (!entry.attr.is_namespace) continue;
      const auto there = server.drafts->lookup(dir, entry.name);
      if (!there.ok() && there.error().code == Errc::not_found)
        static_cast<void>(server.drafts->share(dir, entry.name));
    }
    if (page->last) return server.namespaces.done(dir, *position);
    from = page->entries.back().place;
    server.requests.alive();
  }
}

}  // namespace weft
