#include "cli/shared/repair.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/shared/configured_store.h"
#include "weft/cluster_store.h"
#include "weft/node.h"
#include "weft/repair.h"

namespace weft {
namespace {

using Blobs = std::vector<DamagedBlob>;

RepairOutcome outcome_of(const Blobs& damaged, const std::vector<std::string>& left) {
  RepairOutcome outcome{{}, left};
  for (const DamagedBlob& blob : damaged)
    if (std::ranges::none_of(left, [&](const std::string& line) { return line.starts_with(blob.what); }))
      outcome.repaired.push_back(blob.what);
  return outcome;
}

std::string request(const ContentId& id, std::optional<std::uint64_t> offset) {
  JsonWriter body;
  body.begin_object().member("length", id.length).member("root", to_hex(id.root));
  if (offset) body.member("offset", *offset);
  return body.end_object().take();
}

Result<RepairOutcome> repair_through(control::Client& daemon, const Context& context, Store& store,
                                     const Blobs& damaged, const std::vector<std::string>& from, Progress& progress) {
  const TakeBlob take = [&](const ContentId& id, int fd, std::uint64_t offset, std::string_view) -> Status {
    control::CallOptions options;
    options.cancelled = context.patience().cancelled;
    std::vector<Fd> fds;
    fds.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    WEFT_CHECK(daemon.call("repair", request(id, offset), std::move(fds), options));
    return {};
  };
  WEFT_TRY(const Blobs missing, search_blobs(store, damaged, from, take, progress));
  std::vector<std::string> left;
  for (const DamagedBlob& blob : missing) {
    const auto answer = context.ask(daemon, "repair", request(blob.id, std::nullopt));
    if (!answer.ok() && (answer.error().code == Errc::permission || answer.error().code == Errc::cancelled))
      return answer.error();
    if (!answer.ok()) left.push_back(fmt::format("{}; not repaired: {}", blob.what, answer.error().message));
  }
  return outcome_of(damaged, left);
}

// The store of a cluster is opened as its daemon opens it, so that none can begin meanwhile.
Result<std::unique_ptr<Store>> open_as_writer(const Context& context, bool clustered) {
  if (!clustered) return context.open_to_write();
  OpenOptions options;
  options.decode = content_decoder();
  options.patience = context.patience();
  WEFT_TRY(auto store, ClusterStore::open(context.store_path(), options));
  return std::unique_ptr<Store>(std::move(store));
}

// The origin of this machine's weft.conf, if that is for this store and a directory is there.
std::optional<std::string> known_origin(const Context& context) {
  const std::string& file = context.environment().config_file;
  const auto store = configured_value(file, "store");
  const auto origin = configured_value(file, "origin");
  std::error_code none;
  if (!store || !origin || !std::filesystem::equivalent(*store, context.store_path(), none)) return {};
  return std::filesystem::is_directory(*origin, none) ? origin : std::nullopt;
}

Result<RepairOutcome> repair_alone(const Context& context, Store& store, const Blobs& damaged,
                                   std::vector<std::string> from, Progress& progress) {
  const bool clustered = store.cluster().has_value();
  if (const auto origin = known_origin(context)) from.push_back(*origin);
  WEFT_TRY(const auto writer, open_as_writer(context, clustered));
  WEFT_TRY(const auto repair, writer->begin_repair());
  const TakeBlob take = [&](const ContentId& id, int fd, std::uint64_t offset, std::string_view where) {
    return repair->add(id, fd, offset, where, progress);
  };
  WEFT_TRY(const Blobs missing, search_blobs(*writer, damaged, from, take, progress));
  WEFT_CHECK(repair->commit());
  std::vector<std::string> left;
  for (const DamagedBlob& blob : missing)
    left.push_back(fmt::format("{}; not repaired: {}", blob.what,
                               clustered      ? "only a peer may have it: start weftd and run this again"
                               : from.empty() ? "--from PATH names where it may be"
                                              : "no PATH has it"));
  return outcome_of(damaged, left);
}

}  // namespace

Result<RepairOutcome> repair_blobs(const Context& context, Store& store, const std::vector<DamagedBlob>& damaged,
                                   const std::vector<std::string>& from) {
  if (damaged.empty()) return RepairOutcome{};
  ProgressBar bar = context.progress();
  WEFT_TRY(const auto daemon, context.daemon());
  return daemon ? repair_through(*daemon, context, store, damaged, from, bar)
                : repair_alone(context, store, damaged, from, bar);
}

}  // namespace weft
