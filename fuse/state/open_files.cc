#include "fuse/state/open_files.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/log.h"
#include "drafts/draft_file.h"
#include "os/memory_file.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kPerDraft = 2;  // descriptors of an open draft, for all its handles: for reads, and for writes

// Leaves a quarter of the descriptors to published files and to the server's own work. The limit of a running process
// may change.
UserShares::Bound draft_descriptors() {
  const std::uint64_t all = file_limit();
  return UserShares::bound_of(all - all / 4);
}

}  // namespace

OpenFiles::OpenFiles(Vfs& vfs, DraftTree* drafts, Passthrough& passthrough, OpenTable& table, const InitWords& agreed)
    : vfs_(vfs),
      drafts_(drafts),
      passthrough_(passthrough),
      agreed_(agreed),
      draft_descriptors_(draft_descriptors, own_user()),
      table_(table) {
  const MutexLock lock(mutex_);
  for (const OpenRecord& record : table_.records()) {
    auto& entry = entries_[record.ino];
    if (!entry) entry = std::make_shared<Entry>();
    ++entry->opens;
    entry->answer = {record.way, record.backing_id};
    entry->answered = true;
    entry->versions = record.versions;
    if (!is_draft(ino_of(record.ino))) continue;
    auto& held = shares_[record.handle] = join(*entry, {record.user});
    if (!held) held = join(*entry, {record.user, draft_descriptors_.take(record.user, kPerDraft)});
  }
  take_over_holds();
}

// Takes over the previous server's holds of versions that are still open. Its other holds are released.
void OpenFiles::take_over_holds() {
  std::vector<VersionId> versions;
  std::vector<Entry*> holders;
  for (const auto& entry : entries_)
    for (const VersionId version : entry.second->versions) {
      if (version == 0) continue;
      versions.push_back(version);
      holders.push_back(entry.second.get());
    }
  auto holds = vfs_.take_over_holds(versions);
  if (!holds.ok()) return log_error("versions of files that are open may be collected: {}", holds.error().message);
  for (std::size_t i = 0; i < holds->size(); ++i) holders[i]->holds.push_back(std::move((*holds)[i]));
}

std::shared_ptr<OpenFiles::Entry> OpenFiles::enter(NodeId node) {
  const MutexLock lock(mutex_);
  auto& entry = entries_[node];
  if (!entry) entry = std::make_shared<Entry>();
  ++entry->opens;
  ++opening_;
  return entry;
}

OpenAnswer OpenFiles::choose(const OpenFile& file) {
  const ReadMode mode = file.mode();
  if (mode == ReadMode::changing) return {ReadWay::direct, 0};
  if (mode == ReadMode::streamed && maps_direct_files(agreed_)) return {ReadWay::straight, 0};
  OpenAnswer served{mode == ReadMode::written ? ReadWay::direct : ReadWay::cached, 0};
  const bool unseen = mode == ReadMode::written && drafts_->hides_mappings();
  if (file.backing_fd() < 0 || !passthrough_.active() || unseen) return served;
  const auto backing = Passthrough::open(device_, file.backing_fd());
  if (backing.ok()) return {ReadWay::passthrough, *backing};
  const MutexLock lock(mutex_);
  if (refused_.opens++ == 0) {
    refused_.problem = backing.error().message;
    log_warning("passthrough: {}", refused_.problem);
  }
  return served;
}

OpenFiles::Refused OpenFiles::refused() const {
  const MutexLock lock(mutex_);
  return refused_;
}

Result<Opened> OpenFiles::open_new(Ino ino, bool written) {
  if (!is_draft(ino)) return vfs_.open_with_attr(ino);
  if (drafts_ == nullptr) return Error{Errc::not_found, "a draft: this mount does not publish"};
  WEFT_TRY(auto draft, DraftFile::open(*drafts_, ino, written));
  return Opened{std::move(draft), {}};
}

// True if the file may be closed here and opened again by its node. A draft may have lost its name.
bool OpenFiles::is_read_by_kernel(NodeId node, const Entry& entry) const {
  return entry.answered && entry.answer.way == ReadWay::passthrough && !is_draft(ino_of(node));
}

void OpenFiles::use(NodeId node, const Entry& entry) {
  if (entry.file && is_read_by_kernel(node, entry)) kept_.use(node);
}

// Drops the file of the node used longest ago if too many are kept. Call with no entry locked.
void OpenFiles::drop_oldest() {
  std::optional<NodeId> node;
  std::shared_ptr<Entry> entry;
  {
    const MutexLock lock(mutex_);
    node = kept_.take_beyond(kOpenFilesKept);
    if (const auto found = node ? entries_.find(*node) : entries_.end(); found != entries_.end()) entry = found->second;
  }
  if (!entry) return;
  std::shared_ptr<OpenFile> dropped;  // closed without a lock
  const MutexLock opening(entry->opening);
  const MutexLock lock(mutex_);
  if (is_read_by_kernel(*node, *entry)) dropped = std::move(entry->file);
}

// Opens the entry's file unless it is open. A changing file is opened again for each opener.
Status OpenFiles::fill(NodeId node, Entry& entry) {
  if (entry.file && entry.file->mode() != ReadMode::changing) return {};
  // An earlier server opened the file, perhaps for writers. Their writes arrive here.
  const bool written = entry.answered && entry.answer.way == ReadWay::direct;
  WEFT_TRY(Opened opened, open_new(ino_of(node), written));
  const OpenAnswer answer = entry.answered ? entry.answer : choose(*opened.file);
  const MutexLock lock(mutex_);
  entry.file = std::move(opened.file);
  entry.attr = opened.attr;
  // A reopened file may be of another version than the table says; the table's versions and holds stay then.
  if (!entry.answered || entry.holds.empty()) {
    entry.versions = opened.versions;
    entry.holds = std::move(opened.holds);
  }
  entry.answer = answer;
  return {};
}

Result<OpenAnswer> OpenFiles::open_entry(NodeId node, std::uint64_t handle, OpenShare& share, Entry& entry) {
  const MutexLock opening(entry.opening);
  Status filled = fill(node, entry);
  const MutexLock lock(mutex_);
  OpenAnswer answer = entry.answer;
  answer.joined = entry.answered;
  if (answer.way == ReadWay::straight && entry.mapped) answer.way = ReadWay::cached;
  answer.opened = entry.file;
  const bool added =
      filled.ok() && table_.add({handle, node, answer.way, answer.backing_id, entry.versions, share.user});
  if (added && share.held) shares_[handle] = join(entry, std::move(share));
  entry.answered = entry.answered || added;
  use(node, entry);
  backing_id_max_ = std::max(backing_id_max_, entry.answer.backing_id);
  if (--opening_ == 0) table_.record_up_to(backing_id_max_);
  if (!filled.ok()) return std::move(filled).error();
  if (added) return answer;
  return Error{Errc::busy, "opening a file: too many are open"};
}

// Returns what the user holds for this draft already, else `share`, which the user's next handles of it join.
std::shared_ptr<void> OpenFiles::join(Entry& entry, OpenShare share) {
  std::weak_ptr<void>& known = entry.shares[share.user];
  if (auto held = known.lock()) return held;
  known = share.held;
  return std::move(share.held);
}

// A request that the kernel resends to a new server may be open already.
Result<OpenShare> OpenFiles::share_for_draft(uid_t user, std::uint64_t handle, std::optional<NodeId> node) {
  {
    const MutexLock lock(mutex_);
    if (table_.find(handle)) return OpenShare{user};
    const auto found = node ? entries_.find(*node) : entries_.end();
    if (found != entries_.end())
      if (auto held = join(*found->second, {user})) return OpenShare{user, std::move(held)};
  }
  auto held = draft_descriptors_.take(user, kPerDraft);
  if (!held) return too_many_open("drafts that are open");
  return OpenShare{user, std::move(held)};
}

uid_t OpenFiles::opener(std::uint64_t handle) const {
  const MutexLock lock(mutex_);
  const auto record = table_.find(handle);
  return record ? record->user : 0;
}

Result<OpenAnswer> OpenFiles::open(NodeId node, std::uint64_t handle, OpenShare share) {
  {
    const MutexLock lock(mutex_);
    if (const auto known = table_.find(handle)) return OpenAnswer{known->way, known->backing_id};
  }
  const std::shared_ptr<Entry> entry = enter(node);
  auto answer = open_entry(node, handle, share, *entry);
  if (!answer.ok()) leave(node);
  drop_oldest();
  return answer;
}

// Undoes enter() after a failed open, which is not in the table.
void OpenFiles::leave(NodeId node) {
  std::shared_ptr<Entry> last;
  {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(node);
    if (found == entries_.end() || --found->second->opens > 0) return;
    last = std::move(found->second);
    entries_.erase(found);
    kept_.forget(node);
  }
  if (last->answer.way == ReadWay::passthrough) Passthrough::close(device_, last->answer.backing_id);
}

void OpenFiles::close(NodeId node, std::uint64_t handle) {
  std::shared_ptr<Entry> last;
  OpenTable::Retired retired{};
  {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(node);
    if (found == entries_.end() || !table_.find(handle)) return;
    shares_.erase(handle);
    if (--found->second->opens > 0) return table_.remove(handle);
    last = std::move(found->second);
    entries_.erase(found);
    kept_.forget(node);
    retired = table_.retire(handle);
  }
  if (last->answer.way == ReadWay::passthrough) Passthrough::close(device_, retired.backing_id);
  const MutexLock lock(mutex_);
  table_.finish(retired);
}

Result<std::shared_ptr<OpenFile>> OpenFiles::find(NodeId node) {
  std::shared_ptr<Entry> entry;
  {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(node);
    if (found == entries_.end()) return std::shared_ptr<OpenFile>();
    if (found->second->file) return found->second->file;
    entry = found->second;
  }
  auto file = open_again(node, *entry);
  drop_oldest();
  return file;
}

Result<std::shared_ptr<OpenFile>> OpenFiles::open_again(NodeId node, Entry& entry) {
  const MutexLock opening(entry.opening);
  if (entry.file) return entry.file;
  Status filled = fill(node, entry);
  // It was open before, so ENOENT would be wrong.
  if (!filled.ok() && filled.error().code == Errc::not_found) return Error{Errc::changed, filled.error().message};
  WEFT_CHECK(filled);
  entry.file->opened();
  const MutexLock lock(mutex_);
  if (const auto found = entries_.find(node); found != entries_.end() && found->second.get() == &entry)
    use(node, entry);
  return entry.file;
}

std::optional<Attr> OpenFiles::attr(NodeId node) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(node);
  return found == entries_.end() ? std::nullopt : found->second->attr;
}

bool OpenFiles::is_served(NodeId node) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(node);
  if (found == entries_.end() || !found->second->answered) return false;
  const ReadWay way = found->second->answer.way;
  return way == ReadWay::cached || way == ReadWay::straight;
}

void OpenFiles::mapped(NodeId node) {
  const MutexLock lock(mutex_);
  if (const auto found = entries_.find(node); found != entries_.end()) found->second->mapped = true;
}

std::vector<std::uint64_t> OpenFiles::streams() const {
  const MutexLock lock(mutex_);
  std::vector<std::uint64_t> handles;
  if (!entries_.contains(kEventsIno)) return handles;
  for (const OpenRecord& record : table_.records())
    if (record.ino == kEventsIno) handles.push_back(record.handle);
  return handles;
}

std::optional<StreamPlace> OpenFiles::stream_place(std::uint64_t handle, std::uint64_t offset) const {
  const MutexLock lock(mutex_);
  return table_.place(handle, offset);
}

void OpenFiles::set_stream_place(std::uint64_t handle, std::uint64_t read_at, const StreamPlace& place) {
  const MutexLock lock(mutex_);
  table_.set_place(handle, read_at, place);
}

std::uint64_t OpenFiles::poll_handle(std::uint64_t handle) const {
  const MutexLock lock(mutex_);
  return table_.poll_handle(handle);
}

void OpenFiles::set_poll_handle(std::uint64_t handle, std::uint64_t poll_handle) {
  const MutexLock lock(mutex_);
  table_.set_poll_handle(handle, poll_handle);
}

// The kernel assigns backing ids in ascending order, so a new id bounds those that the killed server can have got.
void OpenFiles::close_stray_ids() {
  const MutexLock lock(mutex_);
  for (const OpenTable::Retired& retired : table_.retired()) {
    if (retired.backing_id > 0) Passthrough::close(device_, retired.backing_id);
    table_.finish(retired);
  }
  const auto file = memory_file("weft-next-backing-id");
  if (!file.ok()) return;
  const auto next = Passthrough::open(device_, file->get());
  if (!next.ok()) return;
  close_unrecorded(table_.recorded_up_to() + 1, *next);
  Passthrough::close(device_, *next);
  backing_id_max_ = *next;
  table_.record_up_to(*next);
}

void OpenFiles::close_unrecorded(std::int32_t first, std::int32_t end) {
  std::unordered_set<std::int32_t> recorded;
  for (const OpenRecord& record : table_.records()) recorded.insert(record.backing_id);
  for (std::int32_t id = first; id < end; ++id)
    if (!recorded.contains(id)) Passthrough::close(device_, id);
}

void OpenFiles::reopen() {
  std::vector<NodeId> nodes;
  {
    const MutexLock lock(mutex_);
    for (const auto& entry : entries_) nodes.push_back(entry.first);
  }
  for (const NodeId node : nodes)
    if (const auto file = find(node); !file.ok())
      log_warning("open since before the restart: {}", file.error().message);
}

}  // namespace weft
