#include "cli/commands/commands.h"
#include "cli/shared/catalog.h"
#include "cli/shared/writer.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "rm",
    .summary = "remove versions",
    .description =
        "A removed version is gone from every listing and mount at once, its tags with\n"
        "it; files that are open stay readable. Its number is never used again, `weft\n"
        "log` still shows it, and `weft gc` gives back the space that no other version\n"
        "needs.\n",
    .examples =
        "weft rm bert@1\n"
        "weft rm bert@1 bert@experiment\n"
        "weft rm --all bert\n",
    .json = "{removed: [{model, version}]}\n",
    .interrupted = "",
};

class RmCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.arguments("MODEL@V", specs_, "a version: a number or a tag; with --all a model");
    options.flag("--all", all_, "remove all versions of MODEL");
  }

  Status check_usage() const override {
    for (const std::string& spec : specs_) {
      bool version = spec.find('@') != std::string::npos;
      if (all_ && version) return Error{Errc::invalid, fmt::format("--all: expected a model, got {}", spec)};
      if (!all_ && (!version || spec.ends_with('@')))
        return Error{Errc::invalid, fmt::format("expected MODEL@V, got {}; --all removes every version", spec)};
    }
    return {};
  }

  Result<int> run(Context& context) override {
    Said said(context);
    WEFT_TRY(const auto writer, context.writer());
    WEFT_CHECK(writer->remove({specs_, all_}, [&](const VersionName& version) { said.removed(version); }));
    said.end();
    return kExitDone;
  }

 private:
  // What was removed, said as it happens.
  class Said {
   public:
    explicit Said(const Context& context) : context_(context) { json_.begin_object().key("removed").begin_array(); }
    void removed(const VersionName& version) {
      json_.begin_object();
      write_fields(json_, version);
      json_.end_object();
      if (!context_.json) context_.print("removed {}\n", spec_of(version.model, version.number));
    }
    void end() {
      json_.end_array().end_object();
      if (context_.json) context_.print_json(json_);
      if (!context_.json && !context_.quiet) context_.print("`weft gc` gives its space back\n");
    }

   private:
    const Context& context_;
    JsonWriter json_;
  };

  std::vector<std::string> specs_;
  bool all_ = false;
};

}  // namespace

std::unique_ptr<Command> make_rm_command() {
  return std::make_unique<RmCommand>();
}

}  // namespace weft
