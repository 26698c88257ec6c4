#include <algorithm>

#include "cli/catalog.h"
#include "cli/commands.h"
#include "cli/table.h"

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
    WEFT_TRY(auto store, context.open_to_write());
    WEFT_TRY(auto rows, all_ ? versions_of_models(*store) : versions_named(*store));
    JsonWriter json;
    json.begin_object().key("removed").begin_array();
    for (const VersionRow& row : rows) {
      WEFT_CHECK(store->remove_version(row.model_name, row.number));
      json.begin_object().member("model", row.model_name).member("version", row.number).end_object();
      if (!context.json) context.print("removed {}\n", spec_of(row));
    }
    json.end_array().end_object();
    if (context.json) context.print_json(json);
    if (!context.json && !context.quiet) context.print("`weft gc` gives its space back\n");
    return kExitDone;
  }

 private:
  using Rows = std::vector<VersionRow>;

  static void add(Rows& rows, const VersionRow& row) {
    auto same = [&](const VersionRow& other) { return other.id == row.id; };
    if (std::none_of(rows.begin(), rows.end(), same)) rows.push_back(row);
  }

  // All are found before the first is removed.
  Result<Rows> versions_named(Store& store) const {
    Rows rows;
    for (const std::string& spec : specs_) {
      WEFT_TRY(VersionEntry version, version_entry(store, spec));
      add(rows, version.row);
    }
    return rows;
  }

  Result<Rows> versions_of_models(Store& store) const {
    Rows rows;
    for (const std::string& spec : specs_) {
      WEFT_CHECK(version_entry(store, spec));  // that there is one
      WEFT_TRY(ModelEntry model, model_entry(store, spec));
      for (const VersionEntry& version : model.versions)
        if (!version.row.removed) add(rows, version.row);
    }
    return rows;
  }

  std::vector<std::string> specs_;
  bool all_ = false;
};

}  // namespace

std::unique_ptr<Command> make_rm_command() {
  return std::make_unique<RmCommand>();
}

}  // namespace weft
