#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/catalog.h"
#include "cli/shared/table.h"
#include "weft/manifest.h"
#include "weft/snapshot.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "tag",
    .summary = "set, move, delete or list the tags of a model",
    .description =
        "`weft tag MODEL[@V] TAG` makes TAG lead to that version, at once and for every\n"
        "reader, wherever it led before. `weft tag --delete MODEL TAG` deletes it.\n"
        "`weft tag MODEL` lists. A tag starts with a letter or digit, goes on with\n"
        "letters, digits, '.', '_', '+' and '-', and is neither a number nor \"latest\".\n",
    .examples =
        "weft tag bert@2 production\n"
        "weft tag --delete bert production\n"
        "weft tag bert\n",
    .json =
        "{model, tags: [{tag, version, time, time_ns}]}; after a change: {model, tag,\n"
        " version}, where version is null for a tag that was deleted\n",
    .interrupted = "",
};

class TagCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", spec_, OptionSet::Need::required, "the model, or the version to tag");
    options.argument("TAG", tag_, OptionSet::Need::optional, "the tag to set, move or delete");
    options.flag("-d,--delete", delete_, "delete TAG");
  }

  Status check_usage() const override {
    bool version = spec_.find('@') != std::string::npos;
    if (delete_ && tag_.empty()) return Error{Errc::invalid, "--delete: expected MODEL TAG, got no TAG"};
    if (delete_ && version) return Error{Errc::invalid, "--delete: expected MODEL TAG, got a version"};
    if (tag_.empty() && version) return Error{Errc::invalid, "expected a TAG for the version"};
    return {};
  }

  Result<int> run(Context& context) override {
    if (tag_.empty()) return list(context);
    WEFT_CHECK(check_tag_name(tag_));
    WEFT_TRY(const auto daemon, context.daemon());
    if (daemon) return change_through(*daemon, context);
    WEFT_TRY(auto store, context.open_to_write());
    return delete_ ? remove(context, *store) : set(context, *store);
  }

 private:
  Result<int> set(const Context& context, Store& store) const {
    WEFT_TRY(VersionEntry version, version_entry(store, spec_));
    const VersionRow& row = version.row;
    WEFT_CHECK(store.set_tag(row.model_name, tag_, row.number));
    return done(context, row.model_name, row.number);
  }

  Result<int> remove(const Context& context, Store& store) const {
    WEFT_CHECK(model_entry(store, spec_));
    WEFT_CHECK(store.set_tag(spec_, tag_, std::nullopt));
    return done(context, spec_, std::nullopt);
  }

  Result<int> change_through(control::Client& daemon, const Context& context) const {
    JsonWriter body;
    body.begin_object().member("spec", spec_).member("tag", tag_).member("delete", delete_).end_object();
    WEFT_TRY(const control::Answer answer, context.ask(daemon, "tag", body.text()));
    WEFT_TRY(const std::string model, answer.body.text("model"));
    if (delete_) return done(context, model, std::nullopt);
    WEFT_TRY(const std::uint64_t number, answer.body.number("version"));
    return done(context, model, number);
  }

  Result<int> done(const Context& context, const std::string& model, std::optional<std::uint64_t> number) const {
    if (context.json)
      print_change(context, model, number);
    else if (number)
      context.print("{} -> {}\n", tag_, spec_of(model, *number));
    else
      context.print("{} of {} deleted\n", tag_, model);
    return kExitDone;
  }

  void print_change(const Context& context, const std::string& model, std::optional<std::uint64_t> number) const {
    JsonWriter json;
    json.begin_object().member("model", model).member("tag", tag_).key("version");
    number ? json.value(*number) : json.null();
    json.end_object();
    context.print_json(json);
  }

  Result<int> list(const Context& context) const {
    WEFT_TRY(auto store, context.open_to_read());
    WEFT_TRY(auto tags, tags_of(*store));
    JsonWriter json;
    json.begin_object().member("model", spec_).key("tags").begin_array();
    TextTable table({{"TAG"}, {"VERSION", Align::right}, {"SET"}});
    for (const TagRow& tag : tags) {
      json.begin_object().member("tag", tag.name).member("version", tag.number);
      json.member("time", utc_time(tag.time_ns)).member("time_ns", tag.time_ns).end_object();
      table.row({tag.name, std::to_string(tag.number), short_time(tag.time_ns)});
    }
    json.end_array().end_object();
    if (context.json)
      context.print_json(json);
    else if (!table.empty())
      context.print("{}", table.text());
    return kExitDone;
  }

  Result<std::vector<TagRow>> tags_of(Store& store) const {
    WEFT_TRY(ModelEntry model, model_entry(store, spec_));
    WEFT_TRY(auto snapshot, store.snapshot());
    return snapshot->tags(model.row.id);
  }

  std::string spec_;
  std::string tag_;
  bool delete_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tag_command() {
  return std::make_unique<TagCommand>();
}

}  // namespace weft
