#include "base/text.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "weft/origin.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "restore",
    .summary = "make a store again from an origin",
    .description =
        "Makes a store where --store or WEFT_STORE says, in a directory that is empty or\n"
        "not there, from a cluster's origin alone: when the registry and all nodes are\n"
        "gone, or to have a copy. Versions keep their numbers, times, parents, messages\n"
        "and metrics, tags are where they were last, removed versions stay removed. Every\n"
        "byte is verified while it is copied. What is damaged or missing at the origin is\n"
        "named, and the restore refuses; --accept-loss goes on without: a version that is\n"
        "not whole is then a removed one. The origin is only read. The store belongs to\n"
        "no cluster. Exit code 1 when something is wrong at the origin.\n",
    .examples =
        "weft restore /lustre/weft --store /srv/weft\n"
        "weft restore --accept-loss /lustre/weft\n",
    .json =
        "{store, restored, refused, models, versions, removed, tags, packs, bytes,\n"
        " problems: [TEXT], mended: [TEXT]}\n",
    .interrupted = "there is no store; the same command goes on where this one was",
};

class RestoreCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.argument("ORIGIN", origin_, OptionSet::Need::required, "the directory that weftd has as its origin");
    options.flag("--accept-loss", accept_loss_, "go on without what is damaged or missing there");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const RestoreReport report, restore(context));
    context.json ? print_json(context, report) : print_lines(context, report);
    if (report.problems.empty()) return kExitDone;
    context.note(fmt::format("{}: {}", printable(origin_), count_of(report.problems.size(), "problem")));
    return kExitFailed;
  }

 private:
  Result<RestoreReport> restore(const Context& context) const {
    ProgressBar bar = context.progress();
    return restore_store(origin_, context.store_path(), {accept_loss_, context.patience()}, bar);
  }

  static void print_json(const Context& context, const RestoreReport& report) {
    JsonWriter json;
    json.begin_object().member("store", context.store_path()).member("restored", !report.refused);
    json.member("refused", report.refused).member("models", report.models).member("versions", report.versions);
    json.member("removed", report.removed).member("tags", report.tags).member("packs", report.packs);
    json.member("bytes", report.bytes);
    list(json, "problems", report.problems);
    list(json, "mended", report.mended);
    json.end_object();
    context.print_json(json);
  }

  static void list(JsonWriter& json, std::string_view key, const std::vector<std::string>& lines) {
    json.key(key).begin_array();
    for (const std::string& line : lines) json.value(line);
    json.end_array();
  }

  static void print_lines(const Context& context, const RestoreReport& report) {
    for (const std::string& problem : report.problems) context.print("{}\n", problem);
    for (const std::string& line : report.mended) context.print("mended: {}\n", line);
    if (report.refused)
      return context.print("no store made: that is lost; `weft restore --accept-loss` goes on without it\n");
    if (context.quiet) return;
    context.print("restored: {} of {}, {} more removed, {}; {} verified, in {}\n", count_of(report.versions, "version"),
                  count_of(report.models, "model"), report.removed, count_of(report.tags, "tag"),
                  human_bytes(report.bytes), context.store_path());
  }

  std::string origin_;
  bool accept_loss_ = false;
};

}  // namespace

std::unique_ptr<Command> make_restore_command() {
  return std::make_unique<RestoreCommand>();
}

}  // namespace weft
