#include <algorithm>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/listing_output.h"
#include "daemon_api/control_messages.h"
#include "weft/programs/operations.h"
#include "weft/store/assembly.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr CommandInfo kDuInfo = {
    .name = "du",
    .summary = "show the space of models and versions, and what sharing saves",
    .description =
        "LOGICAL is the size of the files. OWNED is the size of the bytes that a version\n"
        "was the first to bring, so the owned bytes of all versions add up to the stored\n"
        "bytes. SHARED is the rest. Without MODEL there is a line for each model, and\n"
        "with MODEL a line for each of its versions. Separate lines show the size of\n"
        "assembled files and the dead bytes that wait for `weft gc`.\n"
        "\n"
        "In a cluster, the manifest of a version of another node may be unavailable. Only\n"
        "the size of such a version is known. --origin shows what all nodes have at the\n"
        "cluster's origin, as this node's daemon sees it.\n",
    .examples =
        "weft du\n"
        "weft du bert\n"
        "weft du --origin\n",
    .json =
        "{models: [{model, versions: [{version, logical_bytes, owned_bytes,\n"
        " shared_bytes}], logical_bytes, owned_bytes, shared_bytes}], logical_bytes,\n"
        " owned_bytes, shared_bytes, assembled_bytes, assembled_bytes_max, dead_bytes,\n"
        " unknown_versions};\n"
        "with --origin: {path, packs, bytes, manifests, versions, waiting}\n",
};

struct Usage {
  std::uint64_t logical = 0, owned = 0, shared = 0;  // bytes
  std::uint64_t unknown = 0;                         // versions with only `logical` known
  void add(const Usage& other) {
    logical += other.logical;
    owned += other.owned;
    shared += other.shared;
    unknown += other.unknown;
  }
};

bool is_out_of_reach(Errc code) {
  return code == Errc::absent || code == Errc::unreachable || code == Errc::timed_out;
}

// Returns the usage of a version. Fetches its manifest if it is bare; `unknown` is 1 if that is impossible now.
Result<Usage> usage_of(Renewed& renewed, ManifestResolver& resolver, const VersionRow& row) {
  Usage usage;
  usage.logical = row.logical_bytes;
  WEFT_TRY(Snapshot * now, renewed.get());
  WEFT_TRY(const bool bare, now->is_bare(row.id));
  if (bare) {
    renewed.end();
    const Status resolved = resolver.resolve(row.id);
    if (!resolved.ok() && !is_out_of_reach(resolved.error().code)) return resolved.error();
    usage.unknown = resolved.ok() ? 0 : 1;
    if (!resolved.ok()) return usage;
  }
  WEFT_TRY(usage.owned, owned_bytes(renewed, row.id));
  usage.shared = usage.logical - std::min(usage.owned, usage.logical);
  return usage;
}

void write_usage(JsonWriter& json, const Usage& usage) {
  json.member("logical_bytes", usage.logical).member("owned_bytes", usage.owned);
  json.member("shared_bytes", usage.shared);
}

// Bytes of the store that belong to no file of a version.
struct Rest {
  std::uint64_t assembled_bytes = 0, assembled_bytes_max = 0, dead_bytes = 0;
};

class DuCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL", model_, OptionSet::Need::optional, "the model whose versions to show");
    options.flag("--origin", origin_, "show what is at the cluster's origin");
  }

  Result<int> run(Context& context) override {
    if (origin_) return show_origin(context);
    WEFT_TRY(auto store, context.open_to_read());
    ListingOutput out(context, false,
                      {{"LOGICAL", Align::right},
                       {"OWNED", Align::right},
                       {"SHARED", Align::right},
                       {model_.empty() ? "MODEL" : "VERSION"}});
    out.json.begin_object().key("models").begin_array();
    WEFT_TRY(const Usage total, measure(out, *store, context.resolver()));
    WEFT_TRY(const Rest rest, rest_of(*store));
    add_row(out, total, "total");
    out.json.end_array();
    write_usage(out.json, total);
    out.json.member("assembled_bytes", rest.assembled_bytes).member("assembled_bytes_max", rest.assembled_bytes_max);
    out.json.member("dead_bytes", rest.dead_bytes);
    out.json.member("unknown_versions", total.unknown).end_object();
    out.end();
    if (!context.json) print_rest(context, rest);
    if (total.unknown > 0)
      context.note(
          fmt::format("the manifest is not available now for {}: the owned and shared "
                      "bytes are unknown",
                      count_of(total.unknown, "version")));
    return kExitDone;
  }

 private:
  static Result<int> show_origin(const Context& context) {
    WEFT_TRY(const auto report, call_daemon<OriginReport>(context, "origin", Nothing{}));
    const OriginTotals& totals = report.totals;
    if (context.json)
      context.print_json(encode_fields(report));
    else
      context.print("{}  {} of {}, {} in {}; {} of this node not written yet\n", printable(report.path),
                    count_of(totals.versions, "version"), count_of(totals.manifests, "manifest"),
                    human_bytes(totals.bytes), count_of(totals.packs, "pack"), report.waiting);
    return kExitDone;
  }

  static Result<Rest> rest_of(Store& store) {
    WEFT_TRY(const StoreCounts counts, store.counts());
    const AssembledUsage assembled = assembled_usage(store);
    return Rest{assembled.bytes, assembled.bytes_max, counts.dead_bytes};
  }

  static void print_rest(const Context& context, const Rest& rest) {
    if (rest.assembled_bytes > 0)
      context.print("and {} of assembled files in the cache, of at most {}\n", human_bytes(rest.assembled_bytes),
                    human_bytes(rest.assembled_bytes_max));
    if (rest.dead_bytes > 0) context.print("and {} of dead bytes that wait for gc\n", human_bytes(rest.dead_bytes));
  }

  static void add_row(ListingOutput& out, const Usage& usage, const std::string& name) {
    out.table.row({human_bytes(usage.logical), human_bytes(usage.owned), human_bytes(usage.shared), name});
  }

  Result<Usage> measure(ListingOutput& out, Store& store, ManifestResolver& resolver) const {
    if (!model_.empty()) {
      WEFT_TRY(const ModelRow model, model_of(store, model_));
      return measure_model(out, store, resolver, model);
    }
    Usage total;
    WEFT_CHECK(each_row(store, list_models(), [&](const ModelRow& model) -> Status {
      if (model.latest == 0) return {};
      WEFT_TRY(const Usage usage, measure_model(out, store, resolver, model));
      add_row(out, usage, model.name);
      total.add(usage);
      return {};
    }));
    return total;
  }

  // Prints after each page of versions, without a snapshot.
  Result<Usage> measure_model(ListingOutput& out, Store& store, ManifestResolver& resolver,
                              const ModelRow& model) const {
    Usage total;
    out.json.begin_object().member("model", model.name).key("versions").begin_array();
    WEFT_CHECK(each_page(store, list_versions(model.id), [&](const std::vector<VersionRow>& versions) -> Status {
      Renewed renewed(store);
      for (const VersionRow& row : versions) {
        if (row.removed) continue;
        WEFT_TRY(const Usage usage, usage_of(renewed, resolver, row));
        total.add(usage);
        out.json.begin_object().member("version", row.number);
        write_usage(out.json, usage);
        out.json.end_object();
        if (!model_.empty()) add_row(out, usage, spec_of(row));
      }
      renewed.end();
      if (!model_.empty() || versions.size() == limits::kRowsPerSnapshot) out.print();
      return {};
    }));
    out.json.end_array();
    write_usage(out.json, total);
    out.json.end_object();
    return total;
  }

  bool origin_ = false;
  std::string model_;
};

}  // namespace

constinit const CommandEntry kDuCommand = {kDuInfo, make<DuCommand>};

}  // namespace weft
