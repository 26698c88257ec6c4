// The history of commits, for who follows it.
#include <fmt/core.h>

#include <utility>
#include <variant>

#include "index/commit_watch.h"
#include "store/store_impl.h"

namespace weft {
namespace {

Commit commit_of(PublishEvent event) {
  Commit commit;
  commit.kind = Commit::Kind::publish;
  commit.model = std::move(event.version.model_name);
  commit.number = event.version.number;
  commit.local = std::move(event.local);
  commit.bare = event.bare;
  for (const NamedInode& tag : event.tags) commit.tags.push_back(tag.ino);
  return commit;
}

Commit commit_of(TagsEvent event) {
  Commit commit;
  commit.kind = Commit::Kind::tags;
  commit.model = std::move(event.model);
  for (const TagChange& change : event.changes) commit.tags.push_back(change.ino);
  return commit;
}

Commit commit_of(AdoptionEvent event) {
  Commit commit;
  commit.kind = Commit::Kind::adoption;
  commit.model = std::move(event.model);
  commit.number = event.number;
  commit.local.view_inos = std::move(event.view_inos);
  return commit;
}

Commit commit_of(RemovalEvent event) {
  Commit commit;
  commit.kind = Commit::Kind::removal;
  commit.model = std::move(event.model);
  commit.number = event.number;
  return commit;
}

// Collects what events mean for readers. One without a place in the history of commits says so here.
struct Commits {
  std::vector<Commit> list;
  bool repaired = false;

  void operator()(PinEvent& /*event*/) {}
  void operator()(RepairEvent& /*event*/) { repaired = true; }
  template <class Told>
  void operator()(Told& event) {
    list.push_back(commit_of(std::move(event)));
  }
};

}  // namespace

Result<std::vector<Commit>> StoreImpl::commits(std::uint64_t from, std::uint64_t to) {
  if (from > to) return Error{Errc::invalid, fmt::format("{}: no commits from {} to {}", journal_.path(), from, to)};
  WEFT_TRY(JournalTail tail, journal_.read(from, to));
  Commits commits;
  for (JournaledEvent& journaled : tail.events) std::visit(commits, journaled.event);
  if (tail.end != to || !tail.gaps.empty() || commits.repaired)
    return Error{Errc::invalid,
                 fmt::format("{}: expected whole records from {} to {}, got them to {}{}", journal_.path(), from, to,
                             tail.end, commits.repaired ? ", with a repair" : "")};
  return std::move(commits.list);
}

Result<std::unique_ptr<CommitWatch>> StoreImpl::watch_commits() {
  return watch_index(path_ / "index");
}

}  // namespace weft
