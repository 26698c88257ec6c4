#include <algorithm>

#include "base/text.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/listing_output.h"
#include "cli/shared/table.h"
#include "cli/shared/writer.h"
#include "cli/transfer/transfer_commands.h"
#include "diskformat/bundle_list.h"
#include "weft/programs/bundle.h"

namespace weft {
namespace {

constexpr CommandInfo kCreateInfo = {
    .name = "bundle create",
    .summary = "write versions into a file that another store imports",
    .description =
        "Writes versions into the new file BUNDLE, with their numbers, tags, messages,\n"
        "metrics, times and parents, and with all their bytes, also those that they share\n"
        "with other versions. `weft bundle import` takes them over in another store. The\n"
        "file is a tar; `-` is standard output. Every byte is verified while it is read.\n"
        "BUNDLE appears when it is complete and on the disk.\n"
        "\n"
        "Without @V, MODEL is its latest version. With --all it is all its versions, and\n"
        "with --tags those that have a tag. --all and --tags without a MODEL mean all\n"
        "models: `weft bundle create --all BUNDLE` is the backup of a store. --since\n"
        "leaves out bytes that an earlier bundle of this store has; a store needs that\n"
        "bundle first.\n",
    .examples =
        "weft bundle create bert.weft bert@2 bert@3\n"
        "weft bundle create --all /backup/monday.weft\n"
        "weft bundle create --all --since /backup/monday.weft /backup/tuesday.weft\n"
        "weft bundle create - bert@2 | ssh host 'cat > bert.weft'\n",
    .json = "{bundle, path, versions, tags, blobs, bytes}\n",
    .interrupted = "there is no bundle, and the store is as it was",
};

class CreateCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("BUNDLE", path_, OptionSet::Need::required, "the new file or directory", {kOfferFiles});
    options.arguments("MODEL[@V]", options_.specs, OptionSet::Need::optional, "a version, or a model");
    options.flag("--all", options_.all, "take all versions");
    options.flag("--tags", options_.tagged, "take all versions that have a tag");
    options.value("--since", "EARLIER", options_.since, "leave out bytes that this bundle has", {kOfferFiles});
    options.flag("--directory", options_.directory, "make a directory of files");
  }

  Status check_usage() override {
    const bool several = options_.all || options_.tagged;
    if (options_.specs.empty() && !several) return Error{Errc::invalid, "expected MODEL[@V], --all or --tags"};
    if (options_.all && options_.tagged) return Error{Errc::invalid, "--all and --tags: expected only one of them"};
    if (path_ == "-" && options_.directory) return Error{Errc::invalid, "--directory: expected a BUNDLE other than -"};
    return {};
  }

  Result<int> run(Context& context) override {
    if (path_ == "-" && context.json) return Error{Errc::invalid, "--json: expected a BUNDLE other than -"};
    WEFT_TRY(const auto store, context.open_to_read());
    auto report = [&] {
      ProgressBar bar = context.progress();
      return create_bundle(*store, context.resolver(), options_, path_, bar);
    }();
    if (!report.ok()) return std::move(report).error();
    if (context.json) {
      JsonWriter json;
      json.begin_object().member("bundle", report->uuid).member("path", path_).member("versions", report->versions);
      json.member("tags", report->tags).member("blobs", report->blobs).member("bytes", report->bytes);
      context.print_json(json.end_object());
    } else if (path_ != "-" && !context.quiet) {
      context.print("{}: {}, {}, {}\n", path_, count_of(report->versions, "version"), count_of(report->tags, "tag"),
                    human_bytes(report->bytes));
    }
    return kExitDone;
  }

 private:
  std::string path_;
  BundleOptions options_;
};

constexpr CommandInfo kImportInfo = {
    .name = "bundle import",
    .summary = "take versions of a bundle over",
    .description =
        "Takes all versions of BUNDLE over, or those of the given models, with their\n"
        "numbers, tags, messages, metrics, times and parents. Creates the store if there\n"
        "is none. A version that the store has already is passed over. If the store has\n"
        "another content under a version's name, nothing is imported. A tag that leads to\n"
        "another version in the store stays, unless --move-tags is given.\n"
        "\n"
        "The whole bundle is copied into the store and verified before the first version\n"
        "appears, so a damaged bundle changes nothing. Then the versions appear one by\n"
        "one, parents first, and the tags follow. After an interrupt the same command\n"
        "continues.\n",
    .examples =
        "weft bundle import bert.weft\n"
        "weft bundle import --dry-run bert.weft bert@3\n"
        "weft bundle import /backup/monday.weft --store /srv/weft\n",
    .json = "{bundle, versions, imported, known, removed, tags, bytes, left: [TEXT]}\n",
    .interrupted = "versions that were imported stay; the same command continues",
};

class ImportCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("BUNDLE", path_, OptionSet::Need::required, "the file or the directory", {kOfferFiles});
    options.arguments("MODEL[@V]", options_.specs, OptionSet::Need::optional,
                      "a version of the bundle, or a model for all its versions there");
    options.flag("--dry-run", options_.dry_run, "verify and compare only");
    options.flag("--move-tags", options_.move_tags, "move tags that lead to other versions");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const BundleFiles files, bundle_at(path_));
    WEFT_TRY(const auto writer, context.writer());
    WEFT_TRY(const BundleImportReport report, writer->import_bundle(files, options_));
    if (context.json) {
      context.print_json(encode_fields(report));
      return kExitDone;
    }
    for (const std::string& line : report.left) context.note(line);
    if (!context.quiet)
      context.print("{}: {} {}, {} known, {} {}; {} verified\n", path_, count_of(report.imported, "version"),
                    options_.dry_run ? "to import" : "imported", report.known, count_of(report.tags, "tag"),
                    options_.dry_run ? "to set" : "set", human_bytes(report.bytes));
    return kExitDone;
  }

 private:
  std::string path_;
  BundleImportOptions options_;
};

constexpr CommandInfo kListInfo = {
    .name = "bundle list",
    .summary = "list the versions of a bundle",
    .description =
        "Lists the versions of BUNDLE and their tags. It reads only the list at the\n"
        "beginning of the bundle, and needs no store. `weft bundle import --dry-run`\n"
        "verifies the bytes too.\n",
    .examples = "weft bundle list bert.weft\n",
    .json =
        "{bundle, since, created, created_ns, versions: [{model, version, time, time_ns,\n"
        " bytes, new_bytes, message, tags: [TAG]}]}\n",
};

class ListCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("BUNDLE", path_, OptionSet::Need::required, "the file or the directory", {kOfferFiles});
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const BundleFiles files, bundle_at(path_));
    WEFT_TRY(const auto list, read_bundle_list(files));
    ListingOutput out(
        context, false,
        {{"VERSION"}, {"PUBLISHED"}, {"SIZE", Align::right}, {"IN BUNDLE", Align::right}, {"TAGS"}, {"MESSAGE"}});
    out.json.begin_object().member("bundle", list->uuid).key("since");
    list->since.empty() ? out.json.null() : out.json.value(list->since);
    out.json.member("created", utc_time(list->created_ns)).member("created_ns", list->created_ns);
    out.json.key("versions").begin_array();
    for (const BundledVersion& version : list->versions)
      if (!version.row.removed) add(out, *list, version);
    out.json.end_array().end_object();
    out.end();
    if (!context.json && !list->since.empty()) context.note("its import needs the bundle " + list->since + " first");
    return kExitDone;
  }

 private:
  static void add(ListingOutput& out, const BundleList& list, const BundledVersion& version) {
    const VersionRow& row = version.row;
    std::vector<std::string> tags;
    for (const MirroredTag& tag : list.tags)
      if (tag.model == row.model_name && tag.number == row.number) tags.push_back(tag.name);
    std::uint64_t bytes = 0;
    for (const ContentId& id : version.blobs) bytes += id.length;
    out.table.row({spec_of(row), local_time(row.time_ns), human_bytes(row.logical_bytes), human_bytes(bytes),
                   joined(tags, " "), row.message.substr(0, row.message.find('\n'))});
    out.json.begin_object().member("model", row.model_name).member("version", row.number);
    out.json.member("time", utc_time(row.time_ns)).member("time_ns", row.time_ns);
    out.json.member("bytes", row.logical_bytes).member("new_bytes", bytes).member("message", row.message);
    out.json.key("tags").begin_array();
    for (const std::string& tag : tags) out.json.value(tag);
    out.json.end_array().end_object();
  }

  std::string path_;
};

}  // namespace

constinit const CommandEntry kBundleCreateCommand = {kCreateInfo, make<CreateCommand>};
constinit const CommandEntry kBundleImportCommand = {kImportInfo, make<ImportCommand>};
constinit const CommandEntry kBundleListCommand = {kListInfo, make<ListCommand>};

}  // namespace weft
