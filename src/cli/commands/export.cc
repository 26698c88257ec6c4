#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/table.h"
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
        "removes what it made and nothing else.\n",
    .examples =
        "weft export bert@2 ./bert-2\n"
        "weft export org/minilm@stable /scratch/minilm\n",
    .json = "{model, version, directory, files, bytes}\n",
    .interrupted = "what was written is removed, the store is as it was",
};

class ExportCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", spec_, OptionSet::Need::required,
                     "the version; V is a number or a tag, and the latest is the default");
    options.argument("DIR", directory_, OptionSet::Need::required, "the directory to write to; its parent must exist");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(auto store, context.open_to_read());
    WEFT_TRY(const VersionRow version, version_of(*store, spec_));
    const std::string spec = spec_of(version);
    auto report = [&] {
      ProgressBar bar = context.progress();
      return export_version(*store, context.resolver(), spec, directory_, bar);
    }();
    if (!report.ok()) return std::move(report).error();
    if (context.json) {
      JsonWriter json;
      json.begin_object().member("model", version.model_name).member("version", version.number);
      json.member("directory", directory_).member("files", report->files).member("bytes", report->bytes).end_object();
      context.print_json(json);
    } else {
      context.print("{}  {}, {} in {}\n", spec, count_of(report->files, "file"), human_bytes(report->bytes),
                    directory_);
    }
    return kExitDone;
  }

 private:
  std::string spec_;
  std::string directory_;
};

}  // namespace

constinit const CommandEntry kExportCommand = {kExportInfo, make<ExportCommand>};

}  // namespace weft
