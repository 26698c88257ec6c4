#include "drafts/old_drafts.h"

#include <fcntl.h>

#include <algorithm>
#include <functional>

#include "base/limits.h"
#include "base/log.h"
#include "drafts/draft_clock.h"
#include "drafts/draft_rules.h"
#include "os/entries.h"
#include "os/tree_walk.h"

namespace weft {
namespace {

struct Found {
  std::int64_t written = 0;  // newest change of a file in the draft, seconds since 1970
  bool in_use = false;
};

void add(const TreeEntry& entry, DraftCount& count, Found& found) {
  const struct stat& st = entry.st;
  found.written = std::max<std::int64_t>({found.written, st.st_mtim.tv_sec, st.st_ctim.tv_sec});
  count.add(st);
  if (!S_ISREG(st.st_mode)) return;
  const auto file = open_at(entry.directory, entry.name, O_RDONLY | O_NONBLOCK);
  found.in_use = found.in_use || !file.ok() || !not_written(file->get());
}

// Adds the entries of a draft to the count. A draft with too many entries is in use: the newest may be among the rest.
Found examine(const TreeEntry& draft, DraftCount& count) {
  Found found;
  add(draft, count, found);
  if (!S_ISDIR(draft.st.st_mode)) return found;
  const auto directory = open_directory_at(draft.directory, draft.name);
  TreeWalk walk(limits::kDraftEntriesMax);
  walk.visit = [&](const TreeEntry& entry) -> Result<WalkNext> {
    add(entry, count, found);
    return WalkNext::enter;
  };
  walk.failed = pass_failed;
  if (directory.ok() && !walk_tree(*directory, draft.path, walk).ok()) found.in_use = true;
  return found;
}

Result<Fd> open_folder(const std::string& store_path) {
  return open_file(store_path + "/drafts", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

// Calls `visit` for each old draft, in new/ and in its namespaces. A draft's bytes are those that it adds to the count
// of all drafts up to it, old or not: so a file that two drafts share is in one of them.
Result<std::vector<OldDraft>> find(const std::string& store_path, std::chrono::seconds kept, const ClockMark& clock,
                                   const std::function<void(const TreeEntry&)>& visit) {
  std::vector<OldDraft> old;
  const std::string where = store_path + "/drafts/tree";
  const auto root = open_file(where, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!root.ok() && (root.error().code == Errc::not_found || root.error().code == Errc::permission)) return old;
  if (!root.ok()) return root.error();
  WEFT_TRY(const struct stat st, stat_fd(root->get(), where));
  const DraftRules rules = DraftRules::of(store_path, st);
  DraftCount count(rules);
  const auto now = static_cast<std::int64_t>(now_ns() / 1'000'000'000);
  TreeWalk walk(limits::kDraftEntriesMax);
  walk.visit = [&](const TreeEntry& entry) -> Result<WalkNext> {
    if (rules.is_shared(entry.st)) return WalkNext::enter;
    const std::uint64_t bytes_before = count.use().bytes;
    const Found found = examine(entry, count);
    const std::uint64_t written =
        believed_written(clock, static_cast<std::uint64_t>(std::max<std::int64_t>(0, found.written)));
    const std::int64_t age = now - static_cast<std::int64_t>(written);
    if (found.in_use || age < kept.count()) return WalkNext::pass;
    old.push_back({entry.path, count.use().bytes - bytes_before, static_cast<std::uint64_t>(age)});
    visit(entry);
    return WalkNext::pass;
  };
  walk.failed = pass_failed;
  WEFT_CHECK(walk_tree(*root, where, walk));
  return old;
}

}  // namespace

Result<std::vector<OldDraft>> old_drafts(const std::string& store_path, std::chrono::seconds kept) {
  const auto folder = open_folder(store_path);
  return find(store_path, kept, folder.ok() ? read_clock(folder->get()) : ClockMark{}, [](const TreeEntry&) {});
}

// Moves each draft out of new/ before it deletes the files.
Result<std::vector<OldDraft>> remove_old_drafts(const std::string& store_path, std::chrono::seconds kept) {
  const auto folder = open_folder(store_path);
  return find(store_path, kept, folder.ok() ? mark_clock(folder->get()) : ClockMark{}, [&](const TreeEntry& draft) {
    const std::string gone = "old-" + random_hex(8);
    if (!folder.ok() || !rename_at(draft.directory, draft.name, folder->get(), gone).ok()) return;
    if (const Status removed = remove_tree_at(folder->get(), gone, "drafts/" + gone); !removed.ok())
      log_warning("gc: {}", removed.error().message);
    log_info("gc: the draft {} is removed: nobody has written to it for long", draft.path);
  });
}

}  // namespace weft
