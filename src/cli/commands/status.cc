#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/json_value.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_status.h"
#include "cli/shared/mounts.h"
#include "cli/shared/table.h"
#include "daemon_api/old_drafts.h"
#include "os/sys.h"
#include "weft/assembly.h"
#include "weft/scrub.h"
#include "weft/snapshot.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "status",
    .summary = "show the store, its content, its mounts and its daemon",
    .description =
        "The lines of a mount come from its file .weft/status. A mount or a daemon that\n"
        "does not answer within two seconds is shown as not answering.\n",
    .examples = "weft status\n",
    .json =
        "{store, uuid, format, created, models, versions, open_removed, tags, blobs,\n"
        " views, packs, blob_bytes, dead_bytes, pack_disk_bytes, free_bytes,\n"
        " assembled_files, assembled_bytes, assembled_bytes_max, scrub,\n"
        " mounts: [{directory, status}],\n"
        " drafts: [{path, bytes, unwritten_seconds}], daemon};\n"
        "drafts are those that gc removes within a day; scrub is the last complete scrub,\n"
        "{begun, ended, packs, blobs, bytes, problems, lines: [TEXT]}, or null; status is\n"
        ".weft/status of that mount, or null; daemon is its own status, or null\n",
    .interrupted = "",
};

constexpr std::chrono::milliseconds kMountAnswerMax{2000};
constexpr std::chrono::seconds kDay = std::chrono::hours(24);

struct MountStatus {
  std::string directory;
  std::string json;  // "" when the mount does not answer with JSON
  std::vector<std::string> lines;
};

MountStatus ask(const WeftMount& mount) {
  MountStatus status{mount.directory, "", {}};
  auto text = read_mount_status(mount.directory, kMountAnswerMax);
  if (!text.ok()) return status;
  const auto members = status_members(*text, "mount");
  const auto assembly = status_members(*text, "assembly");
  if (!members.ok() || !assembly.ok()) return status;
  text->erase(text->find_last_not_of(" \n") + 1);
  status.json = std::move(*text);
  for (const auto& [key, value] : *members)
    if (key != "directory" && key != "pid_namespace" && key != "control")
      status.lines.push_back(fmt::format("{}: {}", key, value));
  for (const auto& [key, value] : *assembly) status.lines.push_back(fmt::format("assembly {}: {}", key, value));
  return status;
}

struct Facts {
  std::string store;  // absolute
  StoreInfo info;
  StoreCounts counts;
  AssembledUsage assembled;
  std::optional<ScrubPass> scrub;  // the last complete one
  std::uint64_t free_bytes = 0;    // of the store's file system, for this user
  std::vector<MountStatus> mounts;
  DaemonStatus daemon;
  std::vector<OldDraft> drafts;  // that gc removes within a day
  std::chrono::seconds drafts_kept = kDraftsKept;
};

std::chrono::seconds kept_by(const DaemonStatus& daemon) {
  const auto json = JsonValue::parse(daemon.json);
  const auto kept = json.ok() ? json->number("drafts_keep_seconds") : Result<std::uint64_t>(json.error());
  return kept.ok() ? std::chrono::seconds(*kept) : kDraftsKept;
}

Result<Facts> collect(const Context& context) {
  Facts facts;
  WEFT_TRY(auto store, context.open_to_read());
  facts.info = store->info();
  WEFT_TRY(facts.counts, store->counts());
  facts.assembled = assembled_usage(*store);
  if (auto state = read_scrub_state(store->path()); state.ok()) facts.scrub = std::move(state->last);
  std::error_code error;
  facts.store = std::filesystem::canonical(context.store_path(), error).string();
  if (error) return sys_error(error.value(), context.store_path());
  facts.free_bytes = std::filesystem::space(facts.store, error).available;
  if (error) return sys_error(error.value(), facts.store);
  facts.daemon = ask_daemon(context, kMountAnswerMax);
  facts.drafts_kept = kept_by(facts.daemon);
  WEFT_TRY(facts.drafts, old_drafts(facts.store, std::max(facts.drafts_kept - kDay, std::chrono::seconds(0))));
  WEFT_TRY(auto mounts, weft_mounts());
  for (const WeftMount& mount : mounts)
    if (mount.store == facts.store) facts.mounts.push_back(ask(mount));
  return facts;
}

JsonWriter json_of(const Facts& facts) {
  const StoreCounts& counts = facts.counts;
  JsonWriter json;
  json.begin_object().member("store", facts.store).member("uuid", facts.info.uuid);
  json.member("format", std::uint64_t{facts.info.format});
  json.member("created", utc_time(facts.info.created_ns)).member("models", counts.models);
  json.member("versions", counts.versions)
      .member("open_removed", counts.open_removed)
      .member("tags", counts.tags)
      .member("blobs", counts.blobs);
  json.member("views", counts.views).member("packs", counts.packs).member("blob_bytes", counts.blob_bytes);
  json.member("dead_bytes", counts.dead_bytes).member("pack_disk_bytes", counts.pack_disk_bytes);
  json.member("free_bytes", facts.free_bytes).member("assembled_files", facts.assembled.files);
  json.member("assembled_bytes", facts.assembled.bytes).member("assembled_bytes_max", facts.assembled.bytes_max);
  json.key("scrub");
  write_scrub(json, facts.scrub);
  json.key("mounts").begin_array();
  for (const MountStatus& mount : facts.mounts) {
    json.begin_object().member("directory", mount.directory).key("status");
    mount.json.empty() ? json.null() : json.raw(mount.json);
    json.end_object();
  }
  json.end_array().key("drafts").begin_array();
  for (const OldDraft& draft : facts.drafts) json.raw(encode_fields(draft));
  json.end_array().key("daemon");
  facts.daemon.json.empty() ? json.null() : json.raw(facts.daemon.json);
  json.end_object();
  return json;
}

std::string_view does(const DaemonStatus& daemon) {
  if (!daemon.runs) return "none";
  return daemon.json.empty() ? "runs, but does not answer" : "runs";
}

std::string removed_when(const OldDraft& draft, std::chrono::seconds kept) {
  const auto left = kept.count() - static_cast<std::int64_t>(draft.unwritten_s);
  if (left <= 0) return "when it next runs";
  return fmt::format("in {}", count_of(static_cast<std::uint64_t>(left / 3600 + 1), "hour"));
}

std::string text_of(const Facts& facts) {
  const StoreCounts& counts = facts.counts;
  std::string text = fmt::format("store     {}\n", facts.store);
  text += fmt::format("made      {}, format {}\n", utc_time(facts.info.created_ns), facts.info.format);
  text +=
      fmt::format("content   {}, {}, {}, {}\n", count_of(counts.models, "model"), count_of(counts.versions, "version"),
                  count_of(counts.tags, "tag"), count_of(counts.blobs, "blob"));
  text +=
      fmt::format("space     {} needed, {} for `weft gc`, {} on disk in {}, {} free\n", human_bytes(counts.blob_bytes),
                  human_bytes(counts.dead_bytes), human_bytes(counts.pack_disk_bytes), count_of(counts.packs, "pack"),
                  human_bytes(facts.free_bytes));
  if (counts.open_removed > 0)
    text += fmt::format("open      {}, kept until closed\n", count_of(counts.open_removed, "removed version"));
  text += fmt::format("assembled {}, {} of at most {}\n", count_of(facts.assembled.files, "file"),
                      human_bytes(facts.assembled.bytes), human_bytes(facts.assembled.bytes_max));
  text += facts.scrub ? fmt::format("scrubbed  {}, {} read, {}\n", utc_time(facts.scrub->ended_ns),
                                    human_bytes(facts.scrub->bytes), count_of(facts.scrub->problems, "problem"))
                      : "scrubbed  never completely\n";
  for (const OldDraft& draft : facts.drafts)
    text += fmt::format("draft     new/{}, {}: nobody writes to it, gc removes it {}\n", printable(draft.path),
                        human_bytes(draft.bytes), removed_when(draft, facts.drafts_kept));
  if (facts.mounts.empty()) text += "mounts    none\n";
  for (const MountStatus& mount : facts.mounts) {
    text += fmt::format("mounted   {}{}\n", mount.directory, mount.json.empty() ? " (does not answer)" : "");
    for (const std::string& line : mount.lines) text += fmt::format("          {}\n", line);
  }
  text += fmt::format("daemon    {}\n", does(facts.daemon));
  for (const std::string& line : facts.daemon.lines) text += fmt::format("          {}\n", line);
  return text;
}

class StatusCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }
  void declare(OptionSet& /*options*/) override {}

  Result<int> run(Context& context) override {
    WEFT_TRY(Facts facts, collect(context));
    if (context.json)
      context.print_json(json_of(facts));
    else
      context.print("{}", text_of(facts));
    return kExitDone;
  }
};

}  // namespace

std::unique_ptr<Command> make_status_command() {
  return std::make_unique<StatusCommand>();
}

}  // namespace weft
