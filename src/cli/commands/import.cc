#include <unistd.h>

#include <charconv>

#include "base/limits.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/import_lines.h"
#include "cli/shared/table.h"
#include "cli/shared/writer.h"
#include "drafts/import_fields.h"
#include "publish/gather.h"
#include "publish/import_hints.h"
#include "weft/programs/operations.h"

namespace weft {
namespace {

constexpr CommandInfo kImportInfo = {
    .name = "import",
    .summary = "publish files as a new version of a model",
    .description =
        "Publishes each PATH: a file under its base name, and everything below a\n"
        "directory at the root of the version. Links to regular files are followed, and\n"
        "--links says what becomes of links to directories and of links that lead\n"
        "nowhere. Directories named .git and .cache/huggingface are left out, and a line\n"
        "says so.\n"
        "\n"
        "Tensors are shared with everything in the store. weft finds them in files of\n"
        "safetensors, GGUF, npy, npz, PyTorch (torch.save, torch.export, distributed\n"
        "checkpoints), pickles with arrays of numpy, HDF5, Keras, ONNX, TensorFlow,\n"
        "TFLite and Flax. Any other file, and one that only its own library can read, is\n"
        "kept without tensors, and `weft info` says why. Every file reads back byte for\n"
        "byte.\n"
        "If the newest version already has this content, no new version is made: tags are\n"
        "set, and the import says which message, metrics and parents are not kept. A\n"
        "failed import leaves the store as it was. The import creates the store if there\n"
        "is none, unless /etc/weft/weft.conf names one.\n"
        "\n"
        "If the only PATH is a directory, its name is the default of --name. In a cache of\n"
        "the Hugging Face hub, a repository (models--ORG--NAME) stands for the snapshot of\n"
        "refs/main. The name is then ORG/NAME, the default message has the revision and\n"
        "the commit, and hub/ in a mount finds the version by the commit.\n"
        "\n"
        "If PATH lies in a mount of the store, the import takes the published files from\n"
        "the store and reads and writes none of their bytes. The directory of a version\n"
        "in layers/, tensors/ or lineage/ stands for its published files.\n"
        "\n"
        "Parents are the versions that --parent names, and stored models that a model\n"
        "card (README.md: base_model) or an adapter_config.json (base_model_name_or_path)\n"
        "names. If there are none, weft takes the version that shares the most bytes.\n"
        "\n"
        "With --dataset the version is one of a data set, which the mount shows in\n"
        "datasets/ and its records in records/ (weft.7). Its name is no model's.\n"
        "\n"
        "With --inherit the version starts with all files of BASE. The tensors of a\n"
        "safetensors PATH replace the tensors of the same names, and any other file\n"
        "replaces the file of the same path. BASE is a parent, and none of its bytes are\n"
        "read.\n",
    .examples =
        "weft import ./all-MiniLM-L6-v2 --name org/minilm --tag stable\n"
        "weft import ~/.cache/huggingface/hub/models--org--bert\n"
        "weft import model.safetensors config.json --name bert --parent bert@1 \\\n"
        "     --message 'layer 3 tuned' --metric accuracy=0.93\n"
        "weft import head.safetensors --name bert-tuned --inherit bert@1\n"
        "weft import --dataset ./imagenet --name imagenet\n"
        "weft import /mnt/weft/models/bert/2 --name bert-copy\n",
    .json =
        "{model, version, made, manifest, files, tensors, logical_bytes, new_bytes,\n"
        " shared_bytes, mounted_files, records, parents: [{model, version, declared,\n"
        " same_tensors, same_bytes}], parents_elsewhere, remarks, not_kept,\n"
        " removed: [{model, version}], not_removed}\n"
        "remarks lists what weft printed about files that contradict others;\n"
        "made is false if the newest version already has this content, and not_kept lists\n"
        "what was given and it has not (\"message\", \"source\", \"metric loss\");\n"
        "mounted_files counts files taken from the store through its mount; removed lists\n"
        "what --keep removed, and not_removed says why it did not remove the others\n",
    .interrupted = "the store is as it was",
};

class ImportCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.arguments("PATH", import_.paths, OptionSet::Need::required, "a file or a directory to publish");
    options.value("-n,--name", "NAME", name_,
                  "the model's name, such as bert or org/bert (default: what the directory says)", {kOfferModels});
    options.flag("--dataset", import_.dataset,
                 "publish a data set: files are not cut into tensors, and the records of tar and LMDB files are found");
    options.value("--inherit", "BASE[@V]", import_.inherit,
                  "start with all files of this version, and replace those tensors and files that PATH has");
    options.flag("--add", import_.add, "with --inherit: accept tensors, types, shapes and files that BASE lacks");
    options.flag("--move", move_,
                 "remove the files and the empty directories once they are published; files of the owner of the store "
                 "are not copied");
    options.value(
        "--links", "WHAT", links_,
        "a link to a directory, or one that leads nowhere: refuse (the default), skip, or follow (only one to a "
        "directory)",
        {"refuse", "skip", "follow"});
    options.values("-p,--parent", "MODEL[@V]", import_.parents, "a version from which this one was made");
    options.value(
        "--find-parent", "PART", find_parent_,
        "if no stored parent is declared: the part of the tensor bytes that a version must share to become the "
        "parent (default: 0.5)");
    options.flag("--no-find-parent", no_find_parent_, "do not look for a parent");
    options.value("--keep", "N", keep_, "then remove versions of the model that have no tag, but for the newest N");
    options.values("-t,--tag", "TAG", import_.tags, "a tag for the new version; it moves if another version has it");
    options.value("-m,--message", "TEXT", import_.message, "a description of the version");
    options.values("--metric", "KEY=VALUE", metrics_, "a figure to keep with the version");
    options.value("--durability", "WHERE", durability_,
                  "where the version is when the command returns: memory (of this node; a disk follows), local (a disk "
                  "of this node, the default) or origin",
                  {"memory", "local", "origin"});
    options.hidden_flag(kOptionsOnInput, options_on_input_);
    options.hidden_flag(kAwaitDaemon, await_daemon_);
  }

  Status check_usage() override {
    if (options_on_input_) return {};
    if (!durability_.empty()) {
      WEFT_TRY(import_.durability, parse_durability(durability_, "--durability"));
    }
    WEFT_CHECK(take_hints());
    if (import_.name.empty()) return Error{Errc::invalid, "--name is required"};
    WEFT_CHECK(set_links());
    WEFT_TRY(import_.metrics, parse_metrics(metrics_));
    if (!find_parent_.empty() && no_find_parent_)
      return Error{Errc::invalid, "--find-parent and --no-find-parent: expected only one of them"};
    for (const auto& [given, name] : {std::pair(!import_.inherit.empty(), "--inherit"), std::pair(move_, "--move")})
      if (import_.dataset && given)
        return Error{Errc::invalid, fmt::format("--dataset and {}: expected only one of them", name)};
    if (import_.add && import_.inherit.empty()) return Error{Errc::invalid, "--add: expected together with --inherit"};
    import_.keep = parse_u64(keep_).value_or(0);
    if (!keep_.empty() && import_.keep == 0)
      return Error{Errc::invalid, fmt::format("--keep: expected a number from 1, got \"{}\"", printable(keep_))};
    if (move_) import_.take = Take::move;
    WEFT_TRY(import_.find_parent, find_part());
    return {};
  }

  Result<int> run(Context& context) override {
    if (options_on_input_) WEFT_CHECK(read_options());
    if (await_daemon_) WEFT_CHECK(context.await_daemon());
    const bool to_origin = import_.durability == Durability::origin;
    if (to_origin) WEFT_CHECK(context.need_daemon());
    if (!context.quiet && !hint_.empty()) context.note(hint_);
    WEFT_TRY(const auto writer, context.writer());
    WEFT_TRY(const ImportReport report, writer->import(import_));
    if (!context.quiet && !options_on_input_) remark(context, report);
    if (move_) remove_sources(context, report);  // a mount removes its drafts itself, once it has the answer
    if (to_origin) WEFT_CHECK(wait_for_origin(context, report.outcome.version));
    for (const auto* lines : {&report.left_out, &report.remarks})
      for (const std::string& line : *lines) context.note(line);
    context.json ? print_json(context, report) : print_lines(context, report);
    return kExitDone;
  }

 private:
  // A directory gives the name and the message that no option gives.
  Status take_hints() {
    import_.name = name_.value_or("");
    if (import_.paths.size() != 1) return {};
    WEFT_TRY(const std::optional<HubSnapshot> hub, hub_snapshot(import_.paths.front()));
    const bool named = name_.has_value();
    if (hub) {
      import_.paths.front() = hub->path;
      if (hub->kind == VersionKind::dataset) import_.dataset = true;
      if (!named) import_.name = hub->name;
      hint_ = fmt::format("{}: the name is {}", hub->path, import_.name);
      if (hub->commit.empty()) return {};
      const std::string revision = hub->revision.empty() ? "" : fmt::format(", revision {}", hub->revision);
      const std::string source =
          fmt::format("{} of the Hugging Face hub{}, commit {}", hub->name, revision, hub->commit);
      import_.default_message = source;
      if (import_.inherit.empty() && is_commit_hash(hub->commit)) import_.source.commit = hub->commit;
      hint_ = fmt::format("{} is {}; the name is {}", hub->path, source, import_.name);
    } else if (!named) {
      import_.name = name_of_directory(import_.paths.front());
      if (!import_.name.empty()) hint_ = fmt::format("the name is {}, as the directory's", import_.name);
    }
    return {};
  }

  // Many files that are no tensors are rather a data set.
  void remark(const Context& context, const ImportReport& report) const {
    constexpr std::uint64_t kManyFiles = 100;
    constexpr std::uint64_t kFewTensors = 10;  // less than a tenth of the files
    if (import_.dataset || report.files < kManyFiles || report.tensors >= report.files / kFewTensors) return;
    context.note(
        fmt::format("{} and {}: if this is a data set, remove the model and import with --dataset, which stores small "
                    "files together and shows them in datasets/",
                    count_of(report.files, "file"), count_of(report.tensors, "tensor")));
  }

  // Reads the options that a mount passes for a draft.
  Status read_options() {
    constexpr char kInput[] = "the options on the standard input";
    WEFT_TRY(const struct stat st, stat_fd(STDIN_FILENO, kInput));
    WEFT_TRY(const auto bytes, read_whole(STDIN_FILENO, st, limits::kImportOptionsMax, kInput));
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    WEFT_TRY(const JsonValue json, JsonValue::parse(text, {.values_max = limits::kImportOptionsMax}));
    std::vector<std::string> paths = std::move(import_.paths);
    WEFT_TRY(import_, decode_fields<ImportOptions>(json));
    import_.paths = std::move(paths);
    return {};
  }

  // Removes the published source files and empty directories. A directory with left-out or newer entries stays. Errors
  // are only noted, because the version is published.
  static void remove_sources(const Context& context, const ImportReport& report) {
    for (const MovedSource& source : report.moved)
      if (const Status gone = remove_moved(source); !gone.ok()) context.note(gone.error().message);
  }

  Status set_links() {
    if (links_.empty()) return {};
    if (move_) return Error{Errc::invalid, "--move and --links: expected only one of them"};
    constexpr std::pair<std::string_view, Links> kNames[] = {
        {"refuse", Links::refuse}, {"skip", Links::skip}, {"follow", Links::follow}};
    for (const auto& [name, links] : kNames)
      if (links_ == name) return import_.links = links, Status{};
    return Error{Errc::invalid, fmt::format("--links: expected refuse, skip or follow, got \"{}\"", printable(links_))};
  }

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

  void print_lines(const Context& context, const ImportReport& report) const {
    print_import(context, report, import_.dataset);
    for (const VersionName& version : report.removed)
      context.print("  removed {}\n", spec_of(version.model, version.number));
    if (!report.not_removed.empty()) context.note(fmt::format("--keep: {}", report.not_removed));
  }

  static Status wait_for_origin(const Context& context, const VersionRow& row) {
    const auto staged = call_daemon<HandOverReport>(context, "stage_out", StageOutRequest{spec_of(row)});
    if (staged.ok()) return {};
    return Error{staged.error().code,
                 fmt::format("{} is published, and not at the origin: {}", spec_of(row), staged.error().message)};
  }

  ImportOptions import_;
  std::string hint_;  // what the directory said
  bool move_ = false;
  bool options_on_input_ = false;
  bool await_daemon_ = false;
  std::string keep_;
  std::string durability_;
  std::string links_;
  std::vector<std::string> metrics_;
  std::optional<std::string> name_;
  std::string find_parent_;
  bool no_find_parent_ = false;
};

}  // namespace

constinit const CommandEntry kImportCommand = {kImportInfo, make<ImportCommand>};

}  // namespace weft
