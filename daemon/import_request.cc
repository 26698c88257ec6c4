// Publishes for a client. The client lists the files and opens each one on request, with its own rights.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "control/call.h"
#include "daemon/access.h"
#include "daemon/parts.h"
#include "daemon/serve.h"
#include "daemon_api/call_progress.h"
#include "daemon_api/changes.h"
#include "fetch/requests/version.h"
#include "monitor/audit.h"
#include "os/sys.h"
#include "publish/arrival_patience.h"
#include "publish/import_sources.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

// Memory of an import, for ImportMemory. Until weftd has read the headers of the files, it is the size of the files,
// and at most a guess. The file table of a data set adds its size: twice while it is checked, then once.
constexpr std::uint64_t kHeadersGuess = 128U << 20U;
constexpr std::uint64_t kBytesEach = 320;  // of each tensor, and of each file of a data set

// Longest wait for a client that is stopped, or whose file system hangs.
constexpr auto kClientPatience = std::chrono::minutes(5);

constexpr auto kAwaitPause = std::chrono::milliseconds(100);

// Asks the client for its files, one question at a time.
class ClientFiles {
 public:
  explicit ClientFiles(control::Call& call) : call_(call) {}

  Result<std::vector<SourceFile>> list(std::uint64_t count) {
    std::vector<SourceFile> files;
    while (files.size() < count) {
      WEFT_TRY(const control::Message message, ask({.files = files.size()}));
      WEFT_CHECK(decode_files(message.body, count, files));
    }
    for (std::size_t i = 0; i < files.size(); ++i) {
      files[i].open = [this, i] { return open(i); };
      if (files[i].role != FileRole::published) files[i].expected.reset();
      if (files[i].expected) files[i].await = [this, i](Range range) { return await(i, range); };
    }
    return check_sources(std::move(files));
  }

 private:
  Result<control::Message> ask(const ImportEvent& question) {
    WEFT_CHECK(call_.event(encode_fields(question)));
    return call_.next(kClientPatience);
  }

  Result<Fd> open(std::uint64_t number) {
    WEFT_TRY(control::Message message, ask({.open = number}));
    if (!message.fds.empty()) return std::move(message.fds.front());
    WEFT_TRY(OpenFailure failure, decode_fields<OpenFailure>(message.body));
    return std::move(failure.error);
  }

  // Believes the client: if the bytes are not there, the SHA-256 of the file is not the expected one. Pauses after a
  // reply without news, so that no client can keep this thread busy, and fails after too many of them.
  Result<std::uint64_t> await(std::uint64_t number, Range range) {
    patience_.begin();
    WEFT_TRY(const control::Message message, ask({.await = AwaitedBytes{number, range.offset, range.length}}));
    WEFT_TRY(Arrived arrived, decode_fields<Arrived>(message.body));
    if (arrived.failure) return std::move(arrived.failure->error);
    if (arrived.end <= range.offset) call_.wait_cancelled(kAwaitPause);
    std::uint64_t& before = ends_[number];
    const std::uint64_t news = arrived.end - std::min(arrived.end, before);
    before += news;
    if (patience_.end(news)) return arrived.end;
    return Error{Errc::timed_out,
                 fmt::format("expected bytes of a file that arrives within {} h, or {} KiB a second, got fewer",
                             ArrivalPatience::kLongest.count(), ArrivalPatience::kBytesPerSecondMin >> 10U)};
  }

  control::Call& call_;
  ArrivalPatience patience_;
  std::map<std::uint64_t, std::uint64_t> ends_;  // of the bytes that have arrived, by file
};

// Fetches the config files of an inherited version from its node. After an error, the import itself fails if it needs
// them.
void bring_base(DaemonParts& parts, const std::string& model, const std::string& base) {
  if (base.empty()) return;
  const auto row = version_of(parts.store, base);
  if (!row.ok()) return;
  if (const Status fetched = fetch_configs(parts.store, parts.bytes.fetcher, *row); !fetched.ok())
    log_info("{} of {}: the config files of {} are not fetched: {}", log_work(), printable(model), printable(base),
             fetched.error().message);
}

std::uint64_t bytes_of(std::span<const SourceFile> files) {
  std::uint64_t bytes = 0;
  for (const SourceFile& file : files) bytes += std::min(file.size, limits::kVersionBytesMax - bytes);
  return bytes;
}

// Returns the announced size of a data set's file table. prepare_sources() refuses a second table, and one of another
// size.
std::uint64_t file_table_bytes(std::span<const SourceFile> files) {
  const auto table = std::ranges::find(files, FileRole::file_table, &SourceFile::role);
  return table == files.end() ? 0 : std::min(table->size, limits::kFileTableMax);
}

// Returns the number of tensors of an inherited version. The import itself reports a version that is not there.
std::uint64_t tensors_of(Store& store, const std::string& base) {
  const auto row = base.empty() ? Result<VersionRow>(VersionRow{}) : version_of(store, base);
  return row.ok() ? row->tensors : 0;
}

// Publishes the files. A version that depends on versions in memory is in memory too. If the client asks for a durable
// version, returns only when it is on the disk.
Result<ImportReport> publish(ImportOptions options, uid_t user, std::vector<SourceFile> files, CallProgress& progress,
                             DaemonParts& parts) {
  const bool to_memory = options.durability == Durability::memory;
  const auto cancelled = [&progress] { return progress.cancelled(); };
  ImportReport report;
  {
    const std::uint64_t table = file_table_bytes(files);
    const std::uint64_t guess = std::min(bytes_of(files), kHeadersGuess) + 2 * table;
    WEFT_TRY(auto share, parts.import_memory.take(user, guess, cancelled));
    WEFT_TRY(auto running, parts.memory.begin_publish(user, bytes_of(files), to_memory, cancelled));
    const CallProgress::While lasting(progress, [&running] { return running.lasts(); });
    if (!running.in_memory() && to_memory) options.durability = Durability::local;
    WEFT_TRY(PreparedImport prepared, prepare_sources(options, std::move(files), progress));
    share.set((prepared.size() + tensors_of(parts.store, options.inherit)) * kBytesEach + table);
    bring_base(parts, options.name, options.inherit);
    auto done = run_import(parts.store, parts.bytes.fetcher, std::move(prepared), progress,
                           [&](Import& one, const PublishRequest& version) -> Result<PublishOutcome> {
                             WEFT_CHECK(running.commit());
                             auto outcome = parts.registry.publish(one, version);
                             if (outcome.ok()) audit_publish(*outcome, user);
                             return outcome;
                           });
    if (!done.ok() && !running.lasts()) WEFT_CHECK(running.commit());  // says why
    if (!done.ok()) return done;
    report = std::move(done).value();
    running.published(report.outcome.version.id);
  }
  if (!to_memory) WEFT_CHECK(parts.memory.wait_for(report.outcome.version.id, cancelled));
  return report;
}

// Removes older versions as `keep` demands, also for a client that has gone. An error is logged and reported: the new
// version is published.
void displace(control::Call& call, std::uint64_t keep, ImportReport& report, DaemonParts& parts) {
  if (keep == 0) return;
  const VersionRow& newest = report.outcome.version;
  std::size_t removed = 0;
  Status done = check_access(parts.config.get()->remove, newest.model_name, call.peer(), "remove versions of");
  if (done.ok())
    done = displace_versions(
        parts.store, newest.model, {keep, {}},
        [&](std::span<const VersionName> some, Tagged tagged) {
          return parts.registry.remove_versions(some, tagged, author_of(call.peer()));
        },
        [&](const VersionName& version) -> Status {
          ++removed;
          audit("remove", spec_of(version.model, version.number), call.peer().uid);
          static_cast<void>(call.event(encode_fields(ImportEvent{.removed = version})));
          return {};
        });
  const std::string spec = spec_of(newest.model_name, newest.number);
  if (removed > 0) {
    log_info("{}: {} older versions removed", spec, removed);
    parts.auto_gc.collect_soon();
  }
  if (done.ok()) return;
  report.not_removed = done.error().message;
  log_warning("{}: older versions are not removed: {}", spec, report.not_removed);
}

Result<ImportReport> import(control::Call& call, const ImportRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->publish, request.options.name, call.peer(), "publish"));
  CallProgress progress(call);
  ClientFiles client(call);
  WEFT_CHECK(check_description(request.options));
  WEFT_TRY(auto files, client.list(request.files));
  for (SourceFile& file : files) {
    file.take = take_from(call.peer().uid, request.options.take, parts.store.path());
    file.giver = call.peer().uid;
  }
  ImportOptions options = request.options;
  options.by = author_of(call.peer());
  WEFT_TRY(ImportReport report, publish(std::move(options), call.peer().uid, std::move(files), progress, parts));
  displace(call, request.options.keep, report, parts);
  parts.write_behind();
  return report;
}

// Checks whether a user may publish some name. A mount asks this for users that write into its new/: the publish itself
// shows the name.
Result<Nothing> may_publish(control::Call& call, const MayPublishRequest& request, DaemonParts& parts) {
  PeerCredentials user = call.peer();
  const bool of_others = user.uid == 0 || user.uid == own_user();
  if (!of_others && request.uid != user.uid)
    return Error{Errc::permission, "weftd: only root may ask for the rights of another user"};
  if (of_others) {
    user = {user.pid, request.uid, request.gid, {}};
    for (const GroupId group : request.groups) user.groups.push_back(group.gid);
  }
  WEFT_CHECK(check_any_access(parts.config.get()->publish, user, "publish"));
  return Nothing{};
}

}  // namespace

void fail(control::Call& call, const Error& error) {
  log_info("{} of user {} failed: {}", log_work(), call.peer().uid, printable(error.message, 1000));
  call.fail(error);
}

void serve_imports(control::Server& server, DaemonParts& parts) {
  serve(server, parts, "may_publish", may_publish);
  serve(server, parts, "import", import);
}

}  // namespace weft
