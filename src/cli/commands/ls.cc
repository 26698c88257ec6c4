#include <algorithm>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/catalog.h"
#include "cli/shared/table.h"
#include "weft/dtype.h"
#include "weft/node.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "ls",
    .summary = "list models, the versions of a model, or the files of a version",
    .description =
        "Without an argument, lists the models. With MODEL, lists its versions, newest\n"
        "last. If the argument is the first part of names (org for org/bert), lists the\n"
        "models below it. With MODEL@V, lists the files of that version, and with\n"
        "--tensors their tensors. MODEL@latest is the newest version.\n",
    .examples =
        "weft ls\n"
        "weft ls bert\n"
        "weft ls bert@latest --tensors\n"
        "weft ls bert --names | xargs -n 1 weft info\n",
    .json =
        "{models: [{model, latest, versions, logical_bytes, time, time_ns, tags}]}\n"
        "{model, versions: [VERSION]}; VERSION is as in `weft log --json`\n"
        "{model, version, files: [{path, bytes, format, tensors}]}; tensors is a number,\n"
        "or [{name, dtype, shape, bytes}] with --tensors\n",
    .interrupted = "",
};

std::string dtype_text(const Tensor& tensor) {
  const DTypeInfo* info = dtype_info(tensor.dtype);
  return info == nullptr ? "?" : std::string(info->name);
}

class LsCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", spec_, OptionSet::Need::optional, "the model or the version to list");
    options.flag("-l,--tensors", tensors_, "also list the tensors of each file");
    options.flag("--names", names_, "print only names, one on each line, as other commands accept them");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(auto store, context.open_to_read());
    if (spec_.find('@') != std::string::npos) return list_files(context, *store);
    WEFT_TRY(auto models, all_models(*store));
    std::erase_if(models, [](const ModelEntry& model) { return model.latest() == nullptr; });
    if (!spec_.empty()) {
      auto named = std::find_if(models.begin(), models.end(), [&](const ModelEntry& m) { return m.row.name == spec_; });
      if (named != models.end()) return list_versions(context, *named);
      std::erase_if(models, [&](const ModelEntry& model) { return !model.row.name.starts_with(spec_ + "/"); });
      if (models.empty()) WEFT_CHECK(version_entry(*store, spec_));  // says what there is
    }
    list_models(context, models);
    return kExitDone;
  }

 private:
  void list_models(const Context& context, const std::vector<ModelEntry>& models) const {
    if (names_) {
      for (const ModelEntry& model : models) context.print("{}\n", model.row.name);
    } else if (context.json) {
      context.print_json(models_json(models));
    } else if (!models.empty()) {
      context.print("{}", models_table(models).text());
    }
  }

  static JsonWriter models_json(const std::vector<ModelEntry>& models) {
    JsonWriter json;
    json.begin_object().key("models").begin_array();
    for (const ModelEntry& model : models) {
      const VersionRow& latest = model.latest()->row;
      json.begin_object().member("model", model.row.name).member("latest", latest.number);
      json.member("versions", std::uint64_t{model.live()}).member("logical_bytes", latest.logical_bytes);
      json.member("time", utc_time(latest.time_ns)).member("time_ns", latest.time_ns).key("tags").begin_object();
      for (const VersionEntry& version : model.versions)
        for (const std::string& tag : version.tags) json.member(tag, version.row.number);
      json.end_object().end_object();
    }
    json.end_array().end_object();
    return json;
  }

  static TextTable models_table(const std::vector<ModelEntry>& models) {
    TextTable table({{"MODEL"},
                     {"LATEST", Align::right},
                     {"VERSIONS", Align::right},
                     {"SIZE", Align::right},
                     {"PUBLISHED"},
                     {"TAGS"}});
    for (const ModelEntry& model : models) {
      const VersionRow& latest = model.latest()->row;
      std::vector<std::string> tags;
      for (const VersionEntry& version : model.versions)
        for (const std::string& tag : version.tags) tags.push_back(fmt::format("{}={}", tag, version.row.number));
      table.row({model.row.name, std::to_string(latest.number), std::to_string(model.live()),
                 human_bytes(latest.logical_bytes), short_time(latest.time_ns), joined(tags, " ")});
    }
    return table;
  }

  Result<int> list_versions(const Context& context, const ModelEntry& model) const {
    JsonWriter json;
    json.begin_object().member("model", model.row.name).key("versions").begin_array();
    TextTable table({{"VERSION", Align::right}, {"PUBLISHED"}, {"SIZE", Align::right}, {"TAGS"}, {"MESSAGE"}});
    std::string names;
    for (const VersionEntry& version : model.versions) {
      const VersionRow& row = version.row;
      if (row.removed) continue;
      write_version(json, version);
      names += spec_of(row) + "\n";
      std::vector<std::string> tags = version.tags;
      if (version.latest) tags.insert(tags.begin(), "latest");
      table.row({std::to_string(row.number), short_time(row.time_ns), human_bytes(row.logical_bytes), joined(tags, " "),
                 first_line(row.message)});
    }
    json.end_array().end_object();
    if (names_)
      context.print("{}", names);
    else
      context.json ? context.print_json(json) : context.print("{}", table.text());
    return kExitDone;
  }

  Result<int> list_files(const Context& context, Store& store) const {
    WEFT_TRY(VersionEntry version, version_entry(store, spec_));
    WEFT_TRY(LoadedVersion loaded, load_version(store, version.row));
    const Manifest& manifest = loaded.tree->manifest();
    if (names_) {
      for (const File& file : manifest.files) context.print("{}\n", file.path);
    } else if (context.json) {
      context.print_json(files_json(version.row, manifest));
    } else {
      context.print("{}", tensors_ ? tensors_table(manifest).text() : files_table(manifest).text());
    }
    return kExitDone;
  }

  JsonWriter files_json(const VersionRow& row, const Manifest& manifest) const {
    JsonWriter json;
    json.begin_object().member("model", row.model_name).member("version", row.number).key("files").begin_array();
    for (const File& file : manifest.files) {
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

  static TextTable files_table(const Manifest& manifest) {
    TextTable table({{"SIZE", Align::right}, {"FORMAT"}, {"TENSORS", Align::right}, {"FILE"}});
    for (const File& file : manifest.files)
      table.row({human_bytes(file.size), file.format.empty() ? "-" : file.format,
                 file.format.empty() ? "-" : std::to_string(file.tensors.size()), file.path});
    return table;
  }

  static TextTable tensors_table(const Manifest& manifest) {
    TextTable table({{"SIZE", Align::right}, {"DTYPE"}, {"SHAPE"}, {"NAME"}, {"FILE"}});
    for (const File& file : manifest.files) {
      if (file.tensors.empty()) table.row({human_bytes(file.size), "-", "-", "-", file.path});
      for (const Tensor& tensor : file.tensors)
        table.row({human_bytes(stored_bytes(file, tensor)), dtype_text(tensor), shape_text(tensor.shape),
                   printable(tensor.name), file.path});
    }
    return table;
  }

  std::string spec_;
  bool tensors_ = false;
  bool names_ = false;
};

}  // namespace

std::unique_ptr<Command> make_ls_command() {
  return std::make_unique<LsCommand>();
}

}  // namespace weft
