#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "daemon_api/control_messages.h"

namespace weft {
namespace {

constexpr CommandInfo kStageOutInfo = {
    .name = "stage-out",
    .summary = "wait until published versions are at the origin",
    .description =
        "The daemon copies what is published on its node to the cluster's origin in the\n"
        "background. stage-out waits until a version is there, which then goes before\n"
        "others, or until everything of this node is there.\n"
        "\n"
        "With --evictable, the bytes become a cache on this node: they count against\n"
        "cache_max and are evicted when the cache needs space. Bytes that the origin\n"
        "lacks, or that a publish has just used, stay.\n"
        "\n"
        "With --timeout, the command fails after this time, and the daemon goes on.\n"
        "\n"
        "A node records the id of its origin and refuses a directory with another origin\n"
        "or with none. With --new-origin the node accepts the configured directory as its\n"
        "new origin, and everything that was published on this node goes there.\n",
    .examples =
        "weft stage-out llama@2\n"
        "weft stage-out --evictable\n"
        "weft stage-out --timeout 30m\n",
    .json =
        "{staged: true}; with --evictable: {staged: true, packs, disk_bytes, kept_packs,\n"
        " kept_disk_bytes}\n",
    .interrupted = "the daemon continues; bytes that became a cache stay a cache",
};

class StageOutCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", request_.spec, OptionSet::Need::optional,
                     "the version; everything of this node by default");
    options.flag("--evictable", request_.evictable, "make the bytes a cache on this node once the origin has them");
    options.value("--timeout", "TIME", timeout_, "how long to wait, such as 90s, 30m or 2h (default: no limit)");
    options.flag("--new-origin", request_.new_origin, "accept the configured directory as the new origin");
  }

  Status check_usage() override {
    if (timeout_.empty()) return {};
    const auto seconds = parse_time(timeout_, kSecondsMax);
    if (!seconds || *seconds == 0)
      return Error{Errc::invalid,
                   fmt::format("--timeout: expected a time, such as 90s, 30m or 2h, got \"{}\"", printable(timeout_))};
    request_.seconds_max = *seconds;
    return {};
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto report, call_daemon<HandOverReport>(context, "stage_out", request_));
    if (context.json) {
      JsonWriter json;
      json.begin_object().member("staged", true);
      if (request_.evictable) write_fields(json, report);
      context.print_json(json.end_object());
    } else if (!context.quiet) {
      context.print("{} at the origin{}\n", request_.spec.empty() ? "everything is" : request_.spec + " is",
                    text_of(report));
    }
    return kExitDone;
  }

 private:
  std::string text_of(const HandOverReport& report) const {
    if (!request_.evictable) return "";
    return fmt::format("; {} in {} {} a cache now{}", human_bytes(report.disk_bytes), count_of(report.packs, "pack"),
                       report.packs == 1 ? "is" : "are",
                       report.kept_packs == 0 ? "" : fmt::format(", {} kept", count_of(report.kept_packs, "pack")));
  }

  static constexpr std::uint64_t kSecondsMax = 365ULL * 86'400;

  StageOutRequest request_;
  std::string timeout_;
};

}  // namespace

constinit const CommandEntry kStageOutCommand = {kStageOutInfo, make<StageOutCommand>};

}  // namespace weft
