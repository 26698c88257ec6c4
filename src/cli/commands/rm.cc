#include "cli/commands/commands.h"
#include "cli/shared/writer.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "rm",
    .summary = "remove versions",
    .description =
        "A removed version and its tags disappear at once from every listing and mount.\n"
        "Open files stay readable. The number is never used again, and `weft log` still\n"
        "shows the version. `weft gc` frees the space that no other version needs.\n",
    .examples =
        "weft rm bert@1\n"
        "weft rm bert@1 bert@experiment\n"
        "weft rm --all bert\n",
    .json = "{removed: [{model, version}]}\n",
};

class RmCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.arguments("MODEL@V", request_.specs, OptionSet::Need::required,
                      "a version: a number or a tag; with --all a model");
    options.flag("--all", request_.all, "remove all versions of MODEL");
  }

  Status check_usage() override {
    for (const std::string& spec : request_.specs) {
      bool version = spec.find('@') != std::string::npos;
      if (request_.all && version) return Error{Errc::invalid, fmt::format("--all: expected a model, got {}", spec)};
      if (!request_.all && (!version || spec.ends_with('@')))
        return Error{Errc::invalid, fmt::format("expected MODEL@V, got {}; --all removes every version", spec)};
    }
    return {};
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto writer, context.writer());
    JsonWriter json;
    json.begin_object().key("removed").begin_array();
    WEFT_CHECK(writer->remove(request_, [&](const VersionName& version) {
      json.raw(encode_fields(version));
      if (!context.json) context.print("removed {}\n", spec_of(version.model, version.number));
    }));
    if (context.json) context.print_json(json.end_array().end_object());
    if (!context.json && !context.quiet) context.print("`weft gc` gives its space back\n");
    return kExitDone;
  }

 private:
  RemoveRequest request_;
};

}  // namespace

constinit const CommandEntry kRmCommand = {kInfo, make<RmCommand>};

}  // namespace weft
