#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "daemon_api/control_messages.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "stage-out",
    .summary = "wait until what was published here is at the origin",
    .description =
        "The daemon takes what is published on its node to the origin, behind the\n"
        "publish. This waits until a version is there, before others, or all of them.\n"
        "With --evictable its bytes are cache on this node from then on, bounded by\n"
        "cache_max and evicted as others are; what the origin has not, or what a publish\n"
        "has just used, stays.\n"
        "\n"
        "A node knows its origin and refuses another, or none, in its place. With\n"
        "--new-origin it takes what is there, and all that it published goes there.\n",
    .examples =
        "weft stage-out llama@2\n"
        "weft stage-out --evictable\n",
    .json =
        "{staged: true}; with --evictable: {staged: true, packs, disk_bytes, kept_packs,\n"
        " kept_disk_bytes}\n",
    .interrupted = "the daemon goes on; what has become cache stays so",
};

class StageOutCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", request_.spec, OptionSet::Need::optional, "the version; all of this node by default");
    options.flag("--evictable", request_.evictable, "make the bytes cache here once the origin has them");
    options.flag("--new-origin", request_.new_origin, "take the directory for the origin, whatever was before");
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
    return fmt::format("; {} in {} {} cache now{}", human_bytes(report.disk_bytes), count_of(report.packs, "pack"),
                       report.packs == 1 ? "is" : "are",
                       report.kept_packs == 0 ? "" : fmt::format(", {} stay", count_of(report.kept_packs, "pack")));
  }

  StageOutRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_stage_out_command() {
  return std::make_unique<StageOutCommand>();
}

}  // namespace weft
