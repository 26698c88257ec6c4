#include "drafts/draft_rules.h"

#include "os/sys.h"

namespace weft {

DraftRules DraftRules::of(const std::string& store, const struct stat& tree) {
  const auto packs = stat_file(store + "/packs");
  return {tree.st_uid, packs.ok() ? packs->st_uid : tree.st_uid};
}

bool DraftRules::is_shared(const struct stat& st) const {
  return S_ISDIR(st.st_mode) && (st.st_mode & kSharedMode) == kSharedMode && st.st_uid == owner;
}

bool DraftRules::counts(const struct stat& st) const {
  return !S_ISREG(st.st_mode) || st.st_nlink == 1 || st.st_uid != owner_of_packs;
}

void DraftCount::count(const struct stat& st) {
  if (S_ISREG(st.st_mode)) use_.bytes += static_cast<std::uint64_t>(st.st_size);
  ++use_.inodes[st.st_uid];
}

void DraftCount::add(const struct stat& st) {
  const bool is_known = named_.contains(st.st_ino);  // gc may have removed its other names since
  if (!S_ISREG(st.st_mode) || (st.st_nlink == 1 && !is_known)) return count(st);
  Named& file = named_[st.st_ino];
  ++file.names;
  if (file.counted || (!rules_.counts(st) && file.names < st.st_nlink)) return;
  file.counted = true;
  count(st);
}

}  // namespace weft
