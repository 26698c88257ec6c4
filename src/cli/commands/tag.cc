#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/catalog.h"
#include "cli/shared/listing_output.h"
#include "cli/shared/table.h"
#include "cli/shared/writer.h"
#include "weft/names.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr CommandInfo kTagInfo = {
    .name = "tag",
    .summary = "set, move, delete or list the tags of a model",
    .description =
        "`weft tag MODEL[@V] TAG` sets TAG on that version. If another version has TAG,\n"
        "TAG moves. Every reader sees the change at once. `weft tag --delete MODEL TAG`\n"
        "deletes the tag. `weft tag MODEL` lists the tags. `weft tag --log MODEL [TAG]`\n"
        "lists the changes of all tags, or of one, newest first: when, from which version\n"
        "to which, by which user, and on which node of a cluster.\n"
        "\n"
        "`weft tag --protect MODEL@TAG` makes you the owner of the tag. Only its owner, root\n"
        "and weftd's user can then move, delete or unprotect it, remove the version that\n"
        "has it, or rename the model. Without a weftd, a user who may write to the store\n"
        "may do all of this.\n"
        "\n"
        "A tag starts with a letter or a digit, continues with letters, digits, '.', '_',\n"
        "'+' and '-', and is neither a number nor \"latest\" nor \"versions.tsv\".\n",
    .examples =
        "weft tag bert@2 production\n"
        "weft tag --delete bert production\n"
        "weft tag bert\n"
        "weft tag --log bert production\n"
        "weft tag --protect bert@production\n",
    .json =
        "{model, tags: [{tag, version, time, time_ns, owner}]} (owner is null if the tag is\n"
        "not protected)\n"
        "after a change: {model, tag, version} (version is null if the tag was deleted)\n"
        "with --log: {model, changes: [{tag, before, version, time, time_ns, user, node}]}\n"
        "(before is null if the tag was not set)\n",
};

void member_if(JsonWriter& json, std::string_view key, std::uint64_t number) {
  json.key(key);
  number != 0 ? json.value(number) : json.null();
}

void member_if(JsonWriter& json, std::string_view key, const std::string& text) {
  json.key(key);
  text.empty() ? json.null() : json.value(text);
}

std::string number_text(std::uint64_t number) {
  return number != 0 ? std::to_string(number) : "-";
}

class TagCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", request_.spec, OptionSet::Need::required, "the model, or the version to tag");
    options.argument("TAG", request_.tag, OptionSet::Need::optional, "the tag to set, move or delete");
    options.flag("-d,--delete", request_.gone, "delete TAG");
    options.flag("--protect", request_.protect, "protect the tag MODEL@TAG from changes by other users");
    options.flag("--unprotect", request_.unprotect, "end the protection of the tag MODEL@TAG");
    options.flag("--log", log_, "list the changes of the tags, or of TAG, newest first");
    options.flag("--names", names_, "list the tags as MODEL@TAG, one on each line, as other commands accept them");
  }

  Status check_usage() override {
    if (request_.protect || request_.unprotect) return check_protection();
    bool version = request_.spec.find('@') != std::string::npos;
    if (request_.gone && request_.tag.empty()) return Error{Errc::invalid, "--delete: expected MODEL TAG, got no TAG"};
    if (request_.gone && version) return Error{Errc::invalid, "--delete: expected MODEL TAG, got a version"};
    if (log_ && (request_.gone || names_)) return Error{Errc::invalid, "--log: expected neither --delete nor --names"};
    if (log_ && version) return Error{Errc::invalid, "--log: expected MODEL [TAG], got a version"};
    if (names_ && !request_.tag.empty()) return Error{Errc::invalid, "--names: expected MODEL alone, got a TAG"};
    if (request_.tag.empty() && version) return Error{Errc::invalid, "expected a TAG for the version"};
    return {};
  }

  Result<int> run(Context& context) override {
    if (log_) return list_changes(context);
    if (request_.tag.empty()) return list(context);
    WEFT_TRY(const auto writer, context.writer());
    WEFT_TRY(const VersionName tagged, writer->tag(request_));
    context.json ? print_change(context, tagged) : print_line(context, tagged);
    return kExitDone;
  }

 private:
  // Splits MODEL@TAG.
  Status check_protection() {
    const auto at = request_.spec.find('@');
    const bool alone = request_.tag.empty() && !request_.gone && !log_ && !names_;
    if (at == std::string::npos || !alone || (request_.protect && request_.unprotect))
      return Error{Errc::invalid, fmt::format("{}: expected MODEL@TAG, and no other option",
                                              request_.protect ? "--protect" : "--unprotect")};
    request_.tag = request_.spec.substr(at + 1);
    request_.spec.resize(at);
    return check_tag_name(request_.tag);
  }

  void print_line(const Context& context, const VersionName& tagged) const {
    if (request_.gone) return context.print("{} of {} deleted\n", request_.tag, tagged.model);
    if (request_.protect || request_.unprotect)
      return context.print("{} of {} is {}\n", request_.tag, tagged.model,
                           request_.protect ? "protected" : "not protected");
    context.print("{} -> {}\n", request_.tag, spec_of(tagged.model, tagged.number));
  }

  void print_change(const Context& context, const VersionName& tagged) const {
    JsonWriter json;
    json.begin_object().member("model", tagged.model).member("tag", request_.tag).key("version");
    request_.gone ? json.null() : json.value(tagged.number);
    context.print_json(json.end_object());
  }

  Result<int> list(const Context& context) const {
    WEFT_TRY(auto store, context.open_to_read());
    WEFT_TRY(const ModelRow model, model_of(*store, request_.spec));
    ListingOutput out(context, names_, {{"TAG"}, {"VERSION", Align::right}, {"SET"}, {"OWNER"}});
    out.json.begin_object().member("model", request_.spec).key("tags").begin_array();
    WEFT_CHECK(each_page(*store, list_tags(model.id), [&](const std::vector<TagRow>& tags) -> Status {
      for (const TagRow& tag : tags) {
        out.json.begin_object().member("tag", tag.name).member("version", tag.number);
        out.json.member("time", utc_time(tag.time_ns)).member("time_ns", tag.time_ns);
        member_if(out.json, "owner", tag.owner);
        out.json.end_object();
        out.names += fmt::format("{}@{}\n", request_.spec, tag.name);
        out.table.row(
            {tag.name, std::to_string(tag.number), local_time(tag.time_ns), tag.owner.empty() ? "-" : tag.owner});
      }
      out.print();
      return {};
    }));
    out.json.end_array().end_object();
    out.end();
    return kExitDone;
  }

  Result<int> list_changes(const Context& context) const {
    WEFT_TRY(auto store, context.open_to_read());
    WEFT_TRY(const ModelRow model, model_of(*store, request_.spec));
    ListingOutput out(context, false, {{"CHANGED"}, {"TAG"}, {"FROM", Align::right}, {"TO", Align::right}, {"BY"}});
    out.json.begin_object().member("model", request_.spec).key("changes").begin_array();
    bool any = false;
    WEFT_CHECK(each_page(*store, list_tag_moves(model.id), [&](const std::vector<TagMove>& moves) -> Status {
      for (const TagMove& move : moves) {
        if (!request_.tag.empty() && move.name != request_.tag) continue;
        any = true;
        out.table.row({local_time(move.time_ns), move.name, number_text(move.before), number_text(move.number),
                       author_text(move.by)});
        write_change(out.json, move);
      }
      out.print();
      return {};
    }));
    out.json.end_array().end_object();
    out.end();
    if (!any)
      context.note(fmt::format("{}: no change of {} is known", request_.spec,
                               request_.tag.empty() ? "a tag" : "tag " + printable(request_.tag)));
    return kExitDone;
  }

  static void write_change(JsonWriter& json, const TagMove& move) {
    json.begin_object().member("tag", move.name);
    member_if(json, "before", move.before);
    member_if(json, "version", move.number);
    json.member("time", utc_time(move.time_ns)).member("time_ns", move.time_ns);
    member_if(json, "user", move.by.user);
    member_if(json, "node", move.by.node);
    json.end_object();
  }

  TagRequest request_;
  bool names_ = false;
  bool log_ = false;
};

}  // namespace

constinit const CommandEntry kTagCommand = {kTagInfo, make<TagCommand>};

}  // namespace weft
