#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/catalog.h"
#include "cli/shared/mounts.h"
#include "cli/shared/table.h"
#include "os/mounts.h"
#include "os/sys.h"
#include "weft/dtype.h"
#include "weft/model/coverage.h"
#include "weft/model/lineage.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr CommandInfo kInfoInfo = {
    .name = "info",
    .summary = "show everything that is known about a version",
    .description =
        "A line \"file\" has the format of a file with tensors, and the bytes of it that are\n"
        "in tensors. The coverage follows if weft cannot show some of its tensors.\n"
        "A line \"no tensors\" names a file that weft keeps without reading its tensors.\n"
        "A line \"not shown\" names a tensor that weft cannot show, and the reason.\n"
        "A line \"globals\" has the globals that the pickle of a file of PyTorch names. No\n"
        "such list proves that a file is safe.\n"
        "A line \"remark\" names an index of shards that lists a tensor in the wrong shard.\n"
        "The last lines of the text are the paths of the version in each mount of the\n"
        "store. --json prints the version's info.json, which the mount shows in lineage/.\n"
        "--graph prints the graph of layers instead.\n",
    .examples =
        "weft info bert\n"
        "weft info org/minilm@stable --json | jq .files\n"
        "weft info /mnt/weft/models/bert/2\n"
        "weft info bert --graph dot | dot -Tsvg > bert.svg\n",
    .json =
        "the version's info.json; see weft(7). --graph json prints {family, id, vertices:\n"
        "[{kind, name, params, tensors: [{role, name, dtype, shape}], inputs, summed, id}]}\n",
};

struct Figures {
  std::uint64_t owned = 0;  // bytes
  std::vector<std::string> children;
};

Result<Figures> figures_of(Store& store, const VersionRow& row) {
  Figures figures;
  Renewed renewed(store);
  WEFT_TRY(figures.owned, owned_bytes(renewed, row.id));
  WEFT_CHECK(each_row(store, list_children(row.id), [&](VersionId id) -> Status {
    WEFT_TRY(Snapshot * now, renewed.get());
    WEFT_TRY(const VersionRow child, now->version(id));
    if (!child.removed) figures.children.push_back(spec_of(child));
    return {};
  }));
  return figures;
}

// Returns the tensor counts by type, such as "98 F32, 6 I64".
std::string dtypes_of(const Manifest& manifest) {
  std::map<std::string_view, std::uint64_t> counts;
  for (const File& file : manifest.files)
    for (const Tensor& tensor : file.tensors)
      if (const DTypeInfo* info = dtype_info(tensor.dtype)) ++counts[info->name];
  std::vector<std::string> words;
  words.reserve(counts.size());
  for (const auto& [name, count] : counts) words.push_back(fmt::format("{} {}", count, name));
  return joined(words, ", ");
}

// Returns a text such as "train.tar: 1000 records (tar)".
std::string container_text(const ContainerFacts& container) {
  if (!container.records) return fmt::format("{}: no records: {}", container.file->path, container.why_none);
  std::string text =
      fmt::format("{}: {} ({})", container.file->path, count_of(*container.records, "record"), container.file->format);
  if (container.left_out > 0) text += fmt::format(", {} left out", count_of(container.left_out, "member"));
  return text;
}

// Returns a text for each hidden tensor of the file, such as "b.npz: x (7.7 KiB): compressed". Names the first ones,
// and counts the others.
std::vector<std::string> hidden_texts(const File& file) {
  constexpr std::size_t kNamed = 8;
  std::vector<std::string> texts;
  for (const HiddenTensor& hidden : file.hidden) {
    if (texts.size() == kNamed) break;
    const std::string size = hidden.bytes > 0 ? fmt::format(" ({})", human_bytes(hidden.bytes)) : std::string();
    texts.push_back(fmt::format("{}: {}{}: {}", file.path, printable(hidden.name), size, hidden.why));
  }
  if (const std::uint64_t rest = file.hidden.size() - texts.size() + file.hidden_more; rest > 0)
    texts.push_back(fmt::format("{}: {} more; --json lists {}", file.path, count_of(rest, "tensor"),
                                file.hidden_more > 0 ? "some of them" : "them"));
  return texts;
}

// Returns a text such as "m.bin: torch zip, 2 tensors, 4.7 MiB of 4.9 MiB in tensors". Of a file whose tensors lie in
// other files, the text has their bytes. The coverage follows if it is below 1.
std::string file_text(const File& file, const Coverage& coverage) {
  std::string text = fmt::format("{}: {}, {}", file.path, file.format, count_of(file.tensors.size(), "tensor"));
  if (coverage.in_tensors == 0 && coverage.shown > 0)
    text += fmt::format(", {} in other files", human_bytes(coverage.shown));
  else if (!file.tensors.empty())
    text += fmt::format(", {} of {} in tensors", human_bytes(coverage.in_tensors), human_bytes(file.size));
  if (coverage.hidden > 0) text += fmt::format(", coverage {:.4f}", coverage.share());
  return text;
}

// Returns a text for each file with a format. Names the first files, and counts the others.
std::vector<std::string> file_texts(const Manifest& manifest) {
  constexpr std::size_t kFilesMax = 1024;
  const std::vector<Coverage> coverage = coverage_of(manifest);
  std::vector<std::string> texts;
  std::uint64_t more = 0;
  for (std::size_t i = 0; i < manifest.files.size(); ++i) {
    if (manifest.files[i].format.empty()) continue;
    if (texts.size() < kFilesMax)
      texts.push_back(file_text(manifest.files[i], coverage[i]));
    else
      ++more;
  }
  if (more > 0) texts.push_back(fmt::format("{} more; --json lists them", count_of(more, "file")));
  return texts;
}

std::string size_text(const VersionRow& row, const Manifest& manifest, const DatasetFacts& facts) {
  const std::uint64_t files = published_files(manifest).size() + facts.small_files;
  const std::string size = fmt::format("{} in {}", human_bytes(row.logical_bytes), count_of(files, "file"));
  if (manifest.kind == VersionKind::model)
    return fmt::format("{}, {}", size, count_of(tensor_count(manifest), "tensor"));
  return facts.small_files == 0 ? size : fmt::format("{}, {} of them small", size, facts.small_files);
}

// Calls line(title, text) for each known fact.
void write_source(const Provenance& source, const std::function<void(std::string_view, const std::string&)>& line) {
  line("source", source.repository);
  line("endpoint", source.endpoint);
  line("revision", source.revision);
  line("commit", source.commit);
  line("access", source.access);
  for (const std::string& url : source.urls) line("url", url);
  if (source.is_part())
    line("left out", count_of(source.left_out, "file"));
  else if (source.left_out != 0)
    line("url", fmt::format("{} more", source.left_out));
  if (source.listed_ns != 0) line("listed", utc_time(source.listed_ns));
}

std::string text_of(const VersionEntry& version, const Manifest& manifest, const Figures& figures,
                    const DatasetFacts& facts) {
  const VersionRow& row = version.row;
  std::string text = spec_of(row) + "\n";
  auto line = [&](std::string_view title, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<10} {}\n", title, value);
  };
  std::vector<std::string> tags = version.tags;
  if (version.latest) tags.insert(tags.begin(), "latest");
  line("published", utc_time(row.time_ns));
  line("tags", joined(tags, ", "));
  for (const ParentRef& parent : row.parents)
    line("parent", fmt::format("{}, {}", spec_of(parent.model, parent.number), edge_text(parent, row.tensors)));
  for (const std::string& name : row.elsewhere) line("parent", name + ", declared, not stored here");
  line("children", joined(figures.children, ", "));
  if (row.kind == VersionKind::dataset) line("kind", std::string(kind_name(row.kind)));
  line("size", size_text(row, manifest, facts));
  for (const ContainerFacts& container : facts.containers) line("records", container_text(container));
  if (row.kind == VersionKind::model)
    for (const std::string& facts_of_file : file_texts(manifest)) line("file", facts_of_file);
  for (const File& file : manifest.files)
    if (const std::string_view why = why_no_tensors(file); !why.empty())
      line("no tensors", fmt::format("in {}: {}", file.path, why));
  for (const File& file : manifest.files)
    for (const std::string& hidden : hidden_texts(file)) line("not shown", hidden);
  for (const File& file : manifest.files) {
    if (const std::string_view names = globals_of(file, kGlobals); !names.empty())
      line("globals", fmt::format("in {}: {}", file.path, names));
    if (const std::string_view names = globals_of(file, kOtherGlobals); !names.empty())
      line("globals", fmt::format("in {}, beyond weights_only: {}", file.path, names));
  }
  for (const File& file : manifest.files)
    if (const std::string_view remark = remark_on(file); !remark.empty())
      line("remark", fmt::format("{}: {}", file.path, remark));
  line("owned", fmt::format("{}; {} shared with earlier versions", human_bytes(figures.owned),
                            human_bytes(row.logical_bytes - std::min(figures.owned, row.logical_bytes))));
  if (const Architecture& architecture = manifest.architecture; !architecture.layers.empty())
    line("layers", fmt::format("{}, {}", architecture.layers.size(), architecture.family));
  line("dtypes", dtypes_of(manifest));
  for (const auto& [key, value] : row.metrics) line("metric", fmt::format("{}={}", key, value));
  line("manifest", to_hex(row.manifest));
  write_source(row.source, line);
  if (!row.message.empty())
    for (std::string_view piece : split(row.message, '\n')) line("message", std::string(piece));
  return text;
}

constexpr std::string_view kTreesOfModels[] = {"models", "layers", "tensors", "safetensors", "lineage"};
constexpr std::string_view kTreesOfDatasets[] = {"datasets", "records", "lineage"};

// Returns a line with the version's path for each tree of each mount of the store.
std::string places_of(const Store& store, const VersionRow& row) {
  std::string text;
  const auto mounts = mounts_of(store.path());
  if (!mounts.ok()) return text;
  for (const WeftMount& mount : *mounts)
    for (const std::string_view tree : row.kind == VersionKind::model
                                           ? std::span<const std::string_view>(kTreesOfModels)
                                           : std::span<const std::string_view>(kTreesOfDatasets))
      text += fmt::format("  {:<10} {}/{}/{}/{}\n", "path", mount.directory, tree, row.model_name, row.number);
  return text;
}

class InfoCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", spec_, OptionSet::Need::required,
                     "the version; V is a number or a tag, and the latest is the default. A path in a mount names a "
                     "version too");
    options.value("--graph", "FORMAT", graph_, "print the graph of layers: json, or dot for Graphviz", {"json", "dot"});
  }

  Status check_usage() override {
    if (graph_.empty() || graph_ == "json" || graph_ == "dot") return {};
    return Error{Errc::invalid, fmt::format("--graph: expected json or dot, got \"{}\"", printable(graph_))};
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(auto store, context.open_to_read());
    WEFT_TRY(VersionEntry version, find_entry(*store));
    WEFT_TRY(const Manifest manifest, load_manifest(*store, context.resolver(), version.row));
    if (!graph_.empty()) {
      ArchGraph graph = graph_of(manifest);
      context.print("{}", graph_ == "json" ? graph_json(graph) : graph_dot(graph));
      return kExitDone;
    }
    WEFT_TRY(const DatasetFacts facts, dataset_facts(*store, manifest));
    if (context.json) {
      std::string json = render_info_json(version.row, manifest, facts);
      context.print("{}{}", json, json.ends_with('\n') ? "" : "\n");
      return kExitDone;
    }
    WEFT_TRY(const Figures figures, figures_of(*store, version.row));
    context.print("{}{}", text_of(version, manifest, figures, facts), places_of(*store, version.row));
    return kExitDone;
  }

 private:
  // Prefers a name to a path. No name begins with a slash.
  Result<VersionEntry> find_entry(Store& store) const {
    auto entry = version_entry(store, spec_);
    const bool is_path = spec_.starts_with('/') || (spec_.find('/') != std::string::npos && stat_file(spec_).ok());
    if (entry.ok() || !is_path) return entry;
    WEFT_TRY(const std::string spec, spec_at(store, spec_));
    return version_entry(store, spec);
  }

  std::string spec_;
  std::string graph_;
};

}  // namespace

constinit const CommandEntry kInfoCommand = {kInfoInfo, make<InfoCommand>};

}  // namespace weft
