#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"

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
    options.argument("MODEL[@V]", spec_, OptionSet::Need::optional, "the version; all of this node by default");
    options.flag("--evictable", evictable_, "make the bytes cache here once the origin has them");
    options.flag("--new-origin", new_origin_, "take the directory for the origin, whatever was before");
  }

  Result<int> run(Context& context) override {
    JsonWriter body;
    body.begin_object();
    if (!spec_.empty()) body.member("spec", spec_);
    body.member("evictable", evictable_).member("new_origin", new_origin_);
    WEFT_TRY(const JsonValue answer, ask_with_progress(context, "stage_out", body.end_object().text()));
    JsonWriter json;
    json.begin_object().member("staged", true);
    if (evictable_)
      for (const std::string_view name : {"packs", "disk_bytes", "kept_packs", "kept_disk_bytes"}) {
        WEFT_TRY(const std::uint64_t value, answer.number(name));
        json.member(name, value);
      }
    if (context.json)
      context.print_json(json.end_object());
    else if (!context.quiet)
      context.print("{} at the origin{}\n", spec_.empty() ? "everything is" : spec_ + " is", text_of(answer));
    return kExitDone;
  }

 private:
  std::string text_of(const JsonValue& answer) const {
    if (!evictable_) return "";
    const std::uint64_t kept = *answer.number("kept_packs");
    return fmt::format("; {} in {} {} cache now{}", human_bytes(*answer.number("disk_bytes")),
                       count_of(*answer.number("packs"), "pack"), *answer.number("packs") == 1 ? "is" : "are",
                       kept == 0 ? "" : fmt::format(", {} stay", count_of(kept, "pack")));
  }

  std::string spec_;
  bool evictable_ = false;
  bool new_origin_ = false;
};

}  // namespace

std::unique_ptr<Command> make_stage_out_command() {
  return std::make_unique<StageOutCommand>();
}

}  // namespace weft
