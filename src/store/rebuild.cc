#include "store/rebuild.h"

#include <fcntl.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "store/apply.h"
#include "store/layout.h"

namespace weft {
namespace {

// A rebuilt index counts on from where the old one cannot have been: commits of gc are not in the journal.
constexpr std::uint64_t kSequenceStep = 1ULL << 32U;

class Rebuilder {
 public:
  Rebuilder(Env& env, const WriterLock& lock, const RebuildInput& input, FsckReport& report)
      : env_(env), lock_(lock), input_(input), report_(report) {}

  Status run(Progress& progress);

 private:
  void survey(const Event& event);
  Status add_packs(Progress& progress);
  Status add_pack(PackId pack);
  Status add_entry(Txn& txn, const NewBlob& blob);
  Status replay(const Event& event);
  Status replay_publish(const PublishEvent& event);
  Status replay_removal(const RemovalEvent& event);
  Status try_publish(const PublishEvent& event, const VersionContent* content, bool reaped);
  Status tell(Status status, const std::string& what);
  std::optional<VersionContent> content_of(const VersionRow& version);
  Status fill_gaps();
  Status finish(std::uint64_t journal_end);

  Env& env_;
  const WriterLock& lock_;
  const RebuildInput& input_;
  FsckReport& report_;
  std::set<std::pair<std::string, std::uint64_t>> removed_;
  std::unordered_map<Ino, FirstView> first_views_;
};

std::string label(const VersionRow& version) {
  return fmt::format("{}@{}", version.model_name, version.number);
}

// What cannot be applied is a problem of the store; what cannot be written is a failure of ours.
Status Rebuilder::tell(Status status, const std::string& what) {
  if (status.ok()) return {};
  Errc code = status.error().code;
  if (code == Errc::no_space || code == Errc::io || code == Errc::permission || code == Errc::busy) return status;
  report_.problems.push_back(fmt::format("{}: {}", what, status.error().message));
  return {};
}

void Rebuilder::survey(const Event& event) {
  if (const auto* removal = std::get_if<RemovalEvent>(&event)) removed_.emplace(removal->model, removal->number);
  if (const auto* publish = std::get_if<PublishEvent>(&event))
    for (Ino ino : publish->local.view_inos)
      first_views_.try_emplace(ino, FirstView{publish->version.id, publish->version.time_ns});
}

// Of the packs that have a blob the first is as good as any; for fsck, that which the index names.
Status Rebuilder::add_entry(Txn& txn, const NewBlob& blob) {
  std::optional<FoundBlob> known = input_.known ? input_.known(blob.id) : std::nullopt;
  WEFT_TRY(bool made, add_blob(txn, blob.id, blob.place, known ? known->key : std::string()));
  if (made || !known || known->row.place != blob.place) return {};
  return put(txn, Table::blobs, known->key, known->row);
}

Status Rebuilder::add_pack(PackId pack) {
  auto toc = input_.packs.toc(pack);
  if (!toc.ok()) return tell(std::move(toc).error(), fmt::format("pack {:016x}", pack));
  return env_.write(lock_, [&](Txn& txn) -> Status {
    for (const PackEntry& entry : toc->entries) WEFT_CHECK(add_entry(txn, {entry.id, {pack, entry.offset}}));
    return {};
  });
}

Status Rebuilder::add_packs(Progress& progress) {
  WEFT_TRY(std::vector<PackId> packs, input_.packs.list());
  for (PackId pack : packs) {
    if (progress.cancelled()) return Error{Errc::cancelled, "stopped"};
    WEFT_CHECK(add_pack(pack));
  }
  return {};
}

std::optional<VersionContent> Rebuilder::content_of(const VersionRow& version) {
  auto content = [&]() -> Result<VersionContent> {
    WEFT_TRY(std::shared_ptr<const ManifestReader> manifest, input_.manifests.open(version.manifest));
    return input_.decode(manifest->bytes());
  }();
  if (content.ok()) return std::move(*content);
  report_.problems.push_back(
      fmt::format("{}: its content cannot be read: {}", label(version), content.error().message));
  return {};
}

Status Rebuilder::try_publish(const PublishEvent& event, const VersionContent* content, bool reaped) {
  std::uint64_t missing = 0;
  Status status = env_.write(lock_, [&](Txn& txn) -> Status {
    missing = 0;
    PublishInput input;
    input.content = content;
    input.reaped = reaped;
    input.first_views = &first_views_;
    input.missing_extents = &missing;
    WEFT_CHECK(apply_publish(txn, event, input));
    return {};
  });
  if (missing != 0)
    report_.problems.push_back(fmt::format("{}: {} of its extents are in no pack", label(event.version), missing));
  return status;
}

Status Rebuilder::replay_publish(const PublishEvent& event) {
  const VersionRow& version = event.version;
  bool removed = removed_.count({version.model_name, version.number}) != 0;
  if (removed && !(input_.unreaped && input_.unreaped(version.id))) return try_publish(event, nullptr, true);
  if (!removed) ++report_.versions;
  std::optional<VersionContent> content = content_of(version);
  if (!content) return try_publish(event, nullptr, false);
  Status status = try_publish(event, &*content, false);
  if (status.ok() || status.error().code != Errc::corrupt) return status;
  WEFT_CHECK(tell(std::move(status), label(version)));
  return try_publish(event, nullptr, false);
}

Status Rebuilder::replay_removal(const RemovalEvent& event) {
  std::optional<VersionContent> content;
  {
    WEFT_TRY(Txn txn, env_.read());
    WEFT_TRY(std::optional<ModelRow> model, find_model(txn, event.model));
    if (!model) return Error{Errc::corrupt, fmt::format("removal of {}@{}: no such model", event.model, event.number)};
    WEFT_TRY(std::optional<VersionRow> version, find_version(txn, model->id, event.number));
    if (version && input_.unreaped && input_.unreaped(version->id)) content = content_of(*version);
  }
  return env_.write(lock_, [&](Txn& txn) { return apply_removal(txn, event, content ? &*content : nullptr); });
}

Status Rebuilder::replay(const Event& event) {
  if (const auto* publish = std::get_if<PublishEvent>(&event)) return replay_publish(*publish);
  if (const auto* removal = std::get_if<RemovalEvent>(&event)) return replay_removal(*removal);
  return env_.write(lock_, [&](Txn& txn) { return apply_tags(txn, std::get<TagsEvent>(event)); });
}

// A number whose record was lost is never given again, and says so by naming no version.
Status Rebuilder::fill_gaps() {
  return env_.write(lock_, [](Txn& txn) -> Status {
    std::vector<ModelRow> models;
    WEFT_CHECK(each_entry(txn, Table::models, {}, [&](const Entry& entry) -> Status {
      WEFT_TRY(ModelRow row, row_from<ModelRow>(txn, Table::models, entry.key, entry.value));
      models.push_back(std::move(row));
      return {};
    }));
    for (const ModelRow& model : models)
      for (std::uint64_t number = 1; number < model.next_number; ++number) {
        std::string key = key_of(model.id, number);
        WEFT_TRY(std::optional<Bytes> known, txn.get(Table::numbers, key));
        if (!known) WEFT_CHECK(put(txn, Table::numbers, key, NumberRow{kLostVersion}));
      }
    return {};
  });
}

Status Rebuilder::finish(std::uint64_t journal_end) {
  WEFT_CHECK(fill_gaps());
  return env_.write(lock_, [&](Txn& txn) -> Status {
    WEFT_TRY(Counters counters, get_counters(txn));
    counters.journal_end = journal_end;
    counters.sequence += kSequenceStep;
    return put_counters(txn, counters);
  });
}

Status Rebuilder::run(Progress& progress) {
  WEFT_TRY(JournalTail journal, input_.journal.read(0, input_.journal_end));
  report_.problems.insert(report_.problems.end(), journal.problems.begin(), journal.problems.end());
  if (std::uint64_t end = std::min(journal.size, input_.journal_end); journal.end < end)
    report_.problems.push_back(fmt::format("{}: {} bytes at {}, its end, are no whole record", input_.journal.path(),
                                           end - journal.end, journal.end));
  for (const JournaledEvent& journaled : journal.events) survey(journaled.event);
  WEFT_CHECK(env_.write(lock_, [](Txn& txn) { return put_counters(txn, Counters{}); }));
  WEFT_CHECK(add_packs(progress));
  for (const JournaledEvent& journaled : journal.events) {
    if (progress.cancelled()) return Error{Errc::cancelled, "stopped"};
    WEFT_CHECK(
        tell(replay(journaled.event), fmt::format("{}: the record before {}", input_.journal.path(), journaled.end)));
  }
  return finish(journal.end);
}

// Packs need an index only to look blobs up, which a rebuild does not.
class NoIndex final : public IndexAccess {
 public:
  Result<std::unique_ptr<BlobIndex>> read() override { return Error{Errc::internal, "no index while it is rebuilt"}; }
  Result<std::unique_ptr<BlobWriter>> write() override { return Error{Errc::internal, "no index while it is rebuilt"}; }
};

constexpr std::string_view kScratch = "rebuild-";

Status remove_stale_scratch(const std::string& index_dir) {
  WEFT_TRY(std::vector<std::string> names, list_directory(index_dir));
  for (const std::string& name : names)
    if (name.starts_with(kScratch)) WEFT_CHECK(remove_tree(index_dir + "/" + name));
  return {};
}

}  // namespace

Status fill_index(Env& env, const RebuildInput& input, Progress& progress, FsckReport& report) {
  WEFT_TRY(WriterLock lock, env.lock_writer());
  return Rebuilder(env, lock, input, report).run(progress);
}

Result<ScratchIndex> ScratchIndex::make(const std::string& parent) {
  ScratchIndex scratch(fmt::format("{}/{}{}", parent, kScratch, random_hex(8)));
  WEFT_CHECK(make_directory(scratch.dir_));
  WEFT_CHECK(Env::create(scratch.dir_));
  EnvOptions options;
  options.write = true;
  options.sync = false;
  WEFT_TRY(scratch.env_, Env::open(scratch.dir_, options));
  return scratch;
}

ScratchIndex::~ScratchIndex() {
  env_.reset();
  if (!dir_.empty()) static_cast<void>(remove_tree(dir_));
}

Status ScratchIndex::close() {
  WEFT_CHECK(env_->sync());
  env_.reset();
  return {};
}

Result<Fd> lock_collector(const std::string& store_path, LockKind kind) {
  std::string path = store_path + "/index/gc";
  WEFT_TRY(Fd fd, open_file(path, O_RDONLY));
  WEFT_CHECK(lock_fd(fd.get(), kind, LockWait::yes, path));
  return fd;
}

Result<FsckReport> rebuild_store(const std::string& path, const ContentDecoder& decode, Progress& progress) {
  WEFT_TRY(StoreInfo info, read_identity(path));
  std::string index_dir = path + "/index";
  WEFT_CHECK(make_directories(index_dir));
  WEFT_CHECK(Env::create_locks(index_dir));
  WEFT_TRY(Fd collector, lock_collector(path, LockKind::exclusive));
  WEFT_TRY(WriterLock lock, Env::lock_writer(index_dir));
  WEFT_CHECK(remove_stale_scratch(index_dir));
  progress.phase("rebuilding the index");
  Journal journal(path);
  Manifests manifests(path);
  NoIndex no_index;
  Packs packs(path, info.digest, no_index);
  FsckReport report;
  WEFT_TRY(ScratchIndex scratch, ScratchIndex::make(index_dir));
  WEFT_CHECK(fill_index(scratch.env(), {journal, manifests, packs, decode, UINT64_MAX, {}, {}}, progress, report));
  WEFT_CHECK(scratch.close());
  WEFT_CHECK(rename_file(scratch.dir() + "/data.mdb", index_dir + "/data.mdb"));
  WEFT_CHECK(sync_directory(index_dir));
  WEFT_CHECK(upgrade_identity(path, info));
  report.rebuilt = true;
  return report;
}

}  // namespace weft
