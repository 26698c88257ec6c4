#include "fakes/memory_vfs.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace weft::testing {
namespace {

constexpr std::uint64_t kTimeNs = 1'700'000'000'123'456'789;
constexpr std::size_t kCounterBytes = 512;

Error absent(Ino ino) {
  return {Errc::not_found, "no inode " + std::to_string(ino)};
}

bool meet(Meeting& meeting) {
  std::unique_lock lock(meeting.mutex);
  meeting.met = ++meeting.inside == 2 || meeting.met;
  meeting.came.notify_all();
  const bool met = meeting.came.wait_for(lock, std::chrono::seconds(10), [&] { return meeting.met; });
  --meeting.inside;
  return met;
}

class MemoryFile final : public OpenFile {
 public:
  MemoryFile(std::string content, Fd backing, ReadMode mode, Meeting* meeting, std::atomic<std::uint64_t>& reads)
      : content_(std::move(content)), backing_(std::move(backing)), mode_(mode), meeting_(meeting), reads_(reads) {}
  std::uint64_t size() const override { return content_.size(); }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    ++reads_;
    if (meeting_ != nullptr && !meet(*meeting_)) return Error{Errc::io, "no other read came"};
    if (offset >= content_.size() || out.empty()) return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(out.size(), content_.size() - offset);
    std::memcpy(out.data(), content_.data() + offset, count);
    return count;
  }
  int backing_fd() const override { return backing_.get(); }
  ReadMode mode() const override { return mode_; }

 private:
  std::string content_;
  Fd backing_;
  ReadMode mode_;
  Meeting* meeting_;
  std::atomic<std::uint64_t>& reads_;
};

}  // namespace

MemoryVfs::MemoryVfs() {
  Inode root;
  root.attr.ino = kRootIno;
  root.attr.type = FileType::directory;
  inodes_.emplace(kRootIno, std::move(root));
  add_counter("status");
}

MemoryVfs::Inode& MemoryVfs::make(const std::string& path, FileType type) {
  Ino dir = kRootIno;
  const auto parts = split(path, '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto found = inodes_.at(dir).entries.find(parts[i]);
    if (found != inodes_.at(dir).entries.end()) {
      dir = found->second;
      continue;
    }
    Inode inode;
    inode.attr.ino = kFirstStoredIno + inodes_.size();
    inode.attr.type = i + 1 == parts.size() ? type : FileType::directory;
    inode.attr.mtime_ns = kTimeNs;
    inode.parent = dir;
    inodes_.at(dir).entries.emplace(parts[i], inode.attr.ino);
    dir = inode.attr.ino;
    inodes_.emplace(dir, std::move(inode));
  }
  return inodes_.at(dir);
}

void MemoryVfs::add_file(const std::string& path, std::string content) {
  Inode& inode = make(path, FileType::regular);
  inode.attr.size = content.size();
  inode.attr.blocks = (content.size() + 511) / 512;
  inode.content = std::move(content);
}

void MemoryVfs::add_backed_file(const std::string& path, const std::string& backing) {
  const auto facts = stat_file(backing);
  Inode& inode = make(path, FileType::regular);
  inode.attr.size = facts.ok() ? static_cast<std::uint64_t>(facts->st_size) : 0;
  inode.backing = backing;
}

void MemoryVfs::add_streamed_file(const std::string& path, std::string content) {
  add_file(path, std::move(content));
  make(path, FileType::regular).mode = ReadMode::streamed;
}

void MemoryVfs::add_meeting(const std::string& path, std::string content) {
  add_file(path, std::move(content));
  make(path, FileType::regular).meeting = true;
}

void MemoryVfs::add_link(const std::string& path, std::string target) {
  Inode& inode = make(path, FileType::link);
  inode.attr.size = target.size();
  inode.content = std::move(target);
}

void MemoryVfs::add_counter(const std::string& path) {
  Inode& inode = make(path, FileType::regular);
  inode.counter = true;
  inode.mode = ReadMode::changing;
  inode.attr.size = kCounterBytes;
}

void MemoryVfs::mark_lasting(Ino ino) {
  Inode& inode = inodes_.at(ino);
  inode.attr.lasting_entries = inode.attr.type == FileType::directory;
  for (const auto& [name, child] : inode.entries) {
    inodes_.at(child).attr.lasting_name = true;
    inodes_.at(child).attr.lasting_attr = true;
    mark_lasting(child);
  }
}

void MemoryVfs::make_lasting(const std::string& path) {
  mark_lasting(make(path, FileType::directory).attr.ino);
}

Result<const MemoryVfs::Inode*> MemoryVfs::find(Ino ino) const {
  const auto found = inodes_.find(ino);
  if (found == inodes_.end()) return absent(ino);
  return &found->second;
}

Result<Attr> MemoryVfs::lookup(Ino parent, std::string_view name) {
  ++lookups;
  WEFT_TRY(const Inode* dir, find(parent));
  const auto found = dir->entries.find(name);
  if (found == dir->entries.end()) return Error{Errc::not_found, "no " + std::string(name)};
  return inodes_.at(found->second).attr;
}

Result<Attr> MemoryVfs::getattr(Ino ino) {
  WEFT_TRY(const Inode* inode, find(ino));
  return inode->attr;
}

Result<DirPage> MemoryVfs::list(Ino dir, ListPlace from) {
  ++listed;
  WEFT_TRY(const Inode* inode, find(dir));
  if (inode->attr.type != FileType::directory) return Error{Errc::not_dir, "not a directory"};
  std::map<Ino, std::string> by_age;
  for (const auto& [name, child] : inode->entries) by_age.emplace(child, name);
  DirPage page;
  for (auto at = by_age.upper_bound(from % kFirstPlace); at != by_age.end(); ++at) {
    if (page.entries.size() == entries_per_page) return page;
    page.entries.push_back({at->second, inodes_.at(at->first).attr, true, kFirstPlace + at->first});
  }
  page.last = true;
  return page;
}

Result<Ino> MemoryVfs::parent(Ino dir) {
  WEFT_TRY(const Inode* inode, find(dir));
  return inode->parent;
}

Result<std::string> MemoryVfs::readlink(Ino ino) {
  WEFT_TRY(const Inode* inode, find(ino));
  return inode->content;
}

Result<std::shared_ptr<OpenFile>> MemoryVfs::open(Ino ino) {
  WEFT_TRY(const Inode* inode, find(ino));
  std::string content = inode->content;
  if (inode->counter) {
    const std::lock_guard lock(mutex_);
    content = std::to_string(opens_++) + " " + std::to_string(lookups) + " " + mount_status_();
    content.resize(kCounterBytes, ' ');
  }
  Fd backing;
  if (!inode->backing.empty()) {
    WEFT_TRY(backing, open_file(inode->backing, O_RDONLY));
    // Other bytes than the backing file's, so that a read by the server is noticed.
    if (content.empty()) content = std::string(inode->attr.size, '?');
  }
  Meeting* const meeting = inode->meeting ? &meeting_ : nullptr;
  return std::shared_ptr<OpenFile>(
      std::make_shared<MemoryFile>(std::move(content), std::move(backing), inode->mode, meeting, reads));
}

Result<Opened> MemoryVfs::open_with_attr(Ino ino) {
  WEFT_TRY(auto file, open(ino));
  WEFT_TRY(const Attr attr, getattr(ino));
  return Opened{std::move(file), attr};
}

Result<Place> MemoryVfs::place(Ino ino) {
  return Error{Errc::not_found, "no inode " + std::to_string(ino)};
}

Result<struct statvfs> MemoryVfs::statfs() {
  struct statvfs facts {};
  facts.f_frsize = 4096;
  facts.f_blocks = 1000;
  facts.f_bfree = 500;
  facts.f_bavail = 400;
  facts.f_files = 100;
  facts.f_ffree = 50;
  return facts;
}

Result<Xattrs> MemoryVfs::xattrs(Ino ino) {
  WEFT_TRY(const Inode* inode, find(ino));
  Xattrs out;
  if (inode->attr.type == FileType::regular) out.emplace_back("user.weft.size", std::to_string(inode->attr.size));
  return out;
}

void MemoryVfs::set_mount_status(std::function<std::string()> json_members) {
  const std::lock_guard lock(mutex_);
  mount_status_ = std::move(json_members);
}

}  // namespace weft::testing
