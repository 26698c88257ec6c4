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

std::uint64_t DraftRules::bytes(const struct stat& st) const {
  return S_ISREG(st.st_mode) && counts(st) ? static_cast<std::uint64_t>(st.st_size) : 0;
}

bool DraftRules::counts(const struct stat& st) const {
  return !S_ISREG(st.st_mode) || st.st_nlink == 1 || st.st_uid != owner_of_packs;
}

}  // namespace weft
