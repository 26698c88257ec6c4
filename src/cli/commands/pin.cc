#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "cli/shared/writer.h"
#include "weft/store/assembly.h"

namespace weft {
namespace {

constexpr CommandInfo kPinInfo = {
    .name = "pin",
    .summary = "assemble the files of a version now, and keep them",
    .description =
        "The bytes of a derived file usually lie in several packs. The mount assembles\n"
        "such a file into one piece when it is used again, and deletes assembled files\n"
        "when the cache needs space. `weft pin` assembles the files of a version now.\n"
        "They are kept until the pin is deleted or the version is removed. In a cluster,\n"
        "`weft pin` first fetches the version's bytes, and they are not evicted either.\n",
    .examples =
        "weft pin bert@2\n"
        "weft pin --delete bert@2\n",
    .json = "{files, bytes, assembled_now}; after --delete: {pinned: false}\n",
    .interrupted = "the version is not pinned; complete files stay in the cache",
};

Result<int> unpin(const Context& context, const std::string& spec) {
  WEFT_TRY(const auto writer, context.writer());
  WEFT_CHECK(writer->pin({spec, false}));
  if (context.json) context.print_json(JsonWriter().begin_object().member("pinned", false).end_object());
  return kExitDone;
}

// Pins a version and assembles its files. In a cluster, fetches the version's bytes first.
Result<PinReport> pin(const Context& context, const std::string& spec) {
  WEFT_TRY(const auto writer, context.writer());
  WEFT_TRY(const auto store, context.open_to_read());
  if (store->cluster()) WEFT_CHECK(call_daemon<FetchReport>(context, "prefetch", PrefetchRequest{spec, ""}));
  const RecordPin record = [&writer](const VersionRow& version, bool pinned) {
    return writer->pin({spec_of(version), pinned});
  };
  ProgressBar bar = context.progress();
  return pin_version(*store, context.resolver(), spec, record, bar);
}

constexpr CommandInfo kUnpinInfo = {
    .name = "unpin",
    .summary = "delete the pin of a version",
    .description = "Same as `weft pin --delete`. The files stay until the cache needs their space.\n",
    .examples = "weft unpin bert@2\n",
    .json = "{pinned: false}\n",
};

class UnpinCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", spec_, OptionSet::Need::required, "the version");
  }
  Result<int> run(Context& context) override { return unpin(context, spec_); }

 private:
  std::string spec_;
};

class PinCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", spec_, OptionSet::Need::required, "the version");
    options.flag("-d,--delete", delete_, "delete the pin");
  }

  Result<int> run(Context& context) override {
    if (delete_) return unpin(context, spec_);
    WEFT_TRY(const PinReport report, pin(context, spec_));
    print(context, report);
    return kExitDone;
  }

 private:
  static void print(const Context& context, const PinReport& report) {
    if (context.json) {
      JsonWriter json;
      json.begin_object().member("files", report.files).member("bytes", report.bytes);
      json.member("assembled_now", report.made).end_object();
      context.print_json(json);
    } else if (report.files == 0) {
      context.print("nothing to assemble: every file is in one pack\n");
    } else {
      context.print("pinned {}, {}; {} assembled now\n", count_of(report.files, "file"), human_bytes(report.bytes),
                    report.made);
    }
  }

  std::string spec_;
  bool delete_ = false;
};

}  // namespace

constinit const CommandEntry kUnpinCommand = {kUnpinInfo, make<UnpinCommand>};
constinit const CommandEntry kPinCommand = {kPinInfo, make<PinCommand>};

}  // namespace weft
