#include <optional>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/shared/options.h"
#include "cli/shared/writer.h"
#include "weft/names.h"

namespace weft {
namespace {

constexpr CommandInfo kNoteInfo = {
    .name = "note",
    .summary = "change the message and the metrics of a version",
    .description =
        "--message replaces the message of a published version; an empty TEXT deletes\n"
        "it. Each --metric adds a figure, or replaces the figure of that name, and the\n"
        "other figures stay. The files of the version do not change. Every reader sees\n"
        "the change at once. In a cluster, so do all nodes.\n",
    .examples =
        "weft note bert@2 --metric accuracy=0.94\n"
        "weft note bert@production -m 'in production since May'\n",
    .json = "{model, version}\n",
};

class NoteCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", request_.spec, OptionSet::Need::required, "the version");
    options.value("-m,--message", "TEXT", message_, "the new description of the version");
    options.values("--metric", "KEY=VALUE", metrics_, "a figure to keep with the version");
  }

  Status check_usage() override {
    WEFT_TRY(request_.change.metrics, parse_metrics(metrics_));
    request_.change.message = message_;
    if (message_ || !metrics_.empty()) return {};
    return Error{Errc::invalid, "expected --message or --metric, got neither"};
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto writer, context.writer());
    WEFT_TRY(const VersionName noted, writer->note(request_));
    if (!context.json) {
      context.print("noted at {}\n", spec_of(noted.model, noted.number));
      return kExitDone;
    }
    JsonWriter json;
    json.begin_object().member("model", noted.model).member("version", noted.number).end_object();
    context.print_json(json);
    return kExitDone;
  }

 private:
  NoteRequest request_;
  std::optional<std::string> message_;
  std::vector<std::string> metrics_;
};

}  // namespace

constinit const CommandEntry kNoteCommand = {kNoteInfo, make<NoteCommand>};

}  // namespace weft
