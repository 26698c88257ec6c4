// Publishes checkpoints, which stay where they are.
#include <fcntl.h>
#include <fmt/core.h>

#include <vector>

#include "base/limits.h"
#include "base/log.h"
#include "drafts/draft_check.h"
#include "drafts/publish_folder.h"
#include "os/acting_as.h"
#include "os/entries.h"
#include "os/tree_walk.h"

namespace weft {
namespace {

constexpr std::uint64_t kNoRequest = 1ULL << 63U;  // no request number of the kernel has this bit
constexpr int kAttempts = 3;

Result<Fd> make_users_directory(int in, const std::string& name, const UserIds& user) {
  WEFT_CHECK(make_directory_at(in, name, 0700));
  WEFT_TRY(Fd made, open_directory_at(in, name));
  if (own_user() == 0) WEFT_CHECK(change_owner(made.get(), user.uid, user.gid));
  return made;
}

// Opens a directory with the user's rights: it may be another user's.
Result<Fd> open_as(const UserIds& user, const TreeEntry& entry) {
  const ActingAs acting(user);
  return open_directory_at(entry.directory, entry.name);
}

// Copies a directory to kContent in `held`: files as hard links, directories as new ones that belong to the user.
// Returns the copy.
Result<Fd> make_links(const Fd& from, int held, const UserIds& user) {
  std::vector<Fd> made(1);  // the directories that lead to an entry
  WEFT_TRY(made[0], make_users_directory(held, kContent, user));
  TreeWalk walk(limits::kDraftEntriesMax);
  walk.visit = [&](const TreeEntry& entry) -> Result<WalkNext> {
    const bool own = entry.depth == 0 && (entry.name == kDraftErrorFile || entry.name == kDraftPublishedFile);
    if (own) return WalkNext::pass;
    made.resize(entry.depth + 1);
    const int to = made.back().get();
    const Status linked = S_ISDIR(entry.st.st_mode) ? Status{} : link_at(entry.directory, entry.name, to, entry.name);
    if (!linked.ok() && linked.error().code == Errc::permission) return Error{Errc::io, linked.error().message};
    WEFT_CHECK(linked);
    return WalkNext::enter;
  };
  walk.open = [&](const TreeEntry& entry) -> Result<Fd> {
    WEFT_TRY(Fd inner, open_as(user, entry));
    WEFT_TRY(made.emplace_back(), make_users_directory(made.back().get(), entry.name, user));
    return inner;
  };
  WEFT_CHECK(walk_tree(from, "a checkpoint", walk));
  return std::move(made[0]);
}

// Resets a folder to its state before the import.
void begin_again(PublishFolder& folder) {
  if (const auto content = folder.open_content(); content.ok()) folder.restore_facts(content->get());
  static_cast<void>(remove_at(folder.fd.get(), kAnswer));
  folder.child = 0;
}

Status link_facts(int from, int content) {
  return has_entry(content, kDraftFactsFile) ? Status{} : link_at(from, kDraftFactsFile, content, kDraftFactsFile);
}

}  // namespace

Status DraftPublisher::take_staying(PublishOrder& order, PublishFolder& folder, bool waits) {
  order.request = kNoRequest | order.stays.ino;
  WEFT_TRY(const Fd draft, tree_.open_to_list(order.stays.ino));
  if (!check_not_written(draft.get(), waits).ok()) return Error{Errc::busy, "a checkpoint: a file is being written"};
  folder.name = folder_name(order.request);
  WEFT_TRY(const bool made, open_folder(order.user, folder));
  if (!made || !lock_fd(folder.lock.get(), LockKind::exclusive, LockWait::no, folder.name).ok())
    return Error{Errc::busy, "a checkpoint: its publish runs"};
  Status linked = link_in(order, folder);
  if (!linked.ok()) static_cast<void>(forget(folder));
  return linked;
}

Status DraftPublisher::link_in(const PublishOrder& order, const PublishFolder& folder) {
  WEFT_TRY(const Fd directory, tree_.open_to_list(order.dir));
  WEFT_TRY(const Fd from, tree_.open_to_list(order.stays.ino));
  WEFT_TRY(const Fd to, make_links(from, folder.held.get(), order.user));
  WEFT_CHECK(link_facts(directory.get(), to.get()));
  return write_order(folder.fd.get(), order);  // written last: it marks the folder as complete
}

// Retries if a file has changed: a training that removes the checkpoint meanwhile changes the times of its files, once.
Status DraftPublisher::publish_staying(const PublishOrder& order, PublishFolder& folder, const GoesOn& goes_on) {
  Status done = run(order, folder, goes_on);
  const auto is_changed = [&done] { return !done.ok() && done.error().code == Errc::changed; };
  for (int attempt = 1; attempt < kAttempts && is_changed(); ++attempt) {
    begin_again(folder);
    done = run(order, folder, goes_on);
  }
  if (!done.ok() && done.error().code == Errc::cancelled)
    begin_again(folder);
  else
    finish_staying(order, folder);
  return done;
}

std::vector<std::pair<PublishOrder, PublishFolder>> DraftPublisher::taken_before() {
  std::vector<std::pair<PublishOrder, PublishFolder>> all;
  each_folder([&](PublishFolder& folder) {
    if (folder.name < folder_name(kNoRequest)) return;
    auto order = order_in(folder.fd.get());
    if (order.ok())
      all.emplace_back(std::move(*order), std::move(folder));
    else if (folder.ended())
      static_cast<void>(forget(folder));
  });
  return all;
}

void DraftPublisher::note_published(const StayingDraft& draft, const PublishFolder& folder) {
  const auto said = said_in(folder.fd.get());
  const auto directory = tree_.open_to_list(draft.ino);
  if (!said || !directory.ok()) return;  // it was removed meanwhile
  const auto model = said->text("model");
  const auto version = said->number("version");
  static_cast<void>(remove_at(directory->get(), kDraftErrorFile));
  if (!model.ok() || !version.ok()) return static_cast<void>(remove_at(directory->get(), kDraftPublishedFile));
  const std::string spec = fmt::format("{}@{}", *model, *version);
  const auto file = leave_note(directory->get(), kDraftPublishedFile, 0644, spec + "\n");
  if (!file.ok()) return;
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const timespec written{static_cast<time_t>(draft.written_ns / kSecond),
                         static_cast<long>(draft.written_ns % kSecond)};
  const timespec times[2] = {written, written};
  static_cast<void>(change_times(file->get(), times));
  log_info("{} published from a checkpoint", spec);
}

// Call after the import has ended. Notes the outcome in the draft, and removes the links.
void DraftPublisher::finish_staying(const PublishOrder& order, const PublishFolder& folder) {
  const auto content = folder.open_content();
  if (is_published(folder.fd.get())) {
    note_published(order.stays, folder);
  } else if (content.ok()) {
    if (const auto draft = tree_.open_to_list(order.stays.ino); draft.ok())
      static_cast<void>(rename_at(content->get(), kDraftErrorFile, draft->get(), kDraftErrorFile));
  }
  static_cast<void>(forget(folder));
}

}  // namespace weft
