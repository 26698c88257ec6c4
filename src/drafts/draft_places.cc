#include "drafts/draft_places.h"

#include "base/limits.h"
#include "os/beneath.h"
#include "os/sys.h"

namespace weft {

Error draft_moved() {
  return {Errc::changed, "a draft: it has moved"};
}

Ino DraftPlaces::number_of(const struct stat& st) const {
  if (inode_of(st) == inode_of(root_)) return kNewIno;
  return kNewIno | (st.st_ino & kDraftNumberMask);
}

Result<DraftFound> DraftPlaces::found(const struct stat& st, Ino dir, const std::string& name) {
  if (st.st_dev != root_.st_dev) return other_file_system(name);
  if ((st.st_ino & ~std::uint64_t{kDraftNumberMask}) != 0) return too_large(name);
  const DraftFound found{number_of(st), st};
  if (found.ino == kNewIno) return found;
  const MutexLock lock(mutex_);
  places_[found.ino] = {dir, name};
  return found;
}

void DraftPlaces::forget(Ino ino) {
  const MutexLock lock(mutex_);
  places_.erase(ino);
}

Result<DraftPlaces::Place> DraftPlaces::place(Ino ino) const {
  const MutexLock lock(mutex_);
  const auto place = places_.find(ino);
  if (place == places_.end()) return draft_moved();
  return place->second;
}

Result<Ino> DraftPlaces::parent(Ino ino) const {
  if (ino == kNewIno) return kRootIno;
  WEFT_TRY(const Place found, place(ino));
  return found.dir;
}

Result<std::string> DraftPlaces::path(Ino ino) const {
  const MutexLock lock(mutex_);
  std::string path;
  for (unsigned depth = 0; ino != kNewIno; ++depth) {
    const auto place = places_.find(ino);
    if (place == places_.end()) return draft_moved();
    if (depth == limits::kPathComponentsMax) return too_deep(path);
    path = path.empty() ? place->second.name : place->second.name + "/" + path;
    ino = place->second.dir;
  }
  return path;
}

}  // namespace weft
