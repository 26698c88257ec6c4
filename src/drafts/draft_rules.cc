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

void DraftCount::add_to(DraftUse& use, const struct stat& st) {
  if (S_ISREG(st.st_mode)) use.bytes += static_cast<std::uint64_t>(st.st_size);
  ++use.inodes[st.st_uid];
}

void DraftCount::add(const struct stat& st) {
  if (!S_ISREG(st.st_mode) || st.st_nlink == 1) return add_to(use_, st);
  Named& file = named_[st.st_ino];
  file.st = st;
  ++file.names;
}

DraftUse DraftCount::use() const {
  DraftUse use = use_;
  for (const auto& [number, file] : named_)
    if (rules_.counts(file.st) || file.names >= file.st.st_nlink) add_to(use, file.st);
  return use;
}

}  // namespace weft
