#include <string>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/table.h"
#include "cli/shared/writer.h"
#include "weft/names.h"

namespace weft {
namespace {

constexpr CommandInfo kUndeleteInfo = {
    .name = "undelete",
    .summary = "bring removed versions back",
    .description =
        "A removed version appears again in every listing and mount, with its number,\n"
        "message, metrics and parents. Its tags come back too, but for those that lead to\n"
        "another version by now. If gc has freed the version's content, or bytes of it\n"
        "are lost, the version stays removed, and the command says which. It stops at the\n"
        "first version that it cannot bring back. `weft ls --removed` lists the versions\n"
        "whose content is still there.\n"
        "\n"
        "In a cluster the content must be on this node, which must have published the\n"
        "version, or at the origin.\n",
    .examples =
        "weft undelete bert@1\n"
        "weft undelete bert@1 bert@2\n",
    .json = "{undeleted: [{model, version, tags, moved: [{tag, version}]}]}\n",
};

class UndeleteCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.arguments("MODEL@V", request_.specs, OptionSet::Need::required, "a removed version, by its number");
  }

  Status check_usage() override {
    for (const std::string& spec : request_.specs) {
      const auto at = spec.find('@');
      if (at == std::string::npos || !parse_u64(std::string_view(spec).substr(at + 1)))
        return Error{Errc::invalid, fmt::format("expected MODEL@NUMBER, got {}", printable(spec))};
    }
    return {};
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto writer, context.writer());
    JsonWriter json;
    json.begin_object().key("undeleted").begin_array();
    WEFT_CHECK(writer->undelete(request_, [&](const UndeletedVersion& version) {
      json.raw(encode_fields(version));
      if (!context.json) print(context, version);
    }));
    if (context.json) context.print_json(json.end_array().end_object());
    return kExitDone;
  }

 private:
  static void print(const Context& context, const UndeletedVersion& version) {
    context.print("undeleted {}{}\n", spec_of(version.model, version.number),
                  version.tags.empty() ? "" : ", with its tags: " + joined(version.tags, ", "));
    for (const TagTarget& moved : version.moved)
      context.print("tag {} leads to {} now, and stays there\n", moved.name, spec_of(version.model, moved.number));
  }

  UndeleteRequest request_;
};

}  // namespace

constinit const CommandEntry kUndeleteCommand = {kUndeleteInfo, make<UndeleteCommand>};

}  // namespace weft
