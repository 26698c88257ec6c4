// The StoreWriter for a store without a daemon: this process writes.
#include <filesystem>
#include <optional>
#include <utility>

#include "base/log.h"
#include "cli/shared/configured_store.h"
#include "cli/shared/writer.h"
#include "daemon_api/audit_entries.h"
#include "daemon_api/changes.h"
#include "monitor/audit.h"
#include "os/lookups/users.h"
#include "os/sys.h"
#include "weft/programs/operations.h"
#include "weft/store/cluster_store.h"
#include "weft/store/fsck.h"
#include "weft/store/repair.h"
#include "weft/store/snapshot.h"
#include "weft/store/store.h"

namespace weft {
namespace {

// Returns the origin of this machine's weft.conf, if that directory exists.
std::optional<std::string> known_origin(const Context& context) {
  const auto origin = configured_for(context.environment().config_file, context.store_path(), "origin");
  std::error_code none;
  return origin && std::filesystem::is_directory(*origin, none) ? origin : std::nullopt;
}

Author own_author() {
  return {user_name(own_user()), {}};
}

// Replaces Durability::memory: only a weftd writes versions in memory to the disk later.
ImportOptions own_options(ImportOptions options) {
  options.durability = Durability::local;
  options.by = own_author();
  return options;
}

// Audit lines of this process go to the log of the store's weftd, if weft.conf names a file that is there. A new file
// would belong to this user, and weftd might be unable to write to it.
void begin_audit(const Context& context) {
  const auto configured = [&context](std::string_view key) {
    return configured_for(context.environment().config_file, context.store_path(), key);
  };
  const auto file = configured("log_file");
  if (!file || !stat_file(*file).ok()) return;
  const LogFormat format = configured("log_format") == "json" ? LogFormat::json : LogFormat::text;
  const Status begun = audit_setup(*file, "weft", {format, configured("name").value_or(host_name())});
  if (!begun.ok()) context.note(fmt::format("the audit log has no line about this: {}", begun.error().message));
}

template <class Request, class Answer>
void audit_done(const Request& request, const Answer& answer) {
  const AuditEntry entry = audit_entry(request, &answer);
  if (!entry.action.empty()) audit(entry.action, entry.object, own_user());
}

class LocalWriter final : public StoreWriter {
 public:
  explicit LocalWriter(const Context& context) : context_(context) { begin_audit(context); }

  // Prepares the import before it creates a store, so that an invalid import creates none.
  Result<ImportReport> import(const ImportOptions& options) override {
    if (options.durability == Durability::memory)
      context_.note("no daemon runs for this store: the version goes to the disk, as with --durability local");
    ProgressBar bar = context_.progress();
    WEFT_TRY(PreparedImport prepared, prepare_import(own_options(options), context_.store_path(), bar));
    WEFT_TRY(Context::OpenedStore opened, open_on_disk());
    auto report = run_import(*opened.store, context_.resolver(), std::move(prepared), bar);
    if (!report.ok()) context_.unmake(std::move(opened));
    if (!report.ok()) return report;
    const AuditEntry published = audit_entry(report->outcome);
    audit(published.action, published.object, own_user());
    displace(*opened.store, options.keep, *report, bar);
    if (report->outcome.in_memory) WEFT_CHECK(keep(std::move(opened.store), report->outcome.version.id));
    return report;
  }

  // Then writes what an ended weftd left in memory to the disk, as undelete() does.
  Result<BundleImportReport> import_bundle(const BundleFiles& files, const BundleImportOptions& options) override {
    ProgressBar bar = context_.progress();
    WEFT_TRY(Context::OpenedStore opened, open_on_disk());
    Store& store = *opened.store;
    const BundleTarget target{store, {}, [&store](std::string_view model, std::string_view tag, std::uint64_t number) {
                                return store.set_tag(model, tag, number, own_author());
                              }};
    auto report = weft::import_bundle(target, files, options, bar);
    if (!report.ok() || options.dry_run) context_.unmake(std::move(opened));
    if (!report.ok() || options.dry_run) return report;
    audit_done(BundleImportRequest{}, *report);
    WEFT_TRY(const bool in_memory, any_in_memory(store));
    if (in_memory) WEFT_CHECK(take_to_disk(std::move(opened.store)));
    return report;
  }

  Result<VersionName> tag(const TagRequest& request) override {
    WEFT_TRY(const auto store, context_.open_to_write());
    WEFT_TRY(const VersionName tagged,
             change_tag(
                 *store, request, [&store](auto... change) { return store->set_tag(change..., own_author()); },
                 [&store](auto... change) { return store->protect_tag(change..., own_author()); }));
    audit_done(request, tagged);
    return tagged;
  }

  Result<VersionName> note(const NoteRequest& request) override {
    WEFT_TRY(const auto store, context_.open_to_write());
    WEFT_TRY(const VersionName described, change_description(*store, request, [&store](const auto&... change) {
               return store->describe(change...);
             }));
    audit_done(request, described);
    return described;
  }

  Status rename(const RenameRequest& request) override {
    WEFT_TRY(const auto store, context_.open_to_write());
    WEFT_CHECK(change_name(*store, request, [&store](auto... names) { return store->rename_model(names...); }));
    audit_done(request, Nothing{});
    return {};
  }

  Result<RemoveReport> remove(const RemoveRequest& request,
                              const std::function<void(const VersionName&)>& removed) override {
    WEFT_TRY(const auto store, context_.open_to_write());
    WEFT_CHECK(remove_versions(
        *store, request,
        [&, by = own_author()](std::span<const VersionName> versions, Tagged tagged) {
          return store->remove_versions(versions, tagged, by);
        },
        [&](const VersionName& version) -> Status {
          if (!request.dry_run) audit("remove", spec_of(version.model, version.number), own_user());
          removed(version);
          return {};
        }));
    return RemoveReport{};
  }

  // Then writes what an ended weftd left in memory to the disk.
  Status undelete(const UndeleteRequest& request,
                  const std::function<void(const UndeletedVersion&)>& undeleted) override {
    WEFT_TRY(auto store, context_.open_to_write());
    WEFT_CHECK(undelete_versions(
        request,
        [&, by = own_author()](std::string_view model, std::uint64_t number) {
          return store->undelete(model, number, by);
        },
        [&](const UndeletedVersion& version) -> Status {
          audit("undelete", spec_of(version.model, version.number), own_user());
          undeleted(version);
          return {};
        }));
    WEFT_TRY(const bool in_memory, any_in_memory(*store));
    return in_memory ? take_to_disk(std::move(store)) : Status{};
  }

  Result<GcOutcome> collect(const GcOptions& options) override {
    WEFT_TRY(const std::chrono::seconds drafts_kept,
             configured_drafts_keep(context_.environment().config_file, context_.store_path()));
    WEFT_TRY(const auto store, context_.open_to_write());
    ProgressBar bar = context_.progress();
    WEFT_TRY(GcOutcome outcome, collect_garbage(*store, options, drafts_kept, bar));
    audit_done(options, outcome);
    return outcome;
  }

  Status pin(const PinRequest& request) override {
    WEFT_TRY(const auto store, context_.open_to_write());
    WEFT_CHECK(change_pin(*store, request));
    audit_done(request, Nothing{});
    return {};
  }

  Result<std::vector<std::string>> repair(Store& store, const std::vector<DamagedBlob>& damaged,
                                          std::vector<std::string> from) override {
    ProgressBar bar = context_.progress();
    const bool clustered = store.cluster().has_value();
    if (const auto origin = known_origin(context_)) from.push_back(*origin);
    WEFT_TRY(const auto writer, open_to_repair(clustered));
    WEFT_TRY(const auto repair, writer->begin_repair());
    const TakeBlob take = [&](const ContentId& id, int fd, std::uint64_t offset, std::string_view where) {
      return repair->add(id, fd, offset, where, bar);
    };
    WEFT_TRY(const auto missing, search_blobs(*writer, damaged, from, take, bar));
    WEFT_CHECK(repair->commit());
    audit("repair", "", own_user());
    std::vector<std::string> left;
    for (const DamagedBlob& blob : missing)
      left.push_back(fmt::format("{}; not repaired: {}", blob.what,
                                 clustered      ? "only a peer may have it: start weftd and run this again"
                                 : from.empty() ? "--from PATH names where it may be"
                                                : "no PATH has it"));
    return left;
  }

 private:
  // Opens the store after writing to the disk all versions that an ended weftd left in memory. A version is only as
  // durable as the versions that it relies on.
  Result<Context::OpenedStore> open_on_disk() const {
    WEFT_TRY(Context::OpenedStore opened, context_.open_or_create());
    WEFT_TRY(const bool in_memory, any_in_memory(*opened.store));
    if (!in_memory) return opened;
    WEFT_CHECK(take_to_disk(std::move(opened.store)));
    return context_.open_or_create();
  }

  static Result<bool> any_in_memory(Store& store) {
    if (store.cluster()) return false;
    WEFT_TRY(const auto snapshot, store.snapshot());
    WEFT_TRY(const auto in_memory, snapshot->in_memory(0, 1));
    return !in_memory.empty();
  }

  // Makes a version durable that has reused blobs of a removed version in memory. Errc::absent: they were lost.
  Status keep(std::unique_ptr<Store> opened, VersionId version) const {
    WEFT_CHECK(take_to_disk(std::move(opened)));
    WEFT_TRY(const auto store, context_.open_to_read());
    WEFT_TRY(const auto snapshot, store->snapshot());
    WEFT_TRY(const VersionRow row, snapshot->version(version));
    return row.lost.empty() ? Status{} : Status{Error{Errc::absent, row.lost}};
  }

  // Writes all versions in memory to the disk. Closes the store, and opens it as a daemon does.
  Status take_to_disk(std::unique_ptr<Store> opened) const {
    opened.reset();
    WEFT_TRY(const auto store, open_as_daemon());
    return flush_memory(*store, store->memory());
  }

  // Removes the versions that `keep` displaces, and frees their space at once. The version is published: the report
  // says what failed.
  static void displace(Store& store, std::uint64_t keep, ImportReport& report, Progress& progress) {
    Status done = displace_versions(
        store, report.outcome.version.model, {keep, {}},
        [&](std::span<const VersionName> versions, Tagged tagged) {
          return store.remove_versions(versions, tagged, own_author());
        },
        [&](const VersionName& version) -> Status {
          audit("remove", spec_of(version.model, version.number), own_user());
          report.removed.push_back(version);
          return {};
        });
    if (done.ok() && !report.removed.empty())
      if (auto freed = store.gc({}, progress); !freed.ok()) done = std::move(freed).error();
    if (!done.ok()) report.not_removed = done.error().message;
  }

  // Opens the store with the daemon's lock, so that no daemon can start meanwhile.
  Result<std::unique_ptr<ClusterStore>> open_as_daemon() const {
    OpenOptions options;
    options.decode = content_decoder();
    options.patience = context_.patience();
    return ClusterStore::open(context_.store_path(), options);
  }

  Result<std::unique_ptr<Store>> open_to_repair(bool clustered) const {
    if (!clustered) return context_.open_to_write();
    WEFT_TRY(auto store, open_as_daemon());
    return std::unique_ptr<Store>(std::move(store));
  }

  const Context& context_;
};

}  // namespace

std::unique_ptr<StoreWriter> make_local_writer(const Context& context) {
  return std::make_unique<LocalWriter>(context);
}

}  // namespace weft
