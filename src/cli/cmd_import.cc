#include "base/sys.h"
#include "base/text.h"
#include "cli/catalog.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "weft/node.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "import",
    .summary = "publish files as a new version of a model",
    .description =
        "Publishes each PATH: a file under its base name, a directory's contents whole at\n"
        "the version's root. Links to regular files are followed, other links refused;\n"
        "directories named .git and .cache/huggingface are left out. Tensors of\n"
        "safetensors, GGUF and npy files are found and shared with all that the store\n"
        "has; every file comes back byte for byte. Content that is already the model's\n"
        "newest version makes no new one. All or nothing: a failed import leaves the\n"
        "store as it was. The store is made when there is none.\n",
    .examples =
        "weft import ./all-MiniLM-L6-v2 --name org/minilm --tag stable\n"
        "weft import model.safetensors config.json --name bert --parent bert@1 \\\n"
        "     --message 'layer 3 tuned' --metric accuracy=0.93\n",
    .json =
        "{model, version, made, manifest, files, tensors, logical_bytes, new_bytes,\n"
        " shared_bytes}; made is false when the newest version has this content already\n",
    .interrupted = "the store is as it was",
};

class ImportCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.arguments("PATH", import_.paths, "a file or a directory to publish");
    options.value("-n,--name", "NAME", import_.name, "the model's name, such as bert or org/bert (required)");
    options.values("-p,--parent", "MODEL[@V]", import_.parents, "a version that this one was made from");
    options.values("-t,--tag", "TAG", import_.tags, "a tag that the new version gets, or takes over");
    options.value("-m,--message", "TEXT", import_.message, "what to say about the version");
    options.values("--metric", "KEY=VALUE", metrics_, "a figure to keep with the version");
  }

  Status check_usage() const override {
    if (import_.name.empty()) return Error{Errc::invalid, "--name is required"};
    for (const std::string& metric : metrics_)
      if (metric.find('=') == std::string::npos || metric.starts_with('='))
        return Error{Errc::invalid, fmt::format("--metric: expected KEY=VALUE, got \"{}\"", printable(metric))};
    return {};
  }

  Result<int> run(Context& context) override {
    for (const std::string& metric : metrics_) {
      auto equals = metric.find('=');
      import_.metrics.emplace_back(metric.substr(0, equals), metric.substr(equals + 1));
    }
    WEFT_CHECK(check_names());
    WEFT_TRY(auto store, context.open_or_create());
    auto report = [&] {
      ProgressBar bar = context.progress();
      return import_paths(*store, import_, bar);
    }();
    if (!report.ok()) return std::move(report).error();
    context.json ? print_json(context, *report) : print_line(context, *report);
    return kExitDone;
  }

 private:
  // What would fail in any case makes no store.
  Status check_names() const {
    WEFT_CHECK(check_model_name(import_.name));
    for (const std::string& tag : import_.tags) WEFT_CHECK(check_tag_name(tag));
    for (const std::string& path : import_.paths) WEFT_CHECK(stat_file(path));
    return {};
  }

  static void print_json(const Context& context, const ImportReport& report) {
    const VersionRow& row = report.outcome.version;
    JsonWriter json;
    json.begin_object().member("model", row.model_name).member("version", row.number);
    json.member("made", report.outcome.made).member("manifest", to_hex(row.manifest));
    json.member("files", report.files).member("tensors", report.tensors);
    json.member("logical_bytes", report.logical_bytes).member("new_bytes", report.outcome.new_bytes);
    json.member("shared_bytes", report.outcome.shared_bytes).end_object();
    context.print_json(json);
  }

  static void print_line(const Context& context, const ImportReport& report) {
    std::string spec = spec_of(report.outcome.version);
    if (!report.outcome.made) return context.print("{} has this content already; no new version\n", spec);
    context.print("{}  {}, {}, {}: {} new, {} shared\n", spec, count_of(report.tensors, "tensor"),
                  count_of(report.files, "file"), human_bytes(report.logical_bytes),
                  human_bytes(report.outcome.new_bytes), human_bytes(report.outcome.shared_bytes));
  }

  ImportOptions import_;
  std::vector<std::string> metrics_;
};

}  // namespace

std::unique_ptr<Command> make_import_command() {
  return std::make_unique<ImportCommand>();
}

}  // namespace weft
