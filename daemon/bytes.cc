#include "daemon/bytes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "daemon_api/cold_wire.h"
#include "os/file_ops.h"
#include "weft/cluster/origin.h"
#include "weft/store/snapshot.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

std::vector<std::shared_ptr<BlobSource>> sources_of(const Config& config, const Peers* peers,
                                                    const std::shared_ptr<PaceGate>& gate) {
  std::vector<std::shared_ptr<BlobSource>> sources;
  if (peers != nullptr) sources.push_back(peers->source());
  if (!config.origin.empty()) sources.push_back(origin_source(config.origin, gate));
  return sources;
}

// With the origin as the only source, two threads read, two hash and write, and two wait to read. With fewer threads
// the origin's disk would be idle whenever two reads end together.
constexpr unsigned kThreadsAlone = 6;
constexpr unsigned kThreadsWithPeers = 8;  // several peers, with a few reads from each
constexpr std::size_t kResolvedAtOnce = 256;

FetchPolicy policy_of(const Config& config) {
  FetchPolicy policy;
  if (config.cache_max > 0) policy.cache_max = config.cache_max;
  policy.cold = cold_policy_named(config.cold).value_or(ColdPolicy::automatic);
  policy.sparse = config.sparse == "auto";
  policy.expect_others = config.expect_others;
  return policy;
}

// True if the node is a member, or if the registry is not connected and members are unknown.
bool is_member(const Registry& registry, const std::string& node) {
  if (!registry.status().connected) return true;
  const auto members = registry.members();
  return std::ranges::find(members, node, &Member::node) != members.end();
}

FetchOptions options_of(const Registry& registry, Peers* peers, std::shared_ptr<Repairs> repairs,
                        std::shared_ptr<PaceGate> gate) {
  FetchOptions options;
  options.gate = std::move(gate);
  options.damaged = [repairs = std::move(repairs)](const ContentId& id) { repairs->add(id); };
  options.is_there = [&registry](const std::string& publisher) { return is_member(registry, publisher); };
  options.threads = peers == nullptr ? kThreadsAlone : kThreadsWithPeers;
  if (peers == nullptr) return options;
  options.swarms = &peers->swarms();
  return options;
}

std::vector<SourceCount> counts_of(FetchStatus status) {
  status.sources.insert(status.sources.begin(), std::move(status.local));
  return std::move(status.sources);
}

double changed_share(const CodedCounts& counts) {
  return counts.elements == 0 ? 0 : static_cast<double>(counts.changed) / static_cast<double>(counts.elements);
}

std::uint64_t saved_bytes(const CodedCounts& counts) {
  return counts.same_bytes + counts.asked_bytes - std::min(counts.asked_bytes, counts.given_bytes);
}

// Writes the counts of chunks that this node requested as differences, and of chunks that it coded for peers. For the
// last version that was fetched with a base: the bytes equal to the base, and the share of changed elements.
void write_sparse(JsonWriter& json, const Bytes& bytes, const FetchStatus& fetched) {
  json.key("sparse").begin_object().member("asked", fetched.coded.asked).member("coded", fetched.coded.coded);
  json.member("plain", fetched.coded.plain).member("failed", fetched.coded.failed);
  json.member("saved_bytes", saved_bytes(fetched.coded));
  const CodedVersion last = fetched.last_coded.value_or(CodedVersion{});
  json.member("version", last.version).member("base", last.base);
  json.member("version_bytes", last.counts.asked_bytes + last.counts.same_bytes);
  json.member("version_same_bytes", last.counts.same_bytes);
  json.member("version_given_bytes", last.counts.given_bytes);
  json.member("version_changed_ppm", static_cast<std::uint64_t>(std::llround(1e6 * changed_share(last.counts))));
  const CodedCache::Figures here = bytes.peers == nullptr ? CodedCache::Figures{} : bytes.peers->coded();
  json.member("coded_here", here.coded).member("coded_before", here.found).member("not_worth_it", here.plain);
  json.member("cache_bytes", here.bytes).end_object();
}

void add_sparse_figures(Figures& figures, Bytes& bytes) {
  figures.add("weft_sparse_chunks_total", "counter",
              "Chunks that this node asked for as differences, by how they came; failed: of no use, and fetched again.",
              Figures::Read([&bytes] {
                const CodedCounts counts = bytes.fetcher.status().coded;
                const auto sample = [](const char* how, std::uint64_t count) {
                  return Figures::Sample{{{"how", how}}, static_cast<double>(count)};
                };
                return std::vector{sample("coded", counts.coded), sample("plain", counts.plain),
                                   sample("failed", counts.failed)};
              }));
  const auto of_status = [&bytes](auto value) {
    return std::function<double()>([&bytes, value] { return static_cast<double>(value(bytes.fetcher.status())); });
  };
  figures.add("weft_sparse_saved_bytes_total", "counter",
              "Bytes that were not sent: differences were, or the base has them.",
              of_status([](const FetchStatus& status) { return saved_bytes(status.coded); }));
  figures.add("weft_sparse_changed_ratio", "gauge",
              "Share of the elements that changed in the last version that was fetched with a base.",
              of_status([](const FetchStatus& status) {
                return status.last_coded ? changed_share(status.last_coded->counts) : 0.0;
              }));
  const auto of_cache = [&bytes](auto member) {
    return std::function<double()>(
        [&bytes, member] { return bytes.peers == nullptr ? 0.0 : static_cast<double>(bytes.peers->coded().*member); });
  };
  figures.add("weft_sparse_coded_total", "counter", "Chunks that this node coded for peers.",
              of_cache(&CodedCache::Figures::coded));
  figures.add("weft_sparse_cache_bytes", "gauge", "Memory used by coded chunks.",
              of_cache(&CodedCache::Figures::bytes));
}

constexpr auto kSizesEvery = std::chrono::seconds(60);
constexpr auto kReachPatience = std::chrono::seconds(2);

Result<StoreSizes> sizes_of(ClusterStore& store) {
  StoreSizes sizes;
  WEFT_TRY(sizes.counts, store.counts());
  WEFT_TRY(const std::vector<VersionId> unsaved, all_ids(store, &Snapshot::unsaved));
  for (const VersionId version : unsaved) {
    WEFT_TRY(const auto snapshot, store.snapshot());
    const auto row = snapshot->version(version);
    if (row.ok()) sizes.unsaved_bytes += row->logical_bytes;
  }
  return sizes;
}

Result<bool> is_origin_reachable(ClusterStore& store, const std::string& origin) {
  WEFT_TRY(const std::string known, store.ledger().origin());
  const std::string cluster = store.cluster() ? store.cluster()->cluster : "";
  return check_origin(origin, known, cluster, kReachPatience).ok();
}

// Returns no sample if there is no value.
Figures::Read sample_of(std::function<std::optional<double>()> value) {
  return [value = std::move(value)] {
    const std::optional<double> now = value();
    return now ? std::vector<Figures::Sample>{{{}, *now}} : std::vector<Figures::Sample>();
  };
}

void add_disk_figures(Figures& figures, Bytes& bytes) {
  const auto disk = [&bytes](auto member) {
    return sample_of([&bytes, member]() -> std::optional<double> {
      const auto space = disk_space(bytes.store.directory().root().fd());
      return space ? std::optional(static_cast<double>((*space).*member)) : std::nullopt;
    });
  };
  figures.add("weft_disk_free_bytes", "gauge", "Space that the file system of the store has for the daemon.",
              disk(&DiskSpace::available));
  figures.add("weft_disk_size_bytes", "gauge", "Size of the file system of the store.", disk(&DiskSpace::total));
}

}  // namespace

Bytes::Bytes(ClusterStore& of, LiveConfig& live, const Registry& registry, Peers* others,
             std::shared_ptr<PaceGate> paces)
    : store(of),
      config(live),
      peers(others),
      gate(std::move(paces)),
      fetcher(of, of.cache(), sources_of(*live.get(), others, gate), options_of(registry, others, repairs, gate)),
      sizes("sizes of the store", kSizesEvery, [&of] { return sizes_of(of); }),
      origin_reachable("origin", kSizesEvery, [&of, &live] { return is_origin_reachable(of, live.get()->origin); }) {
  configure();
  repairs->begin(store, store.cache(), fetcher);
  if (peers != nullptr) peers->begin(fetcher);
  if (const std::string& origin = live.get()->origin; !origin.empty())
    behind = std::make_unique<WriteBehind>(
        of, of.ledger(), origin, [&registry] { return registry.origin_collection(); }, steady_time(), gate);
}

void Bytes::configure() {
  const auto now = config.get();
  fetcher.set_policy(policy_of(*now));
  gate->set(now->rates);
}

Bytes::~Bytes() {
  if (peers != nullptr) peers->end();
  repairs->end();
}

Result<std::vector<Bytes::Unresolved>> Bytes::resolve_all(const std::function<bool()>& cancelled) {
  std::vector<Unresolved> left;
  std::map<std::string, Error> failed;  // by publisher
  for (VersionId from = 0;;) {
    std::vector<VersionRow> bare;
    {
      WEFT_TRY(const auto snapshot, store.snapshot());
      WEFT_TRY(const std::vector<VersionId> ids, snapshot->bare_versions(from, kResolvedAtOnce));
      for (const VersionId id : ids) {
        WEFT_TRY(bare.emplace_back(), snapshot->version(id));
      }
    }
    if (bare.empty()) return left;
    for (VersionRow& version : bare) {
      if (cancelled()) return Error{Errc::cancelled, "interrupted"};
      from = version.id + 1;
      const auto before = failed.find(version.publisher);
      const Status done = before == failed.end() ? fetcher.resolve(version.id) : before->second;
      if (done.ok() || done.error().code == Errc::not_found) continue;  // it was removed meanwhile
      failed.emplace(version.publisher, done.error());
      left.push_back({std::move(version), done.error()});
    }
  }
}

void write_bytes_status(JsonWriter& json, Bytes& bytes) {
  const FetchStatus fetched = bytes.fetcher.status();
  json.member("cache_bytes", bytes.fetcher.cache_bytes());
  json.key("fetched").begin_object().key("sources").begin_array();
  for (const SourceCount& source : counts_of(fetched)) {
    json.begin_object().member("name", source.name).member("reads", source.reads).member("bytes", source.bytes);
    json.member("failures", source.failures).end_object();
  }
  json.end_array().member("manifests", fetched.manifests).member("transfers", fetched.transfers);
  json.member("waiting", fetched.waiting).member("problem", fetched.problem).end_object();
  write_sparse(json, bytes, fetched);
  if (!bytes.behind) return;
  const WriteBehindStatus behind = bytes.behind->status();
  json.key("write_behind").begin_object().member("waiting", behind.waiting).member("active", behind.active);
  json.member("bytes_written", behind.bytes_written).member("versions_saved", behind.versions_saved);
  json.member("records_written", behind.records_written).member("problem", behind.problem).end_object();
}

void add_byte_figures(Figures& figures, Bytes& bytes) {
  const auto by_source = [&bytes](auto member) {
    return [&bytes, member] {
      std::vector<Figures::Sample> samples;
      for (const SourceCount& source : counts_of(bytes.fetcher.status()))
        samples.push_back({{{"source", source.name}}, static_cast<double>(source.*member)});
      return samples;
    };
  };
  figures.add("weft_fetched_bytes_total", "counter",
              "Bytes that were requested on this node, by their source; local: already on this node.",
              Figures::Read(by_source(&SourceCount::bytes)));
  figures.add("weft_fetches_total", "counter", "Reads of sources; local: requests for bytes that were local already.",
              Figures::Read(by_source(&SourceCount::reads)));
  figures.add("weft_fetch_failures_total", "counter", "Reads that failed or whose bytes did not verify.",
              Figures::Read(by_source(&SourceCount::failures)));
  figures.add("weft_fetched_manifests_total", "counter", "Manifests that were fetched.",
              [&bytes] { return static_cast<double>(bytes.fetcher.status().manifests); });
  add_sparse_figures(figures, bytes);
  figures.add("weft_open_removed_versions", "gauge",
              "Removed versions that stay complete because a reader has them open or gc_delay has not passed.",
              [&bytes] {
                const auto count = bytes.store.open_removed();
                return count.ok() ? static_cast<double>(*count) : 0.0;
              });
  figures.add("weft_cache_bytes", "gauge", "Disk space used by fetched bytes.",
              [&bytes] { return static_cast<double>(bytes.fetcher.cache_bytes()); });
  figures.add("weft_cache_limit_bytes", "gauge", "Limit of the disk space for fetched bytes; 0: none.",
              [&bytes] { return static_cast<double>(bytes.config.get()->cache_max); });
  figures.add("weft_unsaved_versions", "gauge", "Versions of this node that are not at the origin yet.",
              [&bytes] { return bytes.behind ? static_cast<double>(bytes.behind->status().waiting) : 0.0; });
}

void add_store_figures(Figures& figures, Bytes& bytes) {
  add_disk_figures(figures, bytes);
  const auto sizes = [&bytes](auto value) {
    return sample_of([&bytes, value]() -> std::optional<double> {
      const auto newest = bytes.sizes.newest();
      return newest ? std::optional(static_cast<double>(value(*newest))) : std::nullopt;
    });
  };
  const auto count = [&sizes](auto member) {
    return sizes([member](const StoreSizes& now) { return now.counts.*member; });
  };
  figures.add("weft_store_models", "gauge", "Models of the store.", count(&StoreCounts::models));
  figures.add("weft_store_versions", "gauge", "Versions of the store.", count(&StoreCounts::versions));
  figures.add("weft_store_lost_versions", "gauge", "Removed versions whose bytes were lost.",
              count(&StoreCounts::lost));
  figures.add("weft_store_needed_bytes", "gauge", "Bytes that versions need, each once; on this node or not.",
              count(&StoreCounts::blob_bytes));
  figures.add("weft_store_absent_bytes", "gauge", "Of these, bytes that this node lacks.",
              count(&StoreCounts::absent_bytes));
  figures.add("weft_store_dead_bytes", "gauge", "Bytes that no version needs, which gc frees.",
              count(&StoreCounts::dead_bytes));
  figures.add("weft_store_pack_bytes", "gauge", "Disk space of the packs.", count(&StoreCounts::pack_disk_bytes));
  if (!bytes.behind) return;
  figures.add("weft_unsaved_bytes", "gauge", "Size of the files of versions that are not at the origin yet.",
              sizes([](const StoreSizes& now) { return now.unsaved_bytes; }));
  figures.add("weft_origin_reachable", "gauge", "1 if the daemon can use the origin, 0 if not.",
              sample_of([&bytes]() -> std::optional<double> {
                const auto reachable = bytes.origin_reachable.newest();
                return reachable ? std::optional(*reachable ? 1.0 : 0.0) : std::nullopt;
              }));
}

}  // namespace weft
