#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/catalog.h"
#include "cli/shared/listing_output.h"
#include "cli/shared/table.h"
#include "weft/dtype.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr CommandInfo kLsInfo = {
    .name = "ls",
    .summary = "list models and data sets, their versions, or the files of a version",
    .description =
        "Without an argument, lists the models and data sets. With MODEL, lists its\n"
        "versions, newest last. If the argument is the first part of names (org for\n"
        "org/bert), lists the models below it. With MODEL@V, lists the files of that\n"
        "version, and with --tensors their tensors. MODEL@latest is the newest version.\n"
        "If a version has many tags, its line shows the first ones and the number of the\n"
        "others. --json has them all.\n"
        "\n"
        "With --removed, lists the removed versions whose content gc has not freed, of\n"
        "MODEL or of all models. `weft undelete` brings them back.\n",
    .examples =
        "weft ls\n"
        "weft ls bert\n"
        "weft ls bert@latest --tensors\n"
        "weft ls bert --names | xargs -n 1 weft info\n"
        "weft ls --removed\n",
    .json =
        "{models: [{model, kind, latest, versions, logical_bytes, time, time_ns, tags}],\n"
        " complete}\n"
        "{model, versions: [VERSION], complete}; VERSION is as in `weft log --json`\n"
        "{model, version, files: [{path, bytes, format, tensors}]}; tensors is a number,\n"
        "or [{name, dtype, shape, bytes}] with --tensors\n"
        "{removed: [{model, version, removed, removed_ns, logical_bytes, tags, message}]}\n"
        "with --removed; tags are those that the version had\n",
};

std::string dtype_text(const Tensor& tensor) {
  const DTypeInfo* info = dtype_info(tensor.dtype);
  return info == nullptr ? "?" : std::string(info->name);
}

class LsCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", spec_, OptionSet::Need::optional, "the model or the version to list");
    options.flag("-l,--tensors", tensors_, "also list the tensors of each file");
    options.flag("--removed", removed_, "list removed versions that are still complete");
    options.flag("--names", names_, "print only names, one on each line, as other commands accept them");
  }

  Status check_usage() override {
    if (removed_ && (tensors_ || spec_.find('@') != std::string::npos))
      return Error{Errc::invalid, "--removed: expected a model or nothing, and no --tensors"};
    return {};
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(auto store, context.open_to_read());
    if (removed_) return list_removed(context, *store);
    if (spec_.find('@') != std::string::npos) return list_files(context, *store);
    // The daemon is asked before the list is read: an answer afterwards says nothing about the rows that were read.
    const std::string_view missing = why_incomplete(context, *store);
    WEFT_TRY(const std::optional<ModelRow> model, named_model(*store));
    const bool is_model = model && model->latest != 0;
    WEFT_CHECK(is_model ? list_versions(context, *store, *model, missing) : list_models(context, *store, missing));
    if (!missing.empty()) context.note(missing);
    return kExitDone;
  }

 private:
  Result<std::optional<ModelRow>> named_model(Store& store) const {
    if (spec_.empty()) return std::optional<ModelRow>();
    WEFT_TRY(const auto snapshot, store.snapshot());
    auto row = snapshot->model(spec_);
    if (!row.ok() && row.error().code == Errc::not_found) return std::optional<ModelRow>();
    if (!row.ok()) return std::move(row).error();
    return std::optional(std::move(*row));
  }

  // Lists all models, or those whose names begin with the argument.
  Status list_models(const Context& context, Store& store, std::string_view missing) const {
    ListingOutput out(context, names_,
                      {{"MODEL"},
                       {"KIND"},
                       {"LATEST", Align::right},
                       {"VERSIONS", Align::right},
                       {"SIZE", Align::right},
                       {"PUBLISHED"},
                       {"TAGS"}});
    out.json.begin_object().key("models").begin_array();
    bool any = false;
    const auto add_page = [&](const std::vector<ModelRow>& models) -> Status {
      Renewed renewed(store);
      for (const ModelRow& model : models) {
        if (model.latest == 0) continue;
        any = true;
        WEFT_CHECK(add_model(out, store, renewed, model));
      }
      renewed.end();
      if (any) out.print();
      return {};
    };
    WEFT_CHECK(each_page(store, weft::list_models(spec_.empty() ? "" : spec_ + "/"), add_page));
    if (!any && !spec_.empty()) WEFT_CHECK(version_of(store, spec_));  // its error message lists the models
    end(out, missing);
    return {};
  }

  static Status add_model(ListingOutput& out, Store& store, Renewed& renewed, const ModelRow& model) {
    if (out.form() == ListingOutput::Form::names) {
      out.names += model.name + "\n";
      return {};
    }
    WEFT_TRY(Snapshot * now, renewed.get());
    WEFT_TRY(const VersionRow latest, now->version(model.id, model.latest));
    if (out.form() == ListingOutput::Form::json) {
      renewed.end();
      return add_model_json(out, store, model, latest);
    }
    std::vector<std::string> tags;
    if (model.tags != 0) {
      WEFT_TRY(now, renewed.get(limits::kRowsPerSnapshot));
      WEFT_TRY(const auto page, now->tags(model.id));
      for (const TagRow& tag : page.rows) tags.push_back(fmt::format("{}={}", tag.name, tag.number));
    }
    out.table.row({model.name, std::string(kind_name(model.kind)), std::to_string(latest.number),
                   std::to_string(model.live), human_bytes(latest.logical_bytes), local_time(latest.time_ns),
                   first_of(tags, model.tags)});
    return {};
  }

  static Status add_model_json(ListingOutput& out, Store& store, const ModelRow& model, const VersionRow& latest) {
    JsonWriter& json = out.json;
    json.begin_object()
        .member("model", model.name)
        .member("kind", kind_name(model.kind))
        .member("latest", latest.number);
    json.member("versions", model.live).member("logical_bytes", latest.logical_bytes);
    json.member("time", utc_time(latest.time_ns)).member("time_ns", latest.time_ns).key("tags").begin_object();
    if (model.tags != 0)
      WEFT_CHECK(each_page(store, list_tags(model.id), [&](const std::vector<TagRow>& tags) -> Status {
        for (const TagRow& tag : tags) json.member(tag.name, tag.number);
        out.print();
        return {};
      }));
    json.end_object().end_object();
    return {};
  }

  Status list_versions(const Context& context, Store& store, const ModelRow& model, std::string_view missing) const {
    ListingOutput out(
        context, names_,
        {{"VERSION", Align::right}, {"PUBLISHED"}, {"SIZE", Align::right}, {"TAGS"}, {"METRICS"}, {"MESSAGE"}});
    out.json.begin_object().member("model", model.name).key("versions").begin_array();
    const auto add_page = [&](std::vector<VersionRow> versions) -> Status {
      Renewed renewed(store);
      for (VersionRow& row : versions)
        if (!row.removed) WEFT_CHECK(add_version(out, renewed, model, std::move(row)));
      renewed.end();
      out.print();
      return {};
    };
    WEFT_CHECK(each_page(store, weft::list_versions(model.id), add_page));
    end(out, missing);
    return {};
  }

  Result<int> list_removed(const Context& context, Store& store) const {
    ListingOutput out(context, names_, {{"VERSION"}, {"REMOVED"}, {"SIZE", Align::right}, {"TAGS"}, {"MESSAGE"}});
    out.json.begin_object().key("removed").begin_array();
    for (VersionId from = 0;;) {
      WEFT_TRY(const std::vector<VersionRow> rows, unreaped_from(store, from));
      if (rows.empty()) break;
      for (const VersionRow& row : rows)
        if (is_named(row.model_name) && row.lost.empty()) add_removed(out, row);
      out.print();
      from = rows.back().id + 1;
    }
    out.json.end_array().end_object();
    out.end();
    return kExitDone;
  }

  static Result<std::vector<VersionRow>> unreaped_from(Store& store, VersionId from) {
    std::vector<VersionRow> rows;
    WEFT_TRY(const auto snapshot, store.snapshot());
    WEFT_TRY(const std::vector<VersionId> versions, snapshot->unreaped(from, limits::kRowsPerSnapshot / 2));
    for (const VersionId version : versions) {
      WEFT_TRY(VersionRow row, snapshot->version(version));
      rows.push_back(std::move(row));
    }
    return rows;
  }

  // True for the model of the argument, and for models below it.
  bool is_named(std::string_view model) const {
    return spec_.empty() || model == spec_ || model.starts_with(spec_ + "/");
  }

  static void add_removed(ListingOutput& out, const VersionRow& row) {
    if (out.form() == ListingOutput::Form::names) {
      out.names += spec_of(row) + "\n";
      return;
    }
    if (out.form() == ListingOutput::Form::table) {
      out.table.row({spec_of(row), local_time(row.removed_ns), human_bytes(row.logical_bytes),
                     first_of(row.removed_tags, row.removed_tags.size()), first_line(row.message)});
      return;
    }
    out.json.begin_object().member("model", row.model_name).member("version", row.number);
    out.json.member("removed", utc_time(row.removed_ns)).member("removed_ns", row.removed_ns);
    out.json.member("logical_bytes", row.logical_bytes).key("tags").begin_array();
    for (const std::string& tag : row.removed_tags) out.json.value(tag);
    out.json.end_array().member("message", row.message).end_object();
  }

  static void end(ListingOutput& out, std::string_view missing) {
    out.json.end_array().member("complete", missing.empty()).end_object();
    out.end();
  }

  static Status add_version(ListingOutput& out, Renewed& renewed, const ModelRow& model, VersionRow row) {
    if (out.form() == ListingOutput::Form::names) {
      out.names += spec_of(row) + "\n";
      return {};
    }
    std::vector<std::string> tags;
    if (model.tags != 0) {
      WEFT_TRY(tags, tags_of(renewed, row));
    }
    const bool latest = row.number == model.latest;
    if (out.form() == ListingOutput::Form::json) {
      WEFT_TRY(Snapshot * now, renewed.get());
      WEFT_TRY(const Durability durability, now->durability(row));
      write_version(out.json, {std::move(row), std::move(tags), latest, durability});
      return {};
    }
    if (latest) tags.insert(tags.begin(), "latest");
    out.table.row({std::to_string(row.number), local_time(row.time_ns), human_bytes(row.logical_bytes),
                   first_of(tags, tags.size()), metrics_text(row), first_line(row.message)});
    return {};
  }

  Result<int> list_files(const Context& context, Store& store) const {
    WEFT_TRY(const VersionRow version, version_of(store, spec_));
    WEFT_TRY(const Manifest manifest, load_manifest(store, context.resolver(), version));
    WEFT_TRY(const std::vector<File> files, listed_files(store, manifest));
    if (context.json) {
      context.print_json(files_json(version, files));
    } else if (names_) {
      for (const File& file : files) context.print("{}\n", file.path);
    } else {
      context.print("{}", tensors_ ? tensors_table(files).text() : files_table(files).text());
    }
    return kExitDone;
  }

  // Returns all published files, bundled small ones included, ordered by path.
  static Result<std::vector<File>> listed_files(Store& store, const Manifest& manifest) {
    const std::span<const File> published = published_files(manifest);
    std::vector<File> files(published.begin(), published.end());
    WEFT_CHECK(each_small_file(store, manifest, [&files](const SmallFile& small) -> Status {
      File& file = files.emplace_back();
      file.path = small.path;
      file.size = small.bytes.length;
      return {};
    }));
    if (files.size() != published.size()) std::ranges::sort(files, {}, &File::path);
    return files;
  }

  JsonWriter files_json(const VersionRow& row, std::span<const File> files) const {
    JsonWriter json;
    json.begin_object().member("model", row.model_name).member("version", row.number).key("files").begin_array();
    for (const File& file : files) {
      json.begin_object().member("path", file.path).member("bytes", file.size).member("format", file.format);
      json.key("tensors");
      if (tensors_)
        write_tensors(json, file);
      else
        json.value(std::uint64_t{file.tensors.size()});
      json.end_object();
    }
    json.end_array().end_object();
    return json;
  }

  static void write_tensors(JsonWriter& json, const File& file) {
    json.begin_array();
    for (const Tensor& tensor : file.tensors) {
      json.begin_object().member("name", tensor.name).member("dtype", dtype_text(tensor)).key("shape").begin_array();
      for (std::uint64_t dimension : tensor.shape) json.value(dimension);
      json.end_array().member("bytes", stored_bytes(file, tensor)).end_object();
    }
    json.end_array();
  }

  static TextTable files_table(std::span<const File> files) {
    TextTable table({{"SIZE", Align::right}, {"FORMAT"}, {"TENSORS", Align::right}, {"FILE"}});
    for (const File& file : files)
      table.row({human_bytes(file.size), file.format.empty() ? "-" : file.format,
                 file.format.empty() ? "-" : std::to_string(file.tensors.size()), file.path});
    return table;
  }

  static TextTable tensors_table(std::span<const File> files) {
    TextTable table({{"SIZE", Align::right}, {"DTYPE"}, {"SHAPE"}, {"NAME"}, {"FILE"}});
    for (const File& file : files) {
      if (file.tensors.empty()) table.row({human_bytes(file.size), "-", "-", "-", file.path});
      for (const Tensor& tensor : file.tensors)
        table.row({human_bytes(stored_bytes(file, tensor)), dtype_text(tensor), shape_text(tensor.shape),
                   printable(tensor.name), file.path});
    }
    return table;
  }

  std::string spec_;
  bool tensors_ = false;
  bool removed_ = false;
  bool names_ = false;
};

}  // namespace

constinit const CommandEntry kLsCommand = {kLsInfo, make<LsCommand>};

}  // namespace weft
