#include <charconv>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/catalog.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "cli/shared/writer.h"
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
        "store as it was. The store is made when there is none, unless\n"
        "/etc/weft/weft.conf names a store.\n\n"
        "Parents are what --parent names, and stored models that a model card (README.md:\n"
        "base_model) or an adapter_config.json (base_model_name_or_path) names; without\n"
        "any, the version that shares most bytes.\n\n"
        "With --inherit the version has the files of BASE, byte for byte but for what\n"
        "PATH changes: the tensors of a safetensors file take the place of those of their\n"
        "name, any other file that of its path. BASE is a parent, and none of its bytes\n"
        "are read.\n",
    .examples =
        "weft import ./all-MiniLM-L6-v2 --name org/minilm --tag stable\n"
        "weft import model.safetensors config.json --name bert --parent bert@1 \\\n"
        "     --message 'layer 3 tuned' --metric accuracy=0.93\n"
        "weft import head.safetensors --name bert-tuned --inherit bert@1\n",
    .json =
        "{model, version, made, manifest, files, tensors, logical_bytes, new_bytes,\n"
        " shared_bytes, mounted_files, parents: [{model, version, declared, same_tensors, same_bytes}],\n"
        " parents_elsewhere}; made is false when the newest version has this content\n"
        " already\n",
    .interrupted = "the store is as it was",
};

class ImportCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.arguments("PATH", import_.paths, "a file or a directory to publish");
    options.value("-n,--name", "NAME", import_.name, "the model's name, such as bert or org/bert (required)");
    options.value("--inherit", "BASE[@V]", import_.inherit,
                  "take the files of this version, with the tensors of PATH in the place of its own");
    options.flag("--add", import_.add,
                 "with --inherit: PATH may have tensors, types, shapes and files that BASE lacks");
    options.values("-p,--parent", "MODEL[@V]", import_.parents, "a version that this one was made from");
    options.value(
        "--find-parent", "PART", find_parent_,
        "where no stored parent is declared: the part of the tensor bytes above which the version that shares "
        "most is taken for one (0.5)");
    options.flag("--no-find-parent", no_find_parent_, "do not look for a parent");
    options.values("-t,--tag", "TAG", import_.tags, "a tag that the new version gets, or takes over");
    options.value("-m,--message", "TEXT", import_.message, "what to say about the version");
    options.values("--metric", "KEY=VALUE", metrics_, "a figure to keep with the version");
    options.value("--durability", "WHERE", durability_, "local (default), or origin: return when it is there too");
    options.flag("--sync", sync_, "as --durability origin");
  }

  Status check_usage() const override {
    if (!durability_.empty() && durability_ != "local" && durability_ != "origin")
      return Error{Errc::invalid,
                   fmt::format("--durability: expected local or origin, got {}", printable(durability_))};
    if (import_.name.empty()) return Error{Errc::invalid, "--name is required"};
    for (const std::string& metric : metrics_)
      if (metric.find('=') == std::string::npos || metric.starts_with('='))
        return Error{Errc::invalid, fmt::format("--metric: expected KEY=VALUE, got \"{}\"", printable(metric))};
    if (!find_parent_.empty() && no_find_parent_)
      return Error{Errc::invalid, "--find-parent and --no-find-parent: expected one of them"};
    if (import_.add && import_.inherit.empty()) return Error{Errc::invalid, "--add: expected --inherit with it"};
    WEFT_CHECK(find_part());
    return {};
  }

  Result<int> run(Context& context) override {
    for (const std::string& metric : metrics_) {
      auto equals = metric.find('=');
      import_.metrics.emplace_back(metric.substr(0, equals), metric.substr(equals + 1));
    }
    WEFT_TRY(import_.find_parent, find_part());
    const bool to_origin = sync_ || durability_ == "origin";
    if (to_origin) WEFT_CHECK(context.need_daemon());
    WEFT_TRY(const auto writer, context.writer());
    WEFT_TRY(const ImportReport report, writer->import(import_));
    if (to_origin) WEFT_CHECK(wait_for_origin(context, report.outcome.version));
    context.json ? print_json(context, report) : print_line(context, report);
    return kExitDone;
  }

 private:
  Result<std::optional<double>> find_part() const {
    if (no_find_parent_) return std::optional<double>();
    if (find_parent_.empty()) return std::optional(kFindParentPart);
    double part = -1;
    const char* end = find_parent_.data() + find_parent_.size();
    auto [at, failed] = std::from_chars(find_parent_.data(), end, part);
    if (failed == std::errc() && at == end && part >= 0 && part < 1) return std::optional(part);
    return Error{Errc::invalid,
                 fmt::format("--find-parent: expected a part from 0 to below 1, got \"{}\"", printable(find_parent_))};
  }

  static void print_json(const Context& context, ImportReport report) {
    JsonWriter json;
    json.begin_object();
    JsonFields list(json);
    shown_fields(list, report);
    context.print_json(json.end_object());
  }

  static void print_line(const Context& context, const ImportReport& report) {
    std::string spec = spec_of(report.outcome.version);
    if (!report.outcome.made) return context.print("{} has this content already; no new version\n", spec);
    context.print("{}  {}, {}, {}: {} new, {} shared\n", spec, count_of(report.tensors, "tensor"),
                  count_of(report.files, "file"), human_bytes(report.logical_bytes),
                  human_bytes(report.outcome.new_bytes), human_bytes(report.outcome.shared_bytes));
    if (report.mounted_files > 0)
      context.print("  {} taken from the store by way of its mount: no byte was read or written\n",
                    count_of(report.mounted_files, "file"));
    const VersionRow& row = report.outcome.version;
    for (const ParentRef& parent : row.parents)
      context.print("  parent {}: {}\n", spec_of(parent.model, parent.number), edge_text(parent, row.tensors));
    for (const std::string& name : row.elsewhere) context.print("  parent {}: declared, not stored here\n", name);
  }

  static Status wait_for_origin(const Context& context, const VersionRow& row) {
    const auto staged = call_daemon<HandOverReport>(context, "stage_out", StageOutRequest{spec_of(row)});
    if (staged.ok()) return {};
    return Error{staged.error().code,
                 fmt::format("{} is published, and not at the origin: {}", spec_of(row), staged.error().message)};
  }

  ImportOptions import_;
  std::string durability_;
  bool sync_ = false;
  std::vector<std::string> metrics_;
  std::string find_parent_;
  bool no_find_parent_ = false;
};

}  // namespace

std::unique_ptr<Command> make_import_command() {
  return std::make_unique<ImportCommand>();
}

}  // namespace weft
