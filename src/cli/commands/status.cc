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
#include "cli/shared/daemon_version.h"
#include "cli/shared/json_lines.h"
#include "cli/shared/mounts.h"
#include "cli/shared/swarm_lines.h"
#include "cli/shared/table.h"
#include "daemon_api/health.h"
#include "drafts/old_drafts.h"
#include "os/sys.h"
#include "weft/store/assembly.h"
#include "weft/store/scrub.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

struct DaemonStatus {
  bool runs = false;
  std::optional<JsonValue> answer;  // none if the daemon does not answer
  std::vector<std::string> lines;   // "key: value", without empty values
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
  auto answer = context.ask(**daemon, "status", "", std::move(options));
  if (!answer.ok()) return status;
  add_lines(answer->body, "", status.lines);
  status.answer = std::move(answer->body);
  return status;
}

// Asks the daemon of a cluster's node for the verdict. Nothing if it does not answer in time.
std::optional<HealthReport> ask_health(const Context& context, std::chrono::milliseconds patience) {
  const auto daemon = context.daemon();
  if (!daemon.ok() || !*daemon) return {};
  control::CallOptions options;
  options.patience = patience;
  const auto answer = context.ask(**daemon, "health", encode_fields(HealthRequest{}), std::move(options));
  if (!answer.ok()) return {};
  auto report = decode_fields<HealthReport>(answer->body);
  return report.ok() ? std::optional(*std::move(report)) : std::nullopt;
}

constexpr CommandInfo kStatusInfo = {
    .name = "status",
    .summary = "show the store, its content, its mounts and its daemon",
    .description =
        "Says which store this is and why, and ends with a verdict: healthy, or what is\n"
        "wrong and the command against it. On a node of a cluster the last line is the\n"
        "verdict on the whole cluster, which `weft health` explains. --all shows all that\n"
        "the store, the daemon and the mounts (.weft/status) know. A mount or a daemon that\n"
        "does not answer within two seconds is shown as not answering. The exit status is 1\n"
        "if the daemon does not answer, or if a node of a cluster has none.\n",
    .examples =
        "weft status\n"
        "weft status --all\n",
    .json =
        "{store, chosen_by, program, version, healthy, problems: [TEXT], uuid, format,\n"
        " created, models, versions, open_removed, in_memory,\n"
        " in_memory_elsewhere, lost, tags, blobs, views, packs, blob_bytes, dead_bytes,\n"
        " pack_disk_bytes, free_bytes,\n"
        " assembled_files, assembled_bytes, assembled_bytes_max, scrub,\n"
        " mounts: [{directory, status}],\n"
        " drafts: [{path, bytes, unwritten_seconds}], daemon,\n"
        " clocks: [{name, node, clock_offset_seconds, clock_ahead, clock_error_seconds}],\n"
        " cluster_health};\n"
        "drafts are those that gc removes within a day; scrub is the last complete scrub,\n"
        "{begun, ended, packs, blobs, bytes, problems, lines: [TEXT]}, or null; status is\n"
        ".weft/status of that mount, or null; daemon is its own status, or null;\n"
        "clocks are those of other nodes, as `weft health` compared them; cluster_health is\n"
        "the verdict of `weft health`, or null\n",
};

constexpr std::chrono::milliseconds kMountAnswerMax{2000};
constexpr std::chrono::seconds kOneDay = std::chrono::hours(24);
constexpr std::uint64_t kFreePart = 20;  // a disk with less than this part free is nearly full
constexpr std::string_view kTrouble = "registry trouble: ";
constexpr std::string_view kLost = "registry lost: ";

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
  std::string store;      // absolute path
  std::string chosen_by;  // Context::ChosenStore::by
  std::string program;    // path of this weft
  StoreInfo info;
  bool clustered = false;
  StoreCounts counts;
  InMemory in_memory, in_memory_elsewhere;  // versions of this node, and of other nodes of its cluster
  AssembledUsage assembled;
  std::optional<ScrubPass> scrub;  // the last complete pass
  std::uint64_t free_bytes = 0;    // on the store's file system, for this user
  std::uint64_t disk_bytes = 0;    // size of that file system
  std::vector<MountStatus> mounts;
  DaemonStatus daemon;
  std::optional<HealthReport> health;  // of the cluster; none if the daemon did not judge it in time
  std::string daemon_version;          // version_problem() of the daemon
  std::vector<OldDraft> drafts;        // drafts that gc removes within a day
  std::chrono::seconds drafts_kept{0};
};

// Returns the number `name` of the daemon's status, inside `object` unless that is "". Nothing if there is none.
std::optional<std::uint64_t> said(const DaemonStatus& daemon, std::string_view object, std::string_view name) {
  if (!daemon.answer) return {};
  const JsonValue* const from = object.empty() ? &*daemon.answer : daemon.answer->find(object);
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
  facts.chosen_by = context.chosen_store().by;
  facts.store = std::filesystem::canonical(context.store_path(), error).string();
  if (error) return sys_error(error.value(), context.store_path());
  const auto space = std::filesystem::space(facts.store, error);
  facts.free_bytes = space.available;
  facts.disk_bytes = space.capacity;
  if (error) return sys_error(error.value(), facts.store);
  facts.program = context.environment().program;
  facts.daemon = ask_daemon(context, kMountAnswerMax);
  if (facts.daemon.answer && facts.clustered) facts.health = ask_health(context, kMountAnswerMax);
  if (facts.daemon.answer) facts.daemon_version = version_problem(*facts.daemon.answer, context.environment());
  WEFT_TRY(facts.drafts_kept, drafts_kept(context, facts.daemon));
  WEFT_TRY(facts.drafts, old_drafts(facts.store, std::max(facts.drafts_kept - kOneDay, std::chrono::seconds(0))));
  WEFT_TRY(auto mounts, weft_mounts());
  for (const WeftMount& mount : mounts)
    if (mount.store == facts.store) facts.mounts.push_back(ask(mount));
  return facts;
}

// Returns the problem of the daemon, with the command against it; "" if there is none. The command fails for these
// problems only.
std::string_view wrong_with_daemon(const Facts& facts) {
  if (facts.daemon.runs && !facts.daemon.answer) return "weftd does not answer: `journalctl -u weftd` has its log";
  if (!facts.daemon.runs && facts.clustered)
    return "weftd does not run here, and a node of a cluster cannot publish or fetch without it: "
           "`systemctl start weftd`";
  return "";
}

// Returns a line for each problem of the store, with the command against it. A store without problems is healthy.
std::vector<std::string> problems_of(const Facts& facts) {
  std::vector<std::string> problems;
  const StoreCounts& counts = facts.counts;
  if (facts.scrub && facts.scrub->problems > 0)
    problems.push_back(
        fmt::format("the last scrub found {}: `weft fsck --repair`", count_of(facts.scrub->problems, "problem")));
  if (const VersionRow& last = counts.newest_lost; counts.lost > 0)
    problems.push_back(fmt::format("{} lost, the last is {}: `weft log {}` says why", count_of(counts.lost, "version"),
                                   spec_of(last.model_name, last.number), last.model_name));
  if (facts.free_bytes < facts.disk_bytes / kFreePart)
    problems.push_back(fmt::format("the disk has {} free of {}: `weft gc`, or `weft rm` first",
                                   human_bytes(facts.free_bytes), human_bytes(facts.disk_bytes)));
  if (const std::string_view wrong = wrong_with_daemon(facts); !wrong.empty()) problems.emplace_back(wrong);
  if (!facts.daemon_version.empty()) problems.push_back(facts.daemon_version);
  if (!facts.daemon.runs && facts.in_memory.versions > 0)
    problems.push_back(
        fmt::format("{} only in memory and no weftd runs: start weftd", count_of(facts.in_memory.versions, "version")));
  for (const std::string& line : facts.daemon.lines)
    if (line.starts_with(kTrouble))
      problems.push_back(fmt::format("etcd: {}: `weft peers`, and the log of weftd", line.substr(kTrouble.size())));
    else if (line.starts_with(kLost) && line.size() > kLost.size())
      problems.push_back(
          fmt::format("the registry has lost history ({}), so no node changes names: `weft cluster "
                      "reconcile`",
                      line.substr(kLost.size())));
  for (const MountStatus& mount : facts.mounts)
    if (mount.json.empty())
      problems.push_back(fmt::format("the mount {0} does not answer: `weft umount --lazy {0}`, then `weft mount {0}`",
                                     mount.directory));
  return problems;
}

void write_clocks(JsonWriter& json, const Facts& facts) {
  json.key("clocks").begin_array();
  for (const NodeFacts* node : facts.health ? compared_clocks(facts.health->facts) : std::vector<const NodeFacts*>()) {
    json.begin_object().member("name", node->name).member("node", node->node);
    json.key("clock_offset_seconds").value(node->clock_offset_seconds);
    json.member("clock_ahead", node->clock_ahead);
    json.key("clock_error_seconds").value(node->clock_error_seconds).end_object();
  }
  json.end_array();
}

JsonWriter json_of(const Facts& facts) {
  const StoreCounts& counts = facts.counts;
  const std::vector<std::string> problems = problems_of(facts);
  JsonWriter json;
  json.begin_object().member("store", facts.store).member("chosen_by", facts.chosen_by);
  json.member("program", facts.program).member("version", WEFT_VERSION);
  json.member("healthy", problems.empty());
  write_lines(json, "problems", problems);
  json.member("uuid", facts.info.uuid);
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
  if (facts.daemon.answer)
    write_json(json, *facts.daemon.answer);
  else
    json.null();
  write_clocks(json, facts);
  json.key("cluster_health");
  facts.health ? json.value(facts.health->verdict) : json.null();
  json.end_object();
  return json;
}

std::string_view does(const DaemonStatus& daemon) {
  if (!daemon.runs) return "none";
  return daemon.answer ? "runs" : "runs, but does not answer";
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

std::string store_text(const Facts& facts) {
  return fmt::format("store     {}, by {}\n", facts.store, facts.chosen_by);
}

std::string content_text(const Facts& facts) {
  const StoreCounts& counts = facts.counts;
  std::string text;
  text +=
      fmt::format("content   {}, {}, {}, {}\n", count_of(counts.models, "model"), count_of(counts.versions, "version"),
                  count_of(counts.tags, "tag"), count_of(counts.blobs, "blob"));
  text +=
      fmt::format("space     {} needed, {} for `weft gc`, {} on disk in {}, {} free\n", human_bytes(counts.blob_bytes),
                  human_bytes(counts.dead_bytes), human_bytes(counts.pack_disk_bytes), count_of(counts.packs, "pack"),
                  human_bytes(facts.free_bytes));
  return text;
}

std::string scrub_text(const Facts& facts) {
  return facts.scrub ? fmt::format("scrubbed  {}, {} read, {}\n", utc_time(facts.scrub->ended_ns),
                                   human_bytes(facts.scrub->bytes), count_of(facts.scrub->problems, "problem"))
                     : "scrubbed  never completely\n";
}

std::string program_text(const Facts& facts) {
  return fmt::format("program   {}, version {}\n", facts.program, WEFT_VERSION);
}

// Returns a line about the clock that differs most, or with `all` one for each node. "" without other members.
std::string clocks_text(const Facts& facts, bool all) {
  if (!facts.health) return "";
  const ClusterHealth& known = facts.health->facts;
  const auto others = std::ranges::count_if(known.nodes, [](const NodeFacts& one) { return one.present && !one.self; });
  if (others == 0) return "";
  const auto compared = compared_clocks(known);
  if (compared.empty()) return "clocks    not compared by this node: `weft health`\n";
  std::string text;
  if (!all)
    text = fmt::format("clocks    {} of {} compared, farthest {} {}\n", compared.size(),
                       count_of(static_cast<std::uint64_t>(others), "other node"), printable(compared.front()->name),
                       *clock_text(*compared.front()));
  else
    for (const NodeFacts* node : compared)
      text += fmt::format("clock     {} {}\n", printable(node->name), *clock_text(*node));
  return text;
}

std::string verdict_text(const Facts& facts) {
  const std::vector<std::string> problems = problems_of(facts);
  std::string text;
  for (const std::string& problem : problems) text += fmt::format("problem   {}\n", problem);
  if (problems.empty()) text += "healthy\n";
  if (!facts.clustered) return text;
  if (!facts.health) return text + "cluster   unknown: weftd did not judge it in time\n";
  const std::string verdict = verdict_line(facts.health->findings);
  return text + fmt::format("cluster   {}{}\n", verdict, facts.health->findings.empty() ? "" : ": `weft health`");
}

// Returns about ten lines: what there is, and the verdict.
std::string brief_text(const Facts& facts) {
  std::string text = store_text(facts) + content_text(facts) + in_memory_text(facts) + scrub_text(facts);
  if (!facts.drafts.empty())
    text += fmt::format("drafts    {} that gc removes within a day\n", count_of(facts.drafts.size(), "draft"));
  std::vector<std::string> mounts;
  for (const MountStatus& mount : facts.mounts) mounts.push_back(mount.directory);
  text += fmt::format("mounts    {}\n", mounts.empty() ? "none" : first_of(mounts, mounts.size()));
  text += fmt::format("daemon    {}\n", does(facts.daemon));
  return text + clocks_text(facts, false) + program_text(facts) + verdict_text(facts);
}

std::string facts_text(const Facts& facts) {
  std::string text = store_text(facts);
  text += fmt::format("made      {}, format {}\n", utc_time(facts.info.created_ns), facts.info.format);
  text += content_text(facts);
  text += in_memory_text(facts) + removed_text(facts);
  text += fmt::format("assembled {}, {} of at most {}\n", count_of(facts.assembled.files, "file"),
                      human_bytes(facts.assembled.bytes), human_bytes(facts.assembled.bytes_max));
  text += scrub_text(facts);
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
  if (facts.daemon.answer)
    for (const std::string& line : swarm_lines(*facts.daemon.answer)) text += fmt::format("swarm     {}\n", line);
  return text + clocks_text(facts, true) + program_text(facts) + verdict_text(facts);
}

class StatusCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.flag("--all", all_, "show all that the store, the daemon and the mounts know");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(Facts facts, collect(context));
    if (context.json)
      context.print_json(json_of(facts));
    else
      context.print("{}", all_ ? facts_text(facts) : brief_text(facts));
    return wrong_with_daemon(facts).empty() ? kExitDone : kExitFailed;
  }

 private:
  bool all_ = false;
};

}  // namespace

constinit const CommandEntry kStatusCommand = {kStatusInfo, make<StatusCommand>};

}  // namespace weft
