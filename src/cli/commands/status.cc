#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/json_value.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/configured_store.h"
#include "cli/shared/context.h"
#include "cli/shared/mounts.h"
#include "cli/shared/table.h"
#include "drafts/old_drafts.h"
#include "os/sys.h"
#include "weft/store/assembly.h"
#include "weft/store/scrub.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

struct DaemonStatus {
  bool runs = false;
  std::string json;                // "" if the daemon does not answer
  std::vector<std::string> lines;  // "key: value", without empty values
};

std::string scalar_text(const JsonValue& value) {
  if (const std::string* text = value.text()) return printable(*text, 1000);
  if (const std::uint64_t* number = value.number()) return std::to_string(*number);
  if (const bool* flag = value.flag()) return *flag ? "yes" : "no";
  return "";
}

// Adds a line for each member of the named objects in an array: "fetched peer bytes: 1024".
void add_named(const JsonValue& value, const std::string& prefix, std::vector<std::string>& lines) {
  if (value.array() == nullptr) return;
  for (const JsonValue& one : *value.array()) {
    const auto name = one.text("name");
    if (one.object() == nullptr || !name.ok()) continue;
    for (const auto& [key, member] : *one.object())
      if (key != "name")
        lines.push_back(fmt::format("{}{} {}: {}", prefix, printable(*name), printable(key), scalar_text(member)));
  }
}

// Adds a line for each member; a member of an inner object becomes "registry kind: etcd".
void add_lines(const JsonValue& value, const std::string& prefix, std::vector<std::string>& lines) {
  const JsonValue::Object* members = value.object();
  if (members == nullptr) return;
  for (const auto& [name, member] : *members) {
    const std::string text = scalar_text(member);
    if (!text.empty()) lines.push_back(fmt::format("{}{}: {}", prefix, printable(name), text));
    if (prefix.empty()) add_lines(member, printable(name) + " ", lines);
    if (!prefix.empty()) add_named(member, prefix, lines);
  }
}

DaemonStatus ask_daemon(const Context& context, std::chrono::milliseconds patience) {
  DaemonStatus status;
  const auto daemon = context.daemon();
  if (!daemon.ok() || !*daemon) return status;
  status.runs = true;
  control::CallOptions options;
  options.patience = patience;
  const auto answer = context.ask(**daemon, "status", "", std::move(options));
  if (!answer.ok()) return status;
  JsonWriter json;
  write_json(json, answer->body);
  status.json = json.take();
  add_lines(answer->body, "", status.lines);
  return status;
}

constexpr CommandInfo kInfo = {
    .name = "status",
    .summary = "show the store, its content, its mounts and its daemon",
    .description =
        "The lines of a mount come from its file .weft/status. A mount or a daemon that\n"
        "does not answer within two seconds is shown as not answering. The exit status is 1\n"
        "if the daemon does not answer, or if a node of a cluster has none.\n",
    .examples = "weft status\n",
    .json =
        "{store, uuid, format, created, models, versions, open_removed, in_memory,\n"
        " in_memory_elsewhere, lost, tags, blobs, views, packs, blob_bytes, dead_bytes,\n"
        " pack_disk_bytes, free_bytes,\n"
        " assembled_files, assembled_bytes, assembled_bytes_max, scrub,\n"
        " mounts: [{directory, status}],\n"
        " drafts: [{path, bytes, unwritten_seconds}], daemon};\n"
        "drafts are those that gc removes within a day; scrub is the last complete scrub,\n"
        "{begun, ended, packs, blobs, bytes, problems, lines: [TEXT]}, or null; status is\n"
        ".weft/status of that mount, or null; daemon is its own status, or null\n",
};

constexpr std::chrono::milliseconds kMountAnswerMax{2000};
constexpr std::chrono::seconds kDay = std::chrono::hours(24);

struct MountStatus {
  std::string directory;
  std::string json;  // "" if the mount does not answer with JSON
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

// Versions whose bytes are not on a disk yet.
struct InMemory {
  std::uint64_t versions = 0;
  VersionRow oldest;
};

struct Facts {
  std::string store;  // absolute path
  StoreInfo info;
  bool clustered = false;
  StoreCounts counts;
  InMemory in_memory, in_memory_elsewhere;  // versions of this node, and of other nodes of its cluster
  AssembledUsage assembled;
  std::optional<ScrubPass> scrub;  // the last complete pass
  std::uint64_t free_bytes = 0;    // on the store's file system, for this user
  std::vector<MountStatus> mounts;
  DaemonStatus daemon;
  std::vector<OldDraft> drafts;  // drafts that gc removes within a day
  std::chrono::seconds drafts_kept{0};
};

// Returns the number `name` of the daemon's status, inside `object` unless that is "". Nothing if there is none.
std::optional<std::uint64_t> said(const DaemonStatus& daemon, std::string_view object, std::string_view name) {
  const auto json = JsonValue::parse(daemon.json);
  if (!json.ok()) return {};
  const JsonValue* const from = object.empty() ? &*json : json->find(object);
  const JsonValue* const value = from == nullptr ? nullptr : from->find(name);
  const std::uint64_t* const number = value == nullptr ? nullptr : value->number();
  return number == nullptr ? std::nullopt : std::optional(*number);
}

Result<std::chrono::seconds> drafts_kept(const Context& context, const DaemonStatus& daemon) {
  const auto kept = said(daemon, "", "drafts_keep_seconds");
  if (kept) return std::chrono::seconds(*kept);
  return configured_drafts_keep(context.environment().config_file, context.store_path());
}

Status count_memory(Store& store, Facts& facts) {
  WEFT_TRY(const auto snapshot, store.snapshot());
  WEFT_TRY(const std::vector<VersionId> noted, snapshot->in_memory(0, SIZE_MAX));
  for (const VersionId id : noted) {
    WEFT_TRY(VersionRow row, snapshot->version(id));
    const bool here = !store.cluster() || row.publisher == store.cluster()->node;
    InMemory& whose = here ? facts.in_memory : facts.in_memory_elsewhere;
    if (whose.versions++ == 0) whose.oldest = std::move(row);
  }
  return {};
}

Result<Facts> collect(const Context& context) {
  Facts facts;
  WEFT_TRY(auto store, context.open_to_read());
  facts.info = store->info();
  facts.clustered = store->cluster().has_value();
  WEFT_TRY(facts.counts, store->counts());
  WEFT_CHECK(count_memory(*store, facts));
  facts.assembled = assembled_usage(*store);
  if (auto state = read_scrub_state(store->path()); state.ok()) facts.scrub = std::move(state->last);
  std::error_code error;
  facts.store = std::filesystem::canonical(context.store_path(), error).string();
  if (error) return sys_error(error.value(), context.store_path());
  facts.free_bytes = std::filesystem::space(facts.store, error).available;
  if (error) return sys_error(error.value(), facts.store);
  facts.daemon = ask_daemon(context, kMountAnswerMax);
  WEFT_TRY(facts.drafts_kept, drafts_kept(context, facts.daemon));
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
      .member("in_memory", facts.in_memory.versions)
      .member("in_memory_elsewhere", facts.in_memory_elsewhere.versions)
      .member("lost", counts.lost)
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
  return fmt::format("in {}", count_of(static_cast<std::uint64_t>((left + 3599) / 3600), "hour"));
}

std::string in_memory_text(const Facts& facts) {
  std::string text;
  const auto oldest = [](const InMemory& memory) {
    return fmt::format("the oldest is {}, since {}", spec_of(memory.oldest.model_name, memory.oldest.number),
                       utc_time(memory.oldest.time_ns));
  };
  if (const InMemory& here = facts.in_memory; here.versions > 0) {
    const auto bytes = said(facts.daemon, "memory", "bytes");
    text +=
        fmt::format("memory    {}, {}; {}\n", count_of(here.versions, "version"),
                    bytes ? human_bytes(*bytes) + " not on the disk yet" : "which weftd takes to the disk when it runs",
                    oldest(here));
  }
  if (const InMemory& other = facts.in_memory_elsewhere; other.versions > 0) {
    text += fmt::format("memory    {} of other nodes; {}", count_of(other.versions, "version"), oldest(other));
    const std::uint64_t away = said(facts.daemon, "memory", "elsewhere_away").value_or(0);
    text += away == 0 ? "\n" : fmt::format("; {} until a node comes back that is away\n", away);
  }
  return text;
}

// Returns the lines about removed versions: held by weftd, open in readers, lost.
std::string removed_text(const Facts& facts) {
  std::string text;
  const StoreCounts& counts = facts.counts;
  const std::uint64_t held = std::min(said(facts.daemon, "", "held_versions").value_or(0), counts.open_removed);
  if (held > 0)
    text +=
        fmt::format("removed   {}, which weftd keeps for gc_delay; the first goes in {}\n", count_of(held, "version"),
                    count_of((said(facts.daemon, "", "held_seconds").value_or(0) + 59) / 60, "minute"));
  if (counts.open_removed > held)
    text += fmt::format("open      {}, kept until closed\n", count_of(counts.open_removed - held, "removed version"));
  if (const VersionRow& last = counts.newest_lost; counts.lost > 0)
    text += fmt::format("lost      {}; the last is {}, {}: {}\n", count_of(counts.lost, "version"),
                        spec_of(last.model_name, last.number), utc_time(last.removed_ns), printable(last.lost, 1000));
  return text;
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
  text += in_memory_text(facts) + removed_text(facts);
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

// Returns what is wrong with the daemon, as one line of text. The line is empty if nothing is.
std::string_view wrong_with_daemon(const Facts& facts) {
  if (facts.daemon.runs && facts.daemon.json.empty()) return "weftd runs here, but does not answer";
  if (!facts.daemon.runs && facts.clustered)
    return "weftd does not run here: a node of a cluster cannot publish or fetch without it (systemctl start weftd)";
  return "";
}

class StatusCommand final : public Command {
 public:
  Result<int> run(Context& context) override {
    WEFT_TRY(Facts facts, collect(context));
    if (context.json)
      context.print_json(json_of(facts));
    else
      context.print("{}", text_of(facts));
    const std::string_view wrong = wrong_with_daemon(facts);
    if (wrong.empty()) return kExitDone;
    context.note(wrong);
    return kExitFailed;
  }
};

}  // namespace

constinit const CommandEntry kStatusCommand = {kInfo, make<StatusCommand>};

}  // namespace weft
