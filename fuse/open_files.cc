#include "open_files.h"

#include <utility>

#include "base/log.h"

namespace weft {

std::shared_ptr<OpenFiles::Entry> OpenFiles::enter(Ino ino) {
  const std::lock_guard lock(mutex_);
  auto& entry = entries_[ino];
  if (!entry) entry = std::make_shared<Entry>();
  ++entry->opens;
  return entry;
}

OpenAnswer OpenFiles::choose(const OpenFile& file) {
  if (file.changing()) return {ReadWay::direct, 0};
  if (file.backing_fd() < 0 || !passthrough_.active()) return {};
  const auto backing = Passthrough::open(device_, file.backing_fd());
  if (backing.ok()) return {ReadWay::passthrough, *backing};
  if (refused_.fetch_add(1) == 0) log_warning("passthrough: {}", backing.error().message);
  return {};
}

// A file that changes is opened anew for each opener; the others once.
Status OpenFiles::fill(Ino ino, Entry& entry) {
  if (entry.file && !entry.file->changing()) return {};
  WEFT_TRY(auto file, vfs_.open(ino));
  WEFT_TRY(const Attr attr, vfs_.getattr(ino));
  const OpenAnswer answer = choose(*file);
  const std::lock_guard lock(mutex_);
  entry.file = std::move(file);
  entry.attr = attr;
  entry.answer = answer;
  return {};
}

Result<OpenAnswer> OpenFiles::open(Ino ino) {
  const std::shared_ptr<Entry> entry = enter(ino);
  Status filled;
  OpenAnswer answer;
  {
    const std::lock_guard opening(entry->opening);
    filled = fill(ino, *entry);
    answer = entry->answer;
  }
  if (filled.ok()) return answer;
  close(ino);
  return std::move(filled).error();
}

void OpenFiles::close(Ino ino) {
  std::shared_ptr<Entry> last;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(ino);
    if (found == entries_.end() || --found->second->opens > 0) return;
    last = std::move(found->second);
    entries_.erase(found);
  }
  if (last->answer.way == ReadWay::passthrough) Passthrough::close(device_, last->answer.backing_id);
}

std::shared_ptr<OpenFile> OpenFiles::find(Ino ino) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(ino);
  return found == entries_.end() ? nullptr : found->second->file;
}

std::optional<Attr> OpenFiles::attr(Ino ino) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(ino);
  if (found == entries_.end() || !found->second->file) return std::nullopt;
  return found->second->attr;
}

}  // namespace weft
