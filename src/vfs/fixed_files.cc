#include "vfs/fixed_files.h"

#include <fmt/core.h>

#include <chrono>

#include "base/json.h"
#include "reading/open_file.h"
#include "vfs/numbers.h"
#include "weft/model/tree.h"
#include "weft/store/scrub.h"

namespace weft {
namespace {

constexpr auto kDaemonPatience = std::chrono::milliseconds(500);

using FixedEntry = FixedFiles::Entry;
constexpr FixedEntry kFixed[] = {
    {kRootIno, kRootIno, "", FileType::directory},
    {kDotWeftIno, kRootIno, ".weft", FileType::directory},
    {kReadmeIno, kRootIno, "README", FileType::regular},
    {ino_of(InoKind::datasets, kModelsIno), kRootIno, "datasets", FileType::directory},
    {kHubIno, kRootIno, "hub", FileType::directory},
    {ino_of(InoKind::layers, kModelsIno), kRootIno, "layers", FileType::directory},
    {ino_of(InoKind::lineage, kModelsIno), kRootIno, "lineage", FileType::directory},
    {kModelsIno, kRootIno, "models", FileType::directory},
    {kNewIno, kRootIno, "new", FileType::directory},
    {ino_of(InoKind::records, kModelsIno), kRootIno, "records", FileType::directory},
    {ino_of(InoKind::safetensors, kModelsIno), kRootIno, "safetensors", FileType::directory},
    {ino_of(InoKind::tensors, kModelsIno), kRootIno, "tensors", FileType::directory},
    {kEventsIno, kDotWeftIno, "events", FileType::regular},
    {kMetricsIno, kDotWeftIno, "metrics", FileType::regular},
    {kPeersIno, kDotWeftIno, "peers", FileType::regular},
    {kStatusIno, kDotWeftIno, "status", FileType::regular},
};

Result<const FixedEntry*> find(Ino ino) {
  for (const FixedEntry& entry : kFixed)
    if (entry.ino == ino) return &entry;
  return no_inode(ino);
}

Result<const FixedEntry*> find_directory(Ino ino) {
  WEFT_TRY(const FixedEntry* entry, find(ino));
  if (entry->type != FileType::directory) return not_a_directory(ino);
  return entry;
}

// True for directories that other subtrees own. Only their names are here.
bool is_foreign(const FixedEntry& entry) {
  return entry.ino == kHubIno || entry.ino == kModelsIno || (entry.ino >= kFirstStoredIno && entry.ino != kNewIno);
}

Attr constant_attr(const FixedEntry& entry, const StoreInfo& store) {
  Attr attr = directory_attr(entry.ino, store.created_ns);
  attr.type = entry.type;
  attr.lasting_name = true;
  attr.lasting_attr = entry.parent != kDotWeftIno;
  attr.lasting_entries = entry.type == FileType::directory;
  return attr;
}

}  // namespace

DaemonTexts::DaemonTexts(const std::string& store_path)
    : link_(fmt::format("{}/{}", store_path, control::kSocketName)) {}

Result<control::Answer> DaemonTexts::ask(std::string_view what) {
  WEFT_TRY(const auto client, link_.client());
  control::CallOptions options;
  options.patience = kDaemonPatience;
  return client->call(what, "", {}, options);
}

std::string DaemonTexts::json(std::string_view what) {
  const auto answer = ask(what);
  if (!answer.ok()) return "null";
  JsonWriter json;
  write_json(json, answer->body);
  return json.take();
}

std::string DaemonTexts::status() {
  return json("status");
}

std::string DaemonTexts::peers() {
  return json("peers") + "\n";
}

std::string DaemonTexts::metrics() {
  const auto answer = ask("metrics");
  const auto text = answer.ok() ? answer->body.text("text") : Result<std::string>(answer.error());
  return text.ok() ? *text : "# no daemon answers\n";
}

Result<std::string> FixedFiles::status_text() {
  std::uint64_t sequence = 0;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    sequence = snapshot->sequence();
  }
  WEFT_TRY(const std::uint64_t open_removed, store_.open_removed());
  JsonWriter json(true);
  json.begin_object().member("weft", WEFT_VERSION);
  json.key("store").begin_object();
  json.member("path", store_.path()).member("uuid", store_.info().uuid).member("sequence", sequence);
  json.member("open_removed", open_removed);
  json.end_object().key("mount");
  {
    const std::lock_guard lock(mutex_);
    json.raw("{" + mount_status_() + "}");
  }
  assembly_.write_status(json);
  const auto scrubbed = read_scrub_state(store_.path());
  json.key("scrub");
  write_scrub(json, scrubbed.ok() ? scrubbed->last : std::nullopt);
  json.key("daemon").raw(daemon_.status()).end_object();
  return json.take() + "\n";
}

// Returns the present text of a file below .weft. The file events is a stream, which fuse/state/event_feed.h reads.
Result<std::string> FixedFiles::changing_text(Ino ino) {
  if (ino == kEventsIno) return std::string();
  if (ino == kStatusIno) return status_text();
  return ino == kPeersIno ? daemon_.peers() : daemon_.metrics();
}

Result<Attr> FixedFiles::attr(const MountInode& inode) {
  WEFT_TRY(const FixedEntry* entry, find(inode.ino));
  Attr attr = constant_attr(*entry, store_.info());
  if (entry->type == FileType::directory) return attr;
  attr.blocks = 1;
  if (entry->ino == kReadmeIno) {
    attr.size = render_readme().size();
  } else {
    WEFT_TRY(const std::string text, changing_text(entry->ino));
    attr.size = text.size();
  }
  return attr;
}

Result<Attr> FixedFiles::entry_attr(const Entry& entry) {
  return is_foreign(entry) ? foreign_(entry.ino) : attr({entry.ino});
}

Result<Attr> FixedFiles::lookup(const MountInode& dir, std::string_view name) {
  WEFT_CHECK(find_directory(dir.ino));
  for (const FixedEntry& entry : kFixed)
    if (entry.parent == dir.ino && entry.name == name && entry.ino != dir.ino && entry.ino != kNewIno)
      return entry_attr(entry);
  return no_entry(name);
}

Result<DirPage> FixedFiles::list(const MountInode& dir, ListPlace from) {
  WEFT_CHECK(find_directory(dir.ino));
  std::vector<DirEntry> out;
  for (const FixedEntry& entry : kFixed) {
    if (entry.parent != dir.ino || entry.ino == dir.ino) continue;
    if ((entry.ino == kNewIno && !publishes_) || entry.ino == kEventsIno) continue;
    WEFT_TRY(const Attr facts, entry_attr(entry));
    out.push_back({std::string(entry.name), facts, entry.ino != kNewIno});
  }
  return page_of(std::move(out), from);
}

Result<Ino> FixedFiles::parent(const MountInode& inode) {
  WEFT_TRY(const FixedEntry* entry, find(inode.ino));
  return entry->parent;
}

Result<std::shared_ptr<OpenFile>> FixedFiles::open(const MountInode& inode) {
  if (inode.ino == kReadmeIno) return open_text(render_readme());
  WEFT_TRY(const FixedEntry* entry, find(inode.ino));
  if (entry->type == FileType::directory) return is_a_directory(inode.ino);
  WEFT_TRY(std::string text, changing_text(inode.ino));
  return open_text(std::move(text), ReadMode::changing);
}

void FixedFiles::set_mount_status(std::function<std::string()> json_members) {
  const std::lock_guard lock(mutex_);
  mount_status_ = std::move(json_members);
}

}  // namespace weft
