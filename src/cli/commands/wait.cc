#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/mounts.h"
#include "daemon_api/control_messages.h"
#include "os/unix_socket.h"
#include "weft/names.h"
#include "weft/programs/operations.h"
#include "weft/store/commits.h"

namespace weft {
namespace {

constexpr int kExitTimedOut = 124;     // as timeout(1)
constexpr double kTimeoutMax_s = 2e6;  // fits the milliseconds of poll(2), an int

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr CommandInfo kWaitInfo = {
    .name = "wait",
    .summary = "wait for a version",
    .description =
        "Waits until the version is there, and prints its name and its directory in a\n"
        "mount. MODEL alone is the newest version. With --newer-than N, waits until the\n"
        "number of the version is greater than N. With --durable, also waits until a disk\n"
        "has all of it. Needs no daemon and no right to write.\n"
        "Exit code 124: the time of --timeout is over.\n",
    .examples =
        "weft wait org/m --newer-than 3\n"
        "weft wait org/m@prod --here --timeout 600\n",
    .json = "{model, version, path}; path is null if the store is not mounted\n",
};

class WaitCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", spec_, OptionSet::Need::required, "the version; V is a tag or a number");
    options.value("--newer-than", "N", newer_than_, "wait until the version's number is greater than N");
    options.flag("--durable", durable_, "also wait until the version is on a disk, and not in memory alone");
    options.flag("--here", here_, "also wait until all bytes of the version are on this node and verified");
    options.value("--timeout", "SECONDS", timeout_, "give up after this time (default: never)");
  }

  Status check_usage() override {
    WEFT_CHECK(parse_version_spec(spec_));
    if (!newer_than_.empty()) {
      const auto number = parse_u64(newer_than_);
      if (!number)
        return Error{Errc::invalid,
                     fmt::format("--newer-than: expected a version's number, got \"{}\"", printable(newer_than_))};
      least_ = *number;
    }
    if (!timeout_.empty()) {
      const auto seconds = parse_real(timeout_);
      if (!seconds || *seconds < 0 || *seconds > kTimeoutMax_s)
        return Error{Errc::invalid, fmt::format("--timeout: expected seconds from 0 to {}, got \"{}\"", kTimeoutMax_s,
                                                printable(timeout_))};
      patience_ = milliseconds(static_cast<std::int64_t>(std::ceil(*seconds * 1000)));
    }
    return {};
  }

  Result<int> run(Context& context) override {
    const auto until = Clock::now() + patience_.value_or(milliseconds(0));
    WEFT_TRY(const auto store, context.open_to_read());
    WEFT_TRY(const auto commits, store->watch_commits());
    for (;;) {
      commits->clear();
      WEFT_TRY(const auto found, find(*store));
      if (found) return arrived(context, *store, *found);
      const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
      if (patience_ && left.count() <= 0) return timed_out(context);
      wait_for(commits->fd(), POLLIN, patience_ ? left : milliseconds(-1));
    }
  }

 private:
  // Returns the wanted version, if it exists already. Called after each commit of the store, so it checks the model
  // first: the error messages of resolve_version(), which list the existing versions, cost more.
  Result<std::optional<VersionRow>> find(Store& store) const {
    WEFT_TRY(const auto snapshot, store.snapshot());
    WEFT_TRY(const VersionSpec spec, parse_version_spec(spec_));
    const auto model = snapshot->model(spec.model);
    if (model.ok() && model->latest <= least_) return std::optional<VersionRow>();
    if (!model.ok() && model.error().code == Errc::not_found) return std::optional<VersionRow>();
    auto row = resolve_version(*snapshot, spec_);
    if (!row.ok() && row.error().code != Errc::not_found) return std::move(row).error();
    if (!row.ok() || row->number <= least_) return std::optional<VersionRow>();
    if (durable_) {
      WEFT_TRY(const Durability durability, snapshot->durability(*row));
      if (durability == Durability::memory) return std::optional<VersionRow>();
    }
    return std::optional(std::move(*row));
  }

  Result<int> arrived(const Context& context, Store& store, const VersionRow& row) const {
    // Without a cluster, all bytes of a version are local.
    if (here_ && store.cluster())
      WEFT_CHECK(call_daemon<FetchReport>(context, "prefetch", PrefetchRequest{spec_of(row), ""}));
    const std::string path = mounted_path(store, row.model_name, row.number);
    if (context.json) {
      JsonWriter json;
      json.begin_object().member("model", row.model_name).member("version", row.number).key("path");
      path.empty() ? json.null() : json.value(path);
      context.print_json(json.end_object());
    } else {
      context.print("{}{}{}\n", spec_of(row), path.empty() ? "" : "  ", path);
    }
    context.environment().out.flush();  // before the watch ends, which takes the kernel milliseconds
    return kExitDone;
  }

  Result<int> timed_out(const Context& context) const {
    context.note(fmt::format("wait: {}{} did not come in {} s", spec_,
                             newer_than_.empty() ? "" : fmt::format(", newer than {},", newer_than_), timeout_));
    return kExitTimedOut;
  }

  std::string spec_;
  std::string newer_than_;
  std::string timeout_;
  bool durable_ = false;
  bool here_ = false;
  std::uint64_t least_ = 0;               // of --newer-than
  std::optional<milliseconds> patience_;  // of --timeout
};

}  // namespace

constinit const CommandEntry kWaitCommand = {kWaitInfo, make<WaitCommand>};

}  // namespace weft
