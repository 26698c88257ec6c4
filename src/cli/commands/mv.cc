#include "cli/commands/commands.h"
#include "cli/shared/writer.h"

namespace weft {
namespace {

constexpr CommandInfo kMvInfo = {
    .name = "mv",
    .summary = "rename a model or a data set",
    .description =
        "The versions keep their numbers, tags, messages, metrics and times, and every\n"
        "version that came from them names its parent by the new name. Every reader\n"
        "sees the new name at once, and open files stay readable.\n"
        "\n"
        "Afterwards MODEL is free for another model, whose numbers continue after the\n"
        "last one that MODEL had. NAME must be a name that no other model has had. A\n"
        "model can get a former name back. In a cluster no model can be renamed.\n",
    .examples = "weft mv bert-test org/bert\n",
    .json = "{model, to}\n",
};

class MvCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL", request_.model, OptionSet::Need::required, "the model or the data set");
    options.argument("NAME", request_.to, OptionSet::Need::required, "its new name");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto writer, context.writer());
    WEFT_CHECK(writer->rename(request_));
    if (!context.json) {
      context.print("{} -> {}\n", request_.model, request_.to);
      return kExitDone;
    }
    JsonWriter json;
    json.begin_object().member("model", request_.model).member("to", request_.to).end_object();
    context.print_json(json);
    return kExitDone;
  }

 private:
  RenameRequest request_;
};

}  // namespace

constinit const CommandEntry kMvCommand = {kMvInfo, make<MvCommand>};

}  // namespace weft
