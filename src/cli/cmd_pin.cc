#include "base/text.h"
#include "cli/commands.h"
#include "cli/daemon_call.h"
#include "cli/table.h"
#include "weft/assembly.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "pin",
    .summary = "keep a version's files assembled, to be read as native files",
    .description =
        "Files whose bytes lie in several packs are assembled into one by the mount when\n"
        "they are read, and evicted when others need the room. `weft pin` assembles those\n"
        "of a version now, and keeps them until the pin is deleted or the version removed.\n"
        "In a cluster it brings the version's bytes to this node first, and they stay too.\n",
    .examples =
        "weft pin bert@2\n"
        "weft pin --delete bert@2\n",
    .json = "{files, bytes, assembled_now}; after --delete: {pinned: false}\n",
    .interrupted = "files that are complete stay pinned",
};

// Of a node in a cluster: the bytes that it fetched.
Status keep_fetched(const Context& context, const std::string& spec, bool pinned) {
  JsonWriter version;
  version.begin_object().member("spec", spec).end_object();
  if (pinned) WEFT_CHECK(ask_with_progress(context, "prefetch", version.text()));
  JsonWriter body;
  body.begin_object().member("spec", spec).member("pinned", pinned).end_object();
  WEFT_CHECK(ask_with_progress(context, "pin", body.text()));
  return {};
}

Result<int> unpin(const Context& context, Store& store, const std::string& spec) {
  WEFT_CHECK(unpin_version(store, spec));
  if (context.json) context.print_json(JsonWriter().begin_object().member("pinned", false).end_object());
  return kExitDone;
}

constexpr CommandInfo kUnpinInfo = {
    .name = "unpin",
    .summary = "delete a version's pin",
    .description = "As `weft pin --delete`: its files and bytes go when others need the room.\n",
    .examples = "weft unpin bert@2\n",
    .json = "{pinned: false}\n",
    .interrupted = "",
};

class UnpinCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kUnpinInfo; }
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", spec_, OptionSet::Need::required, "the version");
  }
  Result<int> run(Context& context) override {
    WEFT_TRY(auto store, context.open_to_read());
    if (store->cluster()) WEFT_CHECK(keep_fetched(context, spec_, false));
    return unpin(context, *store, spec_);
  }

 private:
  std::string spec_;
};

class PinCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", spec_, OptionSet::Need::required, "the version");
    options.flag("-d,--delete", delete_, "delete the pin");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(auto store, context.open_to_read());
    if (store->cluster()) WEFT_CHECK(keep_fetched(context, spec_, !delete_));
    if (delete_) return unpin(context, *store, spec_);
    auto report = [&] {
      ProgressBar bar = context.progress();
      return pin_version(*store, spec_, bar);
    }();
    if (!report.ok()) return std::move(report).error();
    print(context, *report);
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

std::unique_ptr<Command> make_unpin_command() {
  return std::make_unique<UnpinCommand>();
}

std::unique_ptr<Command> make_pin_command() {
  return std::make_unique<PinCommand>();
}

}  // namespace weft
