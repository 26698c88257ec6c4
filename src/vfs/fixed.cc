#include "vfs/fixed.h"

#include <fmt/core.h>

#include "base/json.h"
#include "base/text.h"
#include "vfs/models.h"
#include "weft/scrub.h"
#include "weft/tree.h"

namespace weft {
namespace {

constexpr FixedEntry kFixed[] = {
    {kRootIno, kRootIno, "", FileType::directory},
    {kDotWeftIno, kRootIno, ".weft", FileType::directory},
    {kReadmeIno, kRootIno, "README", FileType::regular},
    {kModelsIno, kRootIno, "models", FileType::directory},
    {kMetricsIno, kDotWeftIno, "metrics", FileType::regular},
    {kPeersIno, kDotWeftIno, "peers", FileType::regular},
    {kStatusIno, kDotWeftIno, "status", FileType::regular},
};

Error not_a_directory(const FixedEntry& entry) {
  return {Errc::not_dir, fmt::format("inode {} is not a directory", entry.ino)};
}

}  // namespace

const FixedEntry* fixed_entry(Ino ino) {
  for (const FixedEntry& entry : kFixed)
    if (entry.ino == ino) return &entry;
  return nullptr;
}

Result<std::string> FixedFiles::status_text() {
  std::uint64_t sequence = 0;
  std::uint64_t open_removed = 0;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    sequence = snapshot->sequence();
    WEFT_TRY(open_removed, snapshot->open_removed());
  }
  JsonWriter json(true);
  json.begin_object().member("weft", WEFT_VERSION);
  json.key("store").begin_object();
  json.member("path", store_.path()).member("uuid", store_.info().uuid).member("sequence", sequence);
  json.member("open_removed", open_removed);
  json.end_object().key("mount");
  {
    const std::lock_guard lock(mutex_);
    json.raw("{" + mount_status_ + "}");
  }
  versions_.assembly().write_status(json);
  const auto scrubbed = read_scrub_state(store_.path());
  json.key("scrub");
  write_scrub(json, scrubbed.ok() ? scrubbed->last : std::nullopt);
  json.key("daemon").raw(daemon_.status()).end_object();
  return json.take() + "\n";
}

// Of a file below .weft, which says something else each time.
Result<std::string> FixedFiles::changing_text(Ino ino) {
  if (ino == kStatusIno) return status_text();
  return ino == kPeersIno ? daemon_.peers() : daemon_.metrics();
}

Result<Attr> FixedFiles::attr(const FixedEntry& entry) {
  Attr attr = directory_attr(entry.ino, store_.info().created_ns);
  attr.type = entry.type;
  attr.lasting_name = true;
  attr.lasting_attr = entry.parent != kDotWeftIno;
  attr.lasting_entries = entry.type == FileType::directory && entry.ino != kModelsIno;
  if (entry.type == FileType::directory) return attr;
  attr.blocks = 1;
  if (entry.ino == kReadmeIno) {
    attr.size = render_readme().size();
  } else {
    WEFT_TRY(const std::string text, changing_text(entry.ino));
    attr.size = text.size();
  }
  return attr;
}

Result<Attr> FixedFiles::lookup(const FixedEntry& dir, std::string_view name) {
  if (dir.type != FileType::directory) return not_a_directory(dir);
  for (const FixedEntry& entry : kFixed)
    if (entry.parent == dir.ino && entry.name == name && entry.ino != dir.ino) return attr(entry);
  return Error{Errc::not_found, fmt::format("no entry {}", printable(name))};
}

Result<std::vector<DirEntry>> FixedFiles::list(const FixedEntry& dir) {
  if (dir.type != FileType::directory) return not_a_directory(dir);
  std::vector<DirEntry> out;
  for (const FixedEntry& entry : kFixed) {
    if (entry.parent != dir.ino || entry.ino == dir.ino) continue;
    WEFT_TRY(const Attr facts, attr(entry));
    out.push_back({std::string(entry.name), facts, true});
  }
  return out;
}

Result<std::shared_ptr<OpenFile>> FixedFiles::open(const FixedEntry& entry) {
  if (entry.ino == kReadmeIno) return open_text(render_readme());
  if (entry.type == FileType::directory) return Error{Errc::is_dir, fmt::format("inode {} is a directory", entry.ino)};
  WEFT_TRY(std::string text, changing_text(entry.ino));
  return open_text(std::move(text), Changing::yes);
}

void FixedFiles::set_mount_status(std::string json_members) {
  const std::lock_guard lock(mutex_);
  mount_status_ = std::move(json_members);
}

}  // namespace weft
