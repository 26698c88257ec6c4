#include <algorithm>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/catalog.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "daemon_api/control_messages.h"
#include "weft/assembly.h"
#include "weft/listing.h"
#include "weft/node.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
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
        "{models: [{model, logical_bytes, owned_bytes, shared_bytes, versions:\n"
        " [{version, logical_bytes, owned_bytes, shared_bytes}]}], logical_bytes,\n"
        " owned_bytes, shared_bytes, assembled_bytes, dead_bytes, unknown_versions};\n"
        "with --origin: {path, packs, bytes, manifests, versions, waiting}\n",
    .interrupted = "",
};

struct Usage {
  std::uint64_t logical = 0, owned = 0, shared = 0;  // bytes
  std::uint64_t unknown = 0;                         // versions of which only the first is known
  void add(const Usage& other) {
    logical += other.logical;
    owned += other.owned;
    shared += other.shared;
    unknown += other.unknown;
  }
};

struct VersionUsage {
  VersionRow row;
  Usage usage;
};

struct ModelUsage {
  std::string name;
  std::vector<VersionUsage> versions;
  Usage usage;
};

// A version that is removed meanwhile owns nothing.
Status measure(Renewed& renewed, VersionUsage& version) {
  Usage& usage = version.usage;
  usage.logical = version.row.logical_bytes;
  if (usage.unknown != 0) return {};
  WEFT_TRY(usage.owned, owned_bytes(renewed, version.row.id));
  usage.shared = usage.logical - std::min(usage.owned, usage.logical);
  return {};
}

bool is_out_of_reach(Errc code) {
  return code == Errc::absent || code == Errc::unreachable || code == Errc::timed_out;
}

Result<VersionUsage> counted(Store& store, const VersionRow& row) {
  VersionUsage version{row, {}};
  const auto loaded = load_version(store, row);
  if (!loaded.ok() && !is_out_of_reach(loaded.error().code)) return loaded.error();
  if (!loaded.ok()) version.usage.unknown = 1;
  return version;
}

Result<ModelUsage> usage_of(Store& store, const ModelEntry& model) {
  ModelUsage usage{model.row.name, {}, {}};
  for (const VersionEntry& version : model.versions) {
    if (version.row.removed) continue;
    WEFT_TRY(VersionUsage one, counted(store, version.row));
    usage.versions.push_back(std::move(one));
  }
  Renewed renewed(store);
  for (VersionUsage& version : usage.versions) {
    WEFT_CHECK(measure(renewed, version));
    usage.usage.add(version.usage);
  }
  return usage;
}

void write_usage(JsonWriter& json, const Usage& usage) {
  json.member("logical_bytes", usage.logical).member("owned_bytes", usage.owned);
  json.member("shared_bytes", usage.shared);
}

// What the store holds besides the files of versions.
struct Rest {
  std::uint64_t assembled_bytes = 0, dead_bytes = 0;
};

JsonWriter json_of(const std::vector<ModelUsage>& models, const Usage& total, const Rest& rest) {
  JsonWriter json;
  json.begin_object().key("models").begin_array();
  for (const ModelUsage& model : models) {
    json.begin_object().member("model", model.name);
    write_usage(json, model.usage);
    json.key("versions").begin_array();
    for (const VersionUsage& version : model.versions) {
      json.begin_object().member("version", version.row.number);
      write_usage(json, version.usage);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
  write_usage(json, total);
  json.member("assembled_bytes", rest.assembled_bytes).member("dead_bytes", rest.dead_bytes);
  json.member("unknown_versions", total.unknown).end_object();
  return json;
}

class DuCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.argument("MODEL", model_, OptionSet::Need::optional, "the model whose versions to show");
    options.flag("--origin", origin_, "show what is at the cluster's origin");
  }

  Result<int> run(Context& context) override {
    if (origin_) return show_origin(context);
    WEFT_TRY(auto store, context.open_to_read());
    WEFT_TRY(auto models, measured(*store));
    Usage total;
    for (const ModelUsage& model : models) total.add(model.usage);
    WEFT_TRY(const Rest rest, rest_of(*store));
    if (context.json) {
      context.print_json(json_of(models, total, rest));
    } else {
      context.print("{}", text_of(models, total));
      print_rest(context, rest);
    }
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
      context.print("{}  {} of {}, {} in {}; {} of this node not there yet\n", printable(report.path),
                    count_of(totals.versions, "version"), count_of(totals.manifests, "manifest"),
                    human_bytes(totals.bytes), count_of(totals.packs, "pack"), report.waiting);
    return kExitDone;
  }

  static Result<Rest> rest_of(Store& store) {
    WEFT_TRY(const StoreCounts counts, store.counts());
    return Rest{assembled_usage(store).bytes, counts.dead_bytes};
  }

  static void print_rest(const Context& context, const Rest& rest) {
    if (rest.assembled_bytes > 0)
      context.print("and {} of assembled files in the cache\n", human_bytes(rest.assembled_bytes));
    if (rest.dead_bytes > 0) context.print("and {} of dead bytes that wait for gc\n", human_bytes(rest.dead_bytes));
  }

  bool origin_ = false;
  Result<std::vector<ModelUsage>> measured(Store& store) const {
    std::vector<ModelEntry> entries;
    if (model_.empty()) {
      WEFT_TRY(entries, all_models(store));
      std::erase_if(entries, [](const ModelEntry& model) { return model.latest() == nullptr; });
    } else {
      WEFT_TRY(ModelEntry entry, model_entry(store, model_));
      entries.push_back(std::move(entry));
    }
    std::vector<ModelUsage> models;
    for (const ModelEntry& entry : entries) {
      WEFT_TRY(ModelUsage usage, usage_of(store, entry));
      models.push_back(std::move(usage));
    }
    return models;
  }

  std::string text_of(const std::vector<ModelUsage>& models, const Usage& total) const {
    TextTable table({{"LOGICAL", Align::right},
                     {"OWNED", Align::right},
                     {"SHARED", Align::right},
                     {model_.empty() ? "MODEL" : "VERSION"}});
    auto row = [&](const Usage& usage, const std::string& name) {
      table.row({human_bytes(usage.logical), human_bytes(usage.owned), human_bytes(usage.shared), name});
    };
    for (const ModelUsage& model : models) {
      if (model_.empty()) row(model.usage, model.name);
      for (const VersionUsage& version : model.versions)
        if (!model_.empty()) row(version.usage, spec_of(version.row));
    }
    row(total, "total");
    return table.text();
  }

  std::string model_;
};

}  // namespace

std::unique_ptr<Command> make_du_command() {
  return std::make_unique<DuCommand>();
}

}  // namespace weft
