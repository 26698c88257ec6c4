#include "weft/model/safetensors_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "model/arch/layers.h"
#include "model/safetensors_file.h"
#include "weft/model/tree.h"

namespace weft {
namespace {

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kSafetensorsIndex = ".safetensors.index.";  // "json", or a variant and "json"
constexpr std::string_view kBinIndex = ".bin.index.";
constexpr std::string_view kPyTorchModel = "pytorch_model";
constexpr std::string_view kModel = "model";
constexpr std::string_view kLeftOut = "left_out.txt";
constexpr std::string_view kReservedName = "__metadata__";
constexpr std::string_view kShardingInfo = "DCP_SHARDING_INFO";  // metadata of a shard in safetensors
constexpr std::string_view kWeightFormats[] = {
    "dcp", "flax", "hdf5", "keras", "npz", "onnx", "pickle", "tf bundle", "torch export", "torch legacy", "torch zip"};
static_assert(std::ranges::is_sorted(kWeightFormats));

// In files that a reader takes for PyTorch's: transformers refuses a container without it.
const std::vector<std::pair<std::string, std::string>> kContainerMetadata = {{"format", "pt"}};

bool is_safetensors(std::string_view path) {
  return path.ends_with(kSuffix);
}

std::string_view directory_of(std::string_view path) {
  return path.substr(0, path.rfind('/') + 1);  // npos + 1 is 0
}

// Returns the reason why no container can have a tensor of the model; "" if one can.
std::string_view why_not_held(const Tensor& tensor, const ModelScope& scope) {
  if (std::string_view(tensor.name).substr(scope.prefix_bytes()) == kReservedName)
    return "safetensors reserves its name";
  if (!safetensors_can_hold(tensor.dtype)) return "safetensors has no such type";
  return tensor.descr.empty() ? "" : "big-endian";
}

// Returns the file's name for a container, with its directory and without an ending: "a/pytorch_model.bin" ->
// "a/model".
std::string stem_of(std::string_view path) {
  const std::string_view directory = directory_of(path);
  std::string_view name = path.substr(directory.size());
  if (const std::size_t dot = name.rfind('.'); dot != name.npos && dot != 0) name = name.substr(0, dot);
  const std::string_view rest = name.substr(std::min(kPyTorchModel.size(), name.size()));
  if (!name.starts_with(kPyTorchModel) || (!rest.empty() && rest[0] != '.' && rest[0] != '-'))
    return fmt::format("{}{}", directory, name);
  return fmt::format("{}{}{}", directory, kModel, rest);
}

// Returns the stem without the number of a shard: all shards of a model, and its index, have the same.
std::string group_of(std::string_view stem) {
  const std::string_view directory = directory_of(stem);
  return std::string(directory) + without_shard(stem.substr(directory.size()));
}

// An index of shards: "a/pytorch_model.bin.index.json" is of the group "a/model", and the view shows it as `shown`.
struct IndexName {
  std::string group;
  std::string shown;
};

// Of a path with `mark` in its name, such as ".bin.index.": what follows is "json", or a variant and "json".
std::optional<IndexName> index_name(std::string_view path, std::string_view mark) {
  const std::size_t at = path.rfind(mark);
  if (at == path.npos || at < directory_of(path).size()) return std::nullopt;
  const std::string_view ending = path.substr(at + mark.size());
  if (ending != "json" && !ending.ends_with(".json")) return std::nullopt;
  const std::string_view variant = ending.substr(0, ending.rfind('.') == ending.npos ? 0 : ending.rfind('.'));
  const std::string stem = stem_of(fmt::format("{}.bin", path.substr(0, at)));
  return IndexName{variant.empty() ? stem : fmt::format("{}.{}", stem, variant),
                   fmt::format("{}{}{}", stem, kSafetensorsIndex, ending)};
}

// Returns the tensors of these files that a container has, in the order of their bytes: larger elements first, then by
// name.
std::vector<TensorRef> held_tensors(const Manifest& manifest, const std::vector<std::uint32_t>& files,
                                    const ModelScope& scope) {
  std::vector<TensorRef> held;
  for (const std::uint32_t file : files) {
    const std::vector<Tensor>& tensors = manifest.files[file].tensors;
    for (std::uint32_t i = 0; i < tensors.size(); ++i)
      if (scope.has(tensors[i].name) && why_not_held(tensors[i], scope).empty()) held.push_back({file, i});
  }
  const auto tensor = [&](const TensorRef& ref) -> const Tensor& {
    return manifest.files[ref.file].tensors[ref.tensor];
  };
  std::ranges::sort(held, [&](const TensorRef& a, const TensorRef& b) {
    const std::uint32_t x = safetensors_alignment(tensor(a).dtype), y = safetensors_alignment(tensor(b).dtype);
    return x != y ? x > y : tensor(a).name < tensor(b).name;
  });
  return held;
}

std::string header_of(const Manifest& manifest, const std::vector<TensorRef>& held, const ModelScope& scope) {
  return safetensors_header(manifest, held, scope.prefix_bytes(), kContainerMetadata);
}

// True if two of these tensors have the same name, in two files.
bool has_equal_names(const Manifest& manifest, const std::vector<TensorRef>& held) {
  std::vector<std::string_view> names;
  names.reserve(held.size());
  for (const TensorRef& ref : held) names.emplace_back(manifest.files[ref.file].tensors[ref.tensor].name);
  std::ranges::sort(names);
  return std::ranges::adjacent_find(names) != names.end();
}

// Returns the reason why these tensors cannot be one container; "" if they can.
std::string why_no_container(const Manifest& manifest, const std::vector<TensorRef>& held, const ModelScope& scope) {
  constexpr std::size_t kEscaped = 6, kNumber = 21, kOtherText = 64;  // bytes of text, at most
  std::uint64_t bytes = 0, header = kOtherText;
  for (const TensorRef& ref : held) {
    const File& file = manifest.files[ref.file];
    const Tensor& tensor = file.tensors[ref.tensor];
    if (__builtin_add_overflow(bytes, stored_bytes(file, tensor), &bytes) || bytes > limits::kVersionBytesMax)
      return "its tensors together are larger than a file may be";
    header += kOtherText + kEscaped * tensor.name.size() + kNumber * (tensor.shape.size() + 2);
  }
  if (header <= limits::kSafetensorsHeaderMax) return {};
  header = header_of(manifest, held, scope).size() - sizeof(std::uint64_t);
  if (header <= limits::kSafetensorsHeaderMax) return {};
  return fmt::format("a container of its {} tensors would have a header of {} bytes; safetensors reads at most {}",
                     held.size(), header, limits::kSafetensorsHeaderMax);
}

// Visits what no container has of these files: missing(file, tensor's name, bytes, why). A name is "" for tensors that
// the file does not list.
template <class Missing>
void each_missing(const Manifest& manifest, const std::vector<std::uint32_t>& files, const Missing& missing) {
  const ModelScope scope = ModelScope::of(manifest, files);
  for (const std::uint32_t index : files) {
    const File& file = manifest.files[index];
    for (const Tensor& tensor : file.tensors) {
      if (!scope.has(tensor.name)) continue;
      if (const std::string_view why = why_not_held(tensor, scope); !why.empty())
        missing(index, std::string_view(tensor.name), stored_bytes(file, tensor), std::string(why));
    }
    for (const HiddenTensor& hidden : file.hidden)
      if (scope.has(hidden.name)) missing(index, std::string_view(hidden.name), hidden.bytes, hidden.why);
    if (file.hidden_more != 0)
      missing(index, std::string_view(), std::uint64_t{0}, fmt::format("{} more tensors", file.hidden_more));
  }
}

// Files that become one container.
struct Source {
  std::vector<std::uint32_t> files;  // with tensors, or with other shards of them; ascending
  std::string stem;                  // of the container
  unsigned turn = 0;                 // of two with equal names the one with the smaller turn gets it
  std::string why_kept = {};         // the reason if it cannot be a container
  bool empty = false;                // a container can have none of its tensors
};

class ViewPlanner {
 public:
  explicit ViewPlanner(const Manifest& manifest)
      : manifest_(manifest), files_(published_files(manifest)), view_{std::vector<bool>(files_.size(), true), {}} {}

  SafetensorsView plan() {
    find_sources();
    find_groups();
    std::ranges::stable_sort(sources_, {}, &Source::turn);
    for (const Source& source : sources_) place(source);
    for (std::uint32_t i = 0; i < files_.size(); ++i) place_index(i);
    keep_unread();
    add_left_out();
    std::ranges::sort(view_.made, {}, &ViewFile::path);
    for (ViewFile& made : view_.made)
      if (made.kind == ViewFile::Kind::index) made.parts = containers_of(made.path);
    std::ranges::sort(view_.kept);
    return std::move(view_);
  }

 private:
  const std::string& path(std::uint32_t file) const { return files_[file].path; }

  void find_sources() {
    std::map<std::string_view, Source> shards;  // of safetensors, by directory
    for (std::uint32_t i = 0; i < files_.size(); ++i) {
      const File& file = files_[i];
      if (is_safetensors(file.path)) {
        if (is_sharded(i)) shards[directory_of(file.path)].files.push_back(i);
      } else if (std::ranges::binary_search(kWeightFormats, file.format) &&
                 !(file.tensors.empty() && file.hidden.empty() && file.hidden_more == 0)) {
        const bool checkpoint = file.format == "dcp";
        std::string stem = checkpoint ? model_in(file.path) : stem_of(file.path);
        const bool named = file.path.substr(directory_of(file.path).size()).starts_with(kPyTorchModel);
        sources_.push_back({{i}, std::move(stem), named ? 0U : checkpoint ? 1U : 2U});
      }
    }
    for (auto& [directory, source] : shards) add_shards(std::move(source));
    for (Source& source : sources_) judge(source);
  }
  static std::string model_in(std::string_view path) { return fmt::format("{}{}", directory_of(path), kModel); }

  // True for a file of safetensors with shards of tensors. The text of its sharding may be longer than a manifest
  // keeps.
  bool is_sharded(std::uint32_t index) const {
    const File& file = files_[index];
    if (file.format != "safetensors") return false;
    return std::ranges::any_of(file.metadata, [](const auto& entry) { return entry.first == kShardingInfo; }) ||
           std::ranges::any_of(file.tensors, &Tensor::scattered);
  }
  // Adds shards, and the files in which their tensors have bytes too.
  void add_shards(Source source) {
    std::set<std::uint32_t> all(source.files.begin(), source.files.end());
    for (const std::uint32_t file : source.files)
      each_other_file(file, [&](std::uint32_t other) {
        if (files_[other].format == "safetensors") all.insert(other);
      });
    source.files.assign(all.begin(), all.end());
    source.stem = model_in(path(source.files.front()));
    source.turn = 1;
    for (const std::uint32_t file : source.files) shards_.insert(file);
    sources_.push_back(std::move(source));
  }
  // Visits the published files, other than this one, that have bytes of its tensors. A file may be visited often.
  template <class Visit>
  void each_other_file(std::uint32_t file, const Visit& visit) const {
    for (const Tensor& tensor : files_[file].tensors)
      for (const TensorRun& run : tensor.runs)
        if (run.file != file && run.file < files_.size()) visit(run.file);
  }

  void judge(Source& source) {
    const ModelScope scope = ModelScope::of(manifest_, source.files);
    const std::vector<TensorRef> held = held_tensors(manifest_, source.files, scope);
    source.empty = held.empty();
    if (held.empty()) return;
    source.why_kept = why_no_container(manifest_, held, scope);
    if (source.why_kept.empty() && source.files.size() > 1 && has_equal_names(manifest_, held))
      source.why_kept = "two files have a tensor of the same name";
  }

  void find_groups() {
    std::set<std::uint32_t> sound;  // .bin files that can be containers
    for (const Source& source : sources_)
      if (!source.empty && source.why_kept.empty()) sound.insert(source.files.begin(), source.files.end());
    for (std::uint32_t i = 0; i < files_.size(); ++i) {
      if (is_safetensors(path(i)) && !shards_.contains(i)) published_.insert(group_of(stem_of(path(i))));
      if (const auto index = index_name(path(i), kSafetensorsIndex)) published_.insert(index->group);
      if (!path(i).ends_with(".bin")) continue;
      const std::string stem = stem_of(path(i));
      if (sound.contains(i) && !is_directory(stem + std::string(kSuffix))) continue;
      if (std::string group = group_of(stem); group != stem) broken_.insert(std::move(group));
    }
  }

  void place(const Source& source) {
    const std::string group = group_of(source.stem);
    if (published_.contains(group)) return shards_.contains(source.files.front()) ? void() : hide(source);
    const bool shard = group != source.stem;
    if (source.empty) return keep(source, "");
    if (!source.why_kept.empty()) return keep(source, source.why_kept);
    if (shard && broken_.contains(group)) return keep(source, "another shard of the model has no container");
    for (const std::string& name : {source.stem, path(source.files.front())}) {
      ViewFile made{name + std::string(kSuffix), ViewFile::Kind::container, source.files};
      if (!check_file_path(made.path).ok() || is_taken(made)) continue;
      taken_.insert(made.path);
      if (shard && name == source.stem) by_group_[group].push_back(made.path);
      view_.made.push_back(std::move(made));
      return hide(source);
    }
    keep(source, "its name as a container is taken, or too long");
  }
  bool is_taken(const ViewFile& made) const {
    if (taken_.contains(made.path) || is_directory(made.path)) return true;
    const File* const file = find_file(manifest_, FileRole::published, made.path);
    return file != nullptr &&
           std::ranges::find(made.parts, static_cast<std::uint32_t>(file - files_.data())) == made.parts.end();
  }
  bool is_directory(const std::string& path) const {
    const std::string below = path + "/";
    const auto file = std::ranges::lower_bound(files_, below, {}, &File::path);
    const auto empty = std::ranges::lower_bound(manifest_.directories, below);
    return (file != files_.end() && file->path.starts_with(below)) ||
           (empty != manifest_.directories.end() && empty->starts_with(below)) ||
           std::ranges::binary_search(manifest_.directories, path);
  }
  void keep(const Source& source, const std::string& why) {
    for (const std::uint32_t file : source.files) view_.kept.emplace_back(file, why);
  }

  // Takes weights out of the view, with the files that only hold their bytes.
  void hide(const Source& source) {
    for (const std::uint32_t file : source.files) {
      view_.shown[file] = false;
      each_other_file(file, [&](std::uint32_t other) { hide_bytes(other); });
      if (files_[file].format == "dcp") {
        const std::string directory(directory_of(path(file)));
        hide_beside(directory, ".distcp");
        hide_beside(directory + "__", ".metadata");  // of other ranks
      }
      if (files_[file].format == "tf bundle") hide_beside(path(file).substr(0, path(file).rfind('.')) + ".data-", "");
    }
  }
  void hide_bytes(std::uint32_t file) {
    if (files_[file].format.empty() && files_[file].tensors.empty() && !is_safetensors(path(file)))
      view_.shown[file] = false;
  }
  // Hides the files of one directory whose paths begin and end so. A manifest may have a million checkpoints in one
  // directory.
  void hide_beside(const std::string& begin, std::string_view end) {
    if (!searched_.emplace(begin, end).second) return;
    auto file = std::ranges::lower_bound(files_, begin, {}, &File::path);
    for (; file != files_.end() && file->path.starts_with(begin); ++file)
      if (file->path.ends_with(end) && file->path.find('/', begin.size()) == std::string::npos)
        hide_bytes(static_cast<std::uint32_t>(file - files_.begin()));
  }

  // Replaces the index of shards of which all have containers.
  void place_index(std::uint32_t file) {
    const auto index = index_name(path(file), kBinIndex);
    if (!index) return;
    if (published_.contains(index->group)) {
      view_.shown[file] = false;
      return;
    }
    ViewFile made{index->shown, ViewFile::Kind::index};
    if (!by_group_.contains(index->group) || is_taken(made) || !check_file_path(made.path).ok()) return;
    view_.shown[file] = false;
    index_group_.emplace(made.path, index->group);
    taken_.insert(made.path);
    view_.made.push_back(std::move(made));
  }
  std::vector<std::uint32_t> containers_of(const std::string& index) const {
    std::vector<std::uint32_t> out;
    for (const std::string& container : by_group_.at(index_group_.at(index)))
      out.push_back(static_cast<std::uint32_t>(std::ranges::lower_bound(view_.made, container, {}, &ViewFile::path) -
                                               view_.made.begin()));
    std::ranges::sort(out);
    return out;
  }

  void keep_unread() {
    for (std::uint32_t i = 0; i < files_.size(); ++i)
      if (const std::string_view why = why_no_tensors(files_[i]); !why.empty() && view_.shown[i])
        view_.kept.emplace_back(i, why);
  }

  void add_left_out() {
    ViewFile made{std::string(kLeftOut), ViewFile::Kind::left_out};
    bool any = !view_.kept.empty();
    for (const ViewFile& container : view_.made)
      if (!any && container.kind == ViewFile::Kind::container)
        each_missing(manifest_, container.parts, [&](auto&&...) { any = true; });
    if (any && !is_taken(made)) view_.made.push_back(std::move(made));
  }

  const Manifest& manifest_;
  const std::span<const File> files_;
  SafetensorsView view_;
  std::vector<Source> sources_;
  std::set<std::uint32_t> shards_;                               // files of safetensors that are one container together
  std::set<std::string> published_;                              // groups with a published file of safetensors
  std::set<std::string> broken_;                                 // groups with a shard that has no container
  std::map<std::string, std::vector<std::string>> by_group_;     // containers of shards
  std::map<std::string, std::string> index_group_;               // by the path of a made index
  std::set<std::string> taken_;                                  // paths of made files
  std::set<std::pair<std::string, std::string_view>> searched_;  // by hide_beside()
};

// Lists, by name, the containers that have the tensors.
std::string render_index(const Manifest& manifest, const SafetensorsView& view, const ViewFile& index) {
  std::map<std::string_view, std::string_view> places;
  std::uint64_t bytes = 0;
  for (const std::uint32_t part : index.parts) {
    const ViewFile& made = view.made[part];
    const ModelScope scope = ModelScope::of(manifest, made.parts);
    const std::string_view name = std::string_view(made.path).substr(directory_of(made.path).size());
    for (const TensorRef& ref : held_tensors(manifest, made.parts, scope)) {
      const File& file = manifest.files[ref.file];
      const Tensor& tensor = file.tensors[ref.tensor];
      places[std::string_view(tensor.name).substr(scope.prefix_bytes())] = name;
      bytes += stored_bytes(file, tensor);  // a hint for readers, so the sum may wrap
    }
  }
  JsonWriter json(true);
  json.begin_object().key("metadata").begin_object().member("total_size", bytes).end_object();
  json.key("weight_map").begin_object();
  for (const auto& [tensor, container] : places) json.member(tensor, container);
  json.end_object().end_object();
  return json.take() + "\n";
}

std::string render_left_out(const Manifest& manifest, const SafetensorsView& view) {
  std::string text = "file\ttensor\tbytes\treason\n";
  const auto add = [&](std::uint32_t file, std::string_view tensor, std::uint64_t bytes, const std::string& why) {
    text += fmt::format("{}\t{}\t{}\t{}\n", manifest.files[file].path, tensor.empty() ? "-" : escape_component(tensor),
                        bytes == 0 ? "-" : std::to_string(bytes), printable(why, limits::kHiddenReasonMax));
  };
  for (const ViewFile& made : view.made)
    if (made.kind == ViewFile::Kind::container) each_missing(manifest, made.parts, add);
  for (const auto& [file, why] : view.kept) {
    if (why.empty())
      each_missing(manifest, {file}, add);
    else
      add(file, "", manifest.files[file].size, why);
  }
  return text;
}

}  // namespace

bool SafetensorsView::replaces() const {
  return std::ranges::any_of(made, [](const ViewFile& one) { return one.kind == ViewFile::Kind::container; });
}

SafetensorsView plan_safetensors_view(const Manifest& manifest) {
  if (manifest.kind == VersionKind::dataset) return {};
  return ViewPlanner(manifest).plan();
}

std::vector<ViewEntry> view_entries(const Manifest& manifest, const SafetensorsView& view) {
  std::vector<ViewEntry> out;
  if (manifest.kind == VersionKind::dataset) return out;
  std::uint32_t made = 0;
  const auto add_made = [&](std::string_view before) {
    for (; made < view.made.size() && (before.empty() || view.made[made].path < before); ++made)
      out.push_back({view.made[made].path, ViewEntry::Kind::made, made});
  };
  each_published(manifest, [&](std::string_view path, std::optional<std::uint32_t> file) {
    add_made(path);
    if (!file) out.push_back({path, ViewEntry::Kind::directory});
    if (file && view.shown[*file]) out.push_back({path, ViewEntry::Kind::published, *file});
  });
  add_made("");
  return out;
}

ViewContainer view_container(const Manifest& manifest, const ViewFile& made) {
  const ModelScope scope = ModelScope::of(manifest, made.parts);
  ViewContainer out;
  out.tensors = held_tensors(manifest, made.parts, scope);
  out.header = header_of(manifest, out.tensors, scope);
  out.size = out.header.size();
  for (const TensorRef& ref : out.tensors)
    out.size += stored_bytes(manifest.files[ref.file], manifest.files[ref.file].tensors[ref.tensor]);
  return out;
}

std::string render_view_text(const Manifest& manifest, const SafetensorsView& view, const ViewFile& made) {
  return made.kind == ViewFile::Kind::index ? render_index(manifest, view, made) : render_left_out(manifest, view);
}

}  // namespace weft
