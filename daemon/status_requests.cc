// Status of the daemon, for every user who may connect.
#include <unistd.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "daemon/parts.h"
#include "daemon/serve.h"
#include "os/programs.h"
#include "weft/store/scrub.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

constexpr double kSecondNs = 1e9;

void write_registry(JsonWriter& json, const Registry& registry) {
  const RegistryStatus status = registry.status();
  json.begin_object().member("kind", status.shared ? "etcd" : "local").member("connected", status.connected);
  json.member("complete", status.complete).member("lost", status.lost).member("generation", status.generation);
  json.member("since", utc_time(status.since_ns)).member("endpoint", status.endpoint);
  json.member("trouble", status.trouble).member("revision", status.revision);
  json.member("requests", status.requests).member("changes", status.changes).member("lists", status.lists);
  json.member("watches", status.watches).member("refused", status.refused).key("refusals").begin_array();
  for (const std::string& refusal : status.refusals) json.value(refusal);
  json.end_array().end_object();
}

// Versions that exist only in the memory of other nodes. `away`: those whose node is no member.
struct Elsewhere {
  std::uint64_t versions = 0, away = 0;
  std::uint64_t oldest_ns = 0;
};

Result<Elsewhere> in_memory_elsewhere(const DaemonParts& parts) {
  Elsewhere found;
  if (!parts.store.cluster()) return found;
  const std::vector<Member> members = parts.registry.members();
  WEFT_TRY(const auto snapshot, parts.store.snapshot());
  WEFT_TRY(const std::vector<VersionId> noted, snapshot->in_memory(0, SIZE_MAX));
  for (const VersionId id : noted) {
    WEFT_TRY(const VersionRow row, snapshot->version(id));
    if (row.publisher == parts.store.cluster()->node) continue;
    if (found.versions++ == 0) found.oldest_ns = row.time_ns;
    if (std::ranges::find(members, row.publisher, &Member::node) == members.end()) ++found.away;
  }
  return found;
}

void write_memory_status(JsonWriter& json, DaemonParts& parts) {
  const FlushStatus memory = parts.memory.status();
  json.key("memory").begin_object().member("versions", memory.versions).member("bytes", memory.bytes);
  json.member("bytes_max", parts.config.get()->memory_max).member("oldest_ns", memory.oldest_ns);
  json.member("kept", memory.kept).member("lost", memory.lost).member("problem", memory.problem);
  const auto elsewhere = in_memory_elsewhere(parts);
  if (elsewhere.ok()) {
    json.member("elsewhere", elsewhere->versions).member("elsewhere_oldest_ns", elsewhere->oldest_ns);
    json.member("elsewhere_away", elsewhere->away);
  }
  json.end_object();
}

std::string text_answer(std::string_view text) {
  JsonWriter json;
  json.begin_object().member("text", text).end_object();
  return json.take();
}

// Returns the members without those whose daemons have another key. This node and they refuse each other.
std::vector<Member> members_with_key(const DaemonParts& parts) {
  std::vector<Member> members = parts.registry.members();
  const Peers* peers = parts.bytes.peers;
  if (peers != nullptr) std::erase_if(members, [peers](const Member& member) { return !peers->holds_key(member); });
  return members;
}

Result<PeerList> peers(control::Call& /*call*/, const Nothing& /*request*/, DaemonParts& parts) {
  PeerList list;
  for (const Member& member : members_with_key(parts))
    list.peers.push_back(
        {member.node, member.name, member.address, member.provider, utc_time(member.since_ns), member.since_ns});
  for (const KnownNode& node : parts.registry.nodes())
    if (!node.present) list.absent.push_back({node.node, node.name, utc_time(node.last_ns), node.last_ns});
  const RegistryStatus registry = parts.registry.status();
  list.stale = !registry.connected;
  if (list.stale) list.trouble = fmt::format("since {}: {}", utc_time(registry.since_ns), registry.trouble);
  return list;
}

Result<Nothing> mount(control::Call& call, const MountFigures& figures, DaemonParts& parts) {
  parts.mounts.report(call.peer().uid, figures);
  return Nothing{};
}

using Labels = std::vector<std::pair<std::string, std::string>>;

Labels labels_of(const MountTable::Mount& mount) {
  return {{"directory", mount.figures.directory}, {"uid", std::to_string(mount.user)}};
}

// Adds the samples of one kind of requests to those of a histogram.
void add_latencies(std::vector<Figures::Sample>& samples, const Labels& mount, const MountRequests& requests) {
  Labels labels = mount;
  labels.emplace_back("request", requests.kind);
  double count = 0;
  for (std::size_t i = 0; i < requests.took.size(); ++i) {
    count += static_cast<double>(requests.took[i]);
    const bool bound = i < kLatencyBoundsNs.size();
    Labels bucket = labels;
    bucket.emplace_back("le", bound ? fmt::format("{}", static_cast<double>(kLatencyBoundsNs[i]) / kSecondNs) : "+Inf");
    samples.push_back({std::move(bucket), count, "_bucket"});
  }
  samples.push_back({labels, static_cast<double>(requests.nanoseconds) / kSecondNs, "_sum"});
  samples.push_back({std::move(labels), count, "_count"});
}

}  // namespace

std::string status_json(DaemonParts& parts, const control::Server& server) {
  const auto config = parts.config.get();
  JsonWriter json;
  json.begin_object().member("weft", WEFT_VERSION).member("pid", std::uint64_t{static_cast<unsigned>(::getpid())});
  json.member("program", own_program()).member("since", utc_time(parts.since_ns)).member("name", config->name);
  json.member("provider", config->provider).member("origin", config->origin);
  json.member("location", config->location);
  json.member("cluster", config->clustered() ? config->etcd.cluster : "").member("cache_max", config->cache_max);
  json.member("cold", config->cold).member("sparse_setting", config->sparse);
  json.member("expect_others", config->expect_others);
  json.member("drafts_keep_seconds", static_cast<std::uint64_t>(config->drafts_keep.count()));
  json.member("gc_delay_seconds", static_cast<std::uint64_t>(config->gc_delay.count()));
  json.member("connections", std::uint64_t{server.connections()}).member("requests", parts.figures.requests());
  const auto scrubbed = read_scrub_state(parts.store.path());
  json.key("scrub");
  write_scrub(json, scrubbed.ok() ? scrubbed->last : std::nullopt);
  json.member("peers", std::uint64_t{members_with_key(parts).size()}).key("registry");
  write_registry(json, parts.registry);
  write_bytes_status(json, parts.bytes);
  write_memory_status(json, parts);
  const HeldVersions held = parts.auto_gc.held();
  json.member("held_versions", held.versions);
  json.member("held_seconds", static_cast<std::uint64_t>(held.next_release.count()));
  if (parts.bytes.peers != nullptr) write_peers_status(json, parts.store, *parts.bytes.peers);
  json.end_object();
  return json.take();
}

void serve_status(control::Server& server, DaemonParts& parts) {
  using control::Call;
  server.on("status", control::Runs::own_thread,
            [&parts, &server](const std::shared_ptr<Call>& call) { call->answer(status_json(parts, server)); });
  serve(server, parts, "peers", peers);
  serve(server, parts, "mount", mount);
  server.on("metrics", control::Runs::own_thread,
            [&parts](const std::shared_ptr<Call>& call) { call->answer(text_answer(parts.figures.text())); });
}

void add_mount_figures(Figures& figures, const MountTable& mounts) {
  figures.add("weft_mounts", "gauge", "Mounts of the store that report to this daemon.",
              [&mounts] { return static_cast<double>(mounts.mounts().size()); });
  const auto add = [&](const char* name, const char* type, const char* help, auto member) {
    figures.add(name, type, help, Figures::Read([&mounts, member] {
                  std::vector<Figures::Sample> samples;
                  for (const MountTable::Mount& mount : mounts.mounts())
                    samples.push_back({labels_of(mount), static_cast<double>(mount.figures.*member)});
                  return samples;
                }));
  };
  add("weft_mount_passthrough", "gauge", "1 if the kernel reads files of the mount itself.",
      &MountFigures::passthrough);
  add("weft_mount_passthrough_refused_total", "counter", "Opens for which the kernel refused passthrough.",
      &MountFigures::passthrough_refused);
  add("weft_mount_restarts_total", "counter", "Servers of the mount that were lost.", &MountFigures::restarts);
  figures.add("weft_mount_request_duration_seconds", "histogram", "Duration of requests to the server of the mount.",
              Figures::Read([&mounts] {
                std::vector<Figures::Sample> samples;
                for (const MountTable::Mount& mount : mounts.mounts())
                  for (const MountRequests& requests : mount.figures.requests)
                    add_latencies(samples, labels_of(mount), requests);
                return samples;
              }));
}

void add_node_figures(Figures& figures, DaemonParts& parts, const control::Server& server) {
  const auto registry = [&parts](auto member) {
    return [&parts, member] { return static_cast<double>(parts.registry.status().*member); };
  };
  figures.add("weft_control_connections", "gauge", "Connections to the control socket.",
              [&server] { return static_cast<double>(server.connections()); });
  figures.add("weft_peers", "gauge", "Daemons in the cluster that hold its key, including this one.",
              [&parts] { return static_cast<double>(members_with_key(parts).size()); });
  const auto scrub = [&parts](auto member) {
    return [&parts, member] {
      std::vector<Figures::Sample> samples;
      const auto state = read_scrub_state(parts.store.path());
      if (state.ok() && state->last) samples.push_back({{}, static_cast<double>((*state->last).*member)});
      return samples;
    };
  };
  figures.add("weft_scrub_problems", "gauge", "Problems that the last complete scrub found.",
              Figures::Read(scrub(&ScrubPass::problems)));
  figures.add("weft_scrub_bytes", "gauge", "Bytes that the last complete scrub read.",
              Figures::Read(scrub(&ScrubPass::bytes)));
  figures.add("weft_scrub_ended_timestamp_seconds", "gauge", "End of the last complete scrub, in seconds since 1970.",
              Figures::Read([ended = scrub(&ScrubPass::ended_ns)] {
                auto samples = ended();
                for (auto& sample : samples) sample.value /= 1e9;
                return samples;
              }));
  const auto memory = [&parts](auto member) {
    return [&parts, member] { return static_cast<double>(parts.memory.status().*member); };
  };
  figures.add("weft_memory_versions", "gauge", "Versions of this node that are only in its memory yet.",
              memory(&FlushStatus::versions));
  figures.add("weft_memory_bytes", "gauge", "Bytes of this node's versions that are only in its memory yet.",
              memory(&FlushStatus::bytes));
  figures.add("weft_memory_lost_total", "counter",
              "Versions of this node that were lost because the machine had stopped before a disk had them.",
              memory(&FlushStatus::lost));
  figures.add("weft_registry_connected", "gauge", "1 while changes of other nodes arrive.",
              registry(&RegistryStatus::connected));
  figures.add("weft_registry_revision", "gauge", "Revision of the registry up to which the store mirrors it.",
              registry(&RegistryStatus::revision));
  figures.add("weft_registry_request_duration_seconds", "summary", "Duration of requests to etcd.",
              Figures::Read([&parts] {
                const RegistryStatus status = parts.registry.status();
                return std::vector<Figures::Sample>{{{}, static_cast<double>(status.request_ns) / kSecondNs, "_sum"},
                                                    {{}, static_cast<double>(status.requests), "_count"}};
              }));
  figures.add("weft_registry_request_failures_total", "counter", "Requests to etcd without a good answer.",
              registry(&RegistryStatus::failed_requests));
  figures.add("weft_registry_changes_total", "counter", "Changes that were mirrored.",
              registry(&RegistryStatus::changes));
  figures.add("weft_registry_refused_total", "counter", "Values of the registry that did not verify.",
              registry(&RegistryStatus::refused));
}

}  // namespace weft
