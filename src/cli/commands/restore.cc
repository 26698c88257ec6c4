#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "daemon_api/control_messages.h"

namespace weft {
namespace {

constexpr CommandInfo kRestoreInfo = {
    .name = "restore",
    .summary = "recreate a store or a registry from an origin",
    .description =
        "Creates a store in the directory that --store or WEFT_STORE names, which must be\n"
        "empty or not exist, from a cluster's origin. The restore needs nothing else, so\n"
        "it works when the registry and all nodes are lost. It only reads the origin and\n"
        "verifies every byte that it copies. Versions keep their numbers, times, parents,\n"
        "messages and metrics, tags are where they were last, and removed versions stay\n"
        "removed. The store belongs to no cluster.\n"
        "\n"
        "If something at the origin is damaged or missing, the restore names it, makes no\n"
        "store, and exits with code 1. --accept-loss restores the rest; an incomplete\n"
        "version becomes a removed version.\n"
        "\n"
        "With --registry, the store's daemon fills the registry of its cluster from its\n"
        "origin, with the same names, numbers and tags. Use it when etcd was lost and\n"
        "replaced by an empty one. The bytes stay at the origin. The restore changes\n"
        "nothing that the registry has: it names a model of which the registry has\n"
        "another version, and leaves it alone. The user needs the rights to publish and\n"
        "to remove.\n",
    .examples =
        "weft restore /lustre/weft --store /srv/weft\n"
        "weft restore --accept-loss /lustre/weft\n"
        "weft restore --registry\n",
    .json =
        "{store, restored, refused, models, versions, removed, tags, packs, bytes,\n"
        " problems: [TEXT], mended: [TEXT]}\n",
    .interrupted = "there is no store; the same command continues where this one stopped",
};

class RestoreCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("ORIGIN", origin_, OptionSet::Need::optional, "the directory that is the cluster's origin");
    options.flag("--accept-loss", accept_loss_, "restore without what is damaged or missing");
    options.flag("--registry", registry_, "fill the registry of the daemon's cluster");
  }

  Status check_usage() override {
    if (registry_ && !origin_.empty())
      return Error{Errc::invalid, "--registry: expected no ORIGIN, because the daemon has one"};
    if (!registry_ && origin_.empty()) return Error{Errc::invalid, "expected ORIGIN, or --registry"};
    return {};
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const RestoreReport report, restore(context));
    context.json ? print_json(context, report) : print_lines(context, report);
    if (report.problems.empty()) return kExitDone;
    context.note(
        fmt::format("{}: {}", registry_ ? "origin" : printable(origin_), count_of(report.problems.size(), "problem")));
    return kExitFailed;
  }

 private:
  Result<RestoreReport> restore(const Context& context) const {
    if (registry_) return call_daemon<RestoreReport>(context, "restore", RestoreRequest{accept_loss_});
    ProgressBar bar = context.progress();
    return restore_store(origin_, context.store_path(), {accept_loss_, context.patience()}, bar);
  }

  static void print_json(const Context& context, const RestoreReport& report) {
    JsonWriter json;
    json.begin_object().member("store", context.store_path()).member("restored", !report.refused);
    write_fields(json, report);
    context.print_json(json.end_object());
  }

  void print_lines(const Context& context, const RestoreReport& report) const {
    for (const std::string& problem : report.problems) context.print("{}\n", problem);
    for (const std::string& line : report.mended) context.print("mended: {}\n", line);
    if (report.refused)
      return context.print("{}: this data is lost; `weft restore --accept-loss` restores without it\n",
                           registry_ ? "registry not restored" : "no store made");
    if (context.quiet) return;
    if (registry_)
      return context.print("registry restored: {} of {}, {} more removed, {}\n", count_of(report.versions, "version"),
                           count_of(report.models, "model"), report.removed, count_of(report.tags, "tag"));
    context.print("restored: {} of {}, {} more removed, {}; {} verified, in {}\n", count_of(report.versions, "version"),
                  count_of(report.models, "model"), report.removed, count_of(report.tags, "tag"),
                  human_bytes(report.bytes), context.store_path());
  }

  std::string origin_;
  bool accept_loss_ = false;
  bool registry_ = false;
};

}  // namespace

constinit const CommandEntry kRestoreCommand = {kRestoreInfo, make<RestoreCommand>};

}  // namespace weft
