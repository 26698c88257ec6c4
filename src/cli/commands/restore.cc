#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "daemon_api/control_messages.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "restore",
    .summary = "make a store, or a registry, again from an origin",
    .description =
        "Makes a store where --store or WEFT_STORE says, in a directory that is empty or\n"
        "not there, from a cluster's origin alone: when the registry and all nodes are\n"
        "gone, or to have a copy. Versions keep their numbers, times, parents, messages\n"
        "and metrics, tags are where they were last, removed versions stay removed. Every\n"
        "byte is verified while it is copied. What is damaged or missing at the origin is\n"
        "named, and the restore refuses; --accept-loss goes on without: a version that is\n"
        "not whole is then a removed one. The origin is only read. The store belongs to\n"
        "no cluster. Exit code 1 when something is wrong at the origin.\n"
        "\n"
        "With --registry the store's daemon fills its cluster's registry instead, when etcd\n"
        "was lost and begins anew, from the daemon's origin: the same names, numbers and\n"
        "tags. Bytes stay where they are. What the registry has is left as it is, and a\n"
        "model of which it has another version is named and left alone: the same again\n"
        "changes nothing. All of this is for who may publish and remove.\n",
    .examples =
        "weft restore /lustre/weft --store /srv/weft\n"
        "weft restore --accept-loss /lustre/weft\n"
        "weft restore --registry\n",
    .json =
        "{store, restored, refused, models, versions, removed, tags, packs, bytes,\n"
        " problems: [TEXT], mended: [TEXT]}\n",
    .interrupted = "there is no store; the same command goes on where this one was",
};

class RestoreCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.argument("ORIGIN", origin_, OptionSet::Need::optional, "the directory that weftd has as its origin");
    options.flag("--accept-loss", accept_loss_, "go on without what is damaged or missing there");
    options.flag("--registry", registry_, "the cluster's registry, through the daemon");
  }

  Status check_usage() const override {
    if (registry_ && !origin_.empty()) return Error{Errc::invalid, "--registry: the daemon knows the ORIGIN"};
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
      return context.print("{}: that is lost; `weft restore --accept-loss` goes on without it\n",
                           registry_ ? "registry not restored" : "no store made");
    if (context.quiet) return;
    if (registry_)
      return context.print("brought back: {} of {}, {} more removed, {}\n", count_of(report.versions, "version"),
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

std::unique_ptr<Command> make_restore_command() {
  return std::make_unique<RestoreCommand>();
}

}  // namespace weft
