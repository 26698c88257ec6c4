#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "daemon_api/control_messages.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr CommandInfo kExportInfo = {
    .name = "export",
    .summary = "write the files of a version into a directory",
    .description =
        "Writes the published files into DIR, byte for byte, and verifies the digest of\n"
        "every byte. DIR must be empty or not exist. The files appear in DIR by rename,\n"
        "after one sync of its file system has made all of them durable. A failed export\n"
        "removes what it made and nothing else. A node of a cluster first fetches bytes\n"
        "that it lacks, as weft prefetch does.\n"
        "\n"
        "With --safetensors, DIR becomes what safetensors/ in a mount shows: weights in\n"
        "other formats, such as pytorch_model.bin, become files of safetensors. No\n"
        "pickle is run for them.\n"
        "\n"
        "With --hub DIR, the version becomes a snapshot in a cache of the Hugging Face\n"
        "hub: DIR/models--ORG--NAME, or datasets--ORG--NAME for a data set. Programs with\n"
        "HF_HUB_CACHE=DIR and HF_HUB_OFFLINE=1 load it by name. The snapshot has the\n"
        "version's source commit as its name, or else the one that hub/ in a mount shows.\n"
        "The version's tags and its number become revisions. The revision main leads to\n"
        "it if it does in hub/, or if DIR has no main of this model. Files whose bytes\n"
        "are in DIR already are not copied. The snapshot appears as a whole.\n",
    .examples =
        "weft export bert@2 ./bert-2\n"
        "weft export org/minilm@stable /scratch/minilm\n"
        "weft export org/old --safetensors ./old\n"
        "weft export org/minilm --hub ~/.cache/huggingface/hub\n",
    .json =
        "{model, version, directory, files, bytes,\n"
        " hub: {commit, refs, reused_files, reused_bytes}}\n"
        "hub is there with --hub\n",
    .interrupted = "what was written is removed, the store is as it was",
};

class ExportCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", spec_, OptionSet::Need::required,
                     "the version; V is a number or a tag, and the latest is the default");
    options.argument("DIR", directory_, OptionSet::Need::optional, "the directory to write to; its parent must exist");
    options.flag("--safetensors", safetensors_, "write weights in other formats as safetensors");
    options.value("--hub", "DIR", hub_, "write a snapshot into this cache of the Hugging Face hub",
                  {kOfferDirectories});
  }

  Status check_usage() override {
    if (!directory_.empty() && !hub_.empty()) return Error{Errc::invalid, "DIR and --hub: expected only one of them"};
    if (directory_.empty() && hub_.empty()) return Error{Errc::invalid, "expected DIR or --hub DIR, got none"};
    if (safetensors_ && !hub_.empty())
      return Error{Errc::invalid, "--safetensors and --hub: expected only one of them"};
    return {};
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(auto store, context.open_to_read());
    WEFT_TRY(const VersionRow version, version_of(*store, spec_));
    auto report = write(context, *store, version);
    if (!report.ok() && report.error().code == Errc::absent && store->cluster()) {
      WEFT_CHECK(call_daemon<FetchReport>(context, "prefetch", PrefetchRequest{spec_of(version), ""}));
      report = write(context, *store, version);
    }
    if (!report.ok()) return std::move(report).error();
    context.json ? print_json(context, version, *report) : print_lines(context, version, *report);
    return kExitDone;
  }

 private:
  Result<HubExportReport> write(const Context& context, Store& store, const VersionRow& version) const {
    ProgressBar bar = context.progress();
    if (!hub_.empty()) return export_to_hub(store, context.resolver(), spec_of(version), hub_, bar);
    const auto write = safetensors_ ? export_as_safetensors : export_version;
    WEFT_TRY(const ExportReport written, write(store, context.resolver(), spec_of(version), directory_, bar));
    return HubExportReport{written, directory_, {}, {}};
  }

  void print_json(const Context& context, const VersionRow& version, const HubExportReport& report) const {
    JsonWriter json;
    json.begin_object().member("model", version.model_name).member("version", version.number);
    json.member("directory", report.repository).member("files", report.written.files);
    json.member("bytes", report.written.bytes);
    if (!hub_.empty()) {
      json.key("hub").begin_object().member("commit", report.commit).key("refs").begin_array();
      for (const std::string& ref : report.refs) json.value(ref);
      json.end_array().member("reused_files", report.reused_files).member("reused_bytes", report.reused_bytes);
      json.end_object();
    }
    context.print_json(json.end_object());
  }

  void print_lines(const Context& context, const VersionRow& version, const HubExportReport& report) const {
    context.print("{}  {}, {} in {}\n", spec_of(version), count_of(report.written.files, "file"),
                  human_bytes(report.written.bytes), report.repository);
    if (hub_.empty()) return;
    context.print("  commit {}: {}\n", report.commit, joined(report.refs, ", "));
    if (report.reused_files > 0)
      context.print("  {} not copied, {}: the bytes were there\n", count_of(report.reused_files, "file"),
                    human_bytes(report.reused_bytes));
  }

  std::string spec_;
  std::string directory_;
  std::string hub_;
  bool safetensors_ = false;
};

}  // namespace

constinit const CommandEntry kExportCommand = {kExportInfo, make<ExportCommand>};

}  // namespace weft
