#include "model/inherit.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/limits.h"
#include "base/text.h"
#include "model/safetensors_file.h"
#include "weft/model/tree.h"

namespace weft {
namespace {

constexpr std::string_view kFormat = "safetensors";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

std::string type_text(const Tensor& tensor) {
  return fmt::format("{} {}", dtype_info(tensor.dtype)->name, shape_text(tensor.shape));
}

Extent extent_of(const File& file, const Tensor& tensor) {
  return tensor.extent == kNoExtent ? Extent{} : file.extents[tensor.extent];
}

class Composer {
 public:
  explicit Composer(const InheritInput& input)
      : in_(input), out_{input.base.files, {}}, rewritten_(input.base.files.size()) {
    for (std::uint32_t file = 0; file < in_.base.files.size(); ++file)
      for (std::uint32_t tensor = 0; tensor < in_.base.files[file].tensors.size(); ++tensor)
        homes_[in_.base.files[file].tensors[tensor].name].push_back({file, tensor});
  }

  Result<Inherited> run() {
    for (std::size_t i = 0; i < in_.given.files.size(); ++i) {
      const File& file = in_.given.files[i];
      WEFT_CHECK(file.format == kFormat ? take_tensors(file, in_.places[i]) : take_file(file, in_.places[i]));
    }
    WEFT_CHECK(check_index());
    WEFT_CHECK(rewrite());
    std::ranges::sort(out_.files, {}, &File::path);
    WEFT_CHECK(take_directories());
    return Inherited{std::move(out_), std::move(headers_)};
  }

 private:
  // A file of the base that gets a new layout.
  struct Rewrite {
    std::map<std::uint32_t, PlacedTensor> changed;  // by index in the base's file
    std::vector<PlacedTensor> added;
  };

  Error refused(const std::string& place, std::string_view what) const {
    return {Errc::invalid, fmt::format("{}: {}", place, what)};
  }

  Status take_tensors(const File& given, const std::string& place) {
    for (const Tensor& tensor : given.tensors) {
      if (!seen_.insert(tensor.name).second)
        return refused(
            place, fmt::format("tensor \"{}\": expected it in one of the files, got it twice", printable(tensor.name)));
      auto home = homes_.find(tensor.name);
      if (home == homes_.end()) {
        WEFT_CHECK(add_tensor(given, tensor, place));
      } else if (home->second.size() > 1) {
        return refused(place, fmt::format("tensor \"{}\": expected it in one file of {}, got it in {} and {}",
                                          printable(tensor.name), in_.base_name, path_of(home->second[0]),
                                          path_of(home->second[1])));
      } else {
        WEFT_CHECK(take_tensor(given, tensor, home->second.front(), place));
      }
    }
    return {};
  }

  const std::string& path_of(TensorRef ref) const { return in_.base.files[ref.file].path; }

  Status take_tensor(const File& given, const Tensor& tensor, TensorRef home, const std::string& place) {
    File& file = out_.files[home.file];
    const Tensor& old = in_.base.files[home.file].tensors[home.tensor];
    if (old.dtype == tensor.dtype && old.shape == tensor.shape && old.descr.empty()) {
      if (old.extent != kNoExtent) {
        Extent& extent = file.extents[old.extent];
        if (const Extent& changed = extent_of(given, tensor); changed.id != extent.id) {
          WEFT_CHECK(check_takes_bytes(file, tensor, place));
          extent = {extent.offset, changed.id, changed.head};
          file.sha256.reset();
        }
      }
      return {};
    }
    const bool other_format = file.format != kFormat;
    if (!in_.add || other_format)
      return refused(place,
                     fmt::format("tensor \"{}\": expected {} as in {} of {}, got {} ({})", printable(tensor.name),
                                 type_text(old), file.path, in_.base_name, type_text(tensor),
                                 other_format ? "only a safetensors file can take another" : "--add takes it"));
    rewritten_[home.file].changed[home.tensor] = {tensor, extent_of(given, tensor)};
    return {};
  }

  // The other formats may have sums of the bytes, as archives do.
  Status check_takes_bytes(const File& file, const Tensor& tensor, const std::string& place) const {
    if (file.format == kFormat || file.format == "gguf" || file.format == "npy") return {};
    return refused(place, fmt::format("tensor \"{}\": expected it in a file of safetensors, GGUF or npy, got {} of {} "
                                      "({}); publish the whole file",
                                      printable(tensor.name), file.path, in_.base_name, file.format));
  }

  Status add_tensor(const File& given, const Tensor& tensor, const std::string& place) {
    if (!in_.add)
      return refused(place, fmt::format("tensor \"{}\": expected a name of {}, which "
                                        "has none of that name (--add adds it)",
                                        printable(tensor.name), in_.base_name));
    WEFT_TRY(const std::uint32_t file, file_for(given, tensor, place));
    rewritten_[file].added.push_back({tensor, extent_of(given, tensor)});
    return {};
  }

  // Returns the only safetensors file of the base, or the one with the path of the given file.
  Result<std::uint32_t> file_for(const File& given, const Tensor& tensor, const std::string& place) const {
    std::vector<std::uint32_t> choices;
    for (std::uint32_t file = 0; file < in_.base.files.size(); ++file) {
      if (in_.base.files[file].format != kFormat) continue;
      if (in_.base.files[file].path == given.path) return file;
      choices.push_back(file);
    }
    if (choices.size() == 1) return choices.front();
    return refused(place, fmt::format("tensor \"{}\": expected a file called as that of {} which is to have it, got {} "
                                      "safetensors files to choose from",
                                      printable(tensor.name), in_.base_name, choices.size()));
  }

  Status take_file(const File& given, const std::string& place) {
    // As a whole, the file would replace a file of the base with all its other tensors.
    if (const std::string_view why = why_no_tensors(given); given.path.ends_with(kSuffix) && !why.empty())
      return refused(place, fmt::format("expected a safetensors file that weft can read: {}", why));
    auto old = std::ranges::find(out_.files, given.path, &File::path);
    if (old != out_.files.end()) {
      *old = given;
      return {};
    }
    if (!in_.add)
      return refused(place, fmt::format("expected a safetensors file, or a file that "
                                        "{} has; it has no {} (--add adds it)",
                                        in_.base_name, given.path));
    out_.files.push_back(given);
    rewritten_.emplace_back();
    return {};
  }

  // True if one of the files, sorted by path, lies in the directory.
  static bool has_file_in(const std::vector<File>& files, const std::string& directory) {
    const std::string inside = directory + '/';
    const auto first = std::ranges::lower_bound(files, inside, {}, &File::path);
    return first != files.end() && first->path.starts_with(inside);
  }

  static bool has_directory_in(const std::set<std::string>& all, const std::string& directory) {
    const auto first = all.lower_bound(directory + '/');
    return first != all.end() && first->starts_with(directory + '/');
  }

  // Call it after the files are sorted. A directory of the base stays if the whole version has no entry below it.
  Status take_directories() {
    std::set<std::string> all(in_.base.directories.begin(), in_.base.directories.end());
    for (const std::string& path : in_.given.directories) {
      if (all.contains(path) || has_directory_in(all, path) || has_file_in(out_.files, path)) continue;
      if (!in_.add)
        return refused(
            path + "/",
            fmt::format("expected a directory of {}, which has none of that name (--add adds it)", in_.base_name));
      all.insert(path);
    }
    for (const std::string& path : all) {
      if (!has_directory_in(all, path) && !has_file_in(out_.files, path)) out_.directories.push_back(path);
    }
    return {};
  }

  // Refuses new tensors without a new index: transformers opens the shards by the index and would not find them.
  Status check_index() const {
    if (std::ranges::none_of(rewritten_, [](const Rewrite& one) { return !one.added.empty(); })) return {};
    for (const File& file : in_.base.files) {
      if (!file.path.ends_with(kIndexSuffix)) continue;
      if (std::ranges::find(in_.given.files, file.path, &File::path) == in_.given.files.end())
        return Error{Errc::invalid, fmt::format("{}: {} lists its tensors: expected a new one "
                                                "with those that are added",
                                                in_.base_name, file.path)};
    }
    return {};
  }

  Status rewrite() {
    for (std::size_t i = 0; i < rewritten_.size(); ++i) {
      const Rewrite& change = rewritten_[i];
      if (change.changed.empty() && change.added.empty()) continue;
      WEFT_CHECK(rewrite_file(out_.files[i], change));
    }
    return {};
  }

  Status rewrite_file(File& file, const Rewrite& change) {
    std::vector<PlacedTensor> tensors;
    for (const Tensor& tensor : file.tensors) tensors.push_back({tensor, extent_of(file, tensor)});
    WEFT_CHECK(check_metadata(file, tensors));
    for (const auto& [index, placed] : change.changed) tensors[index] = placed;
    tensors.insert(tensors.end(), change.added.begin(), change.added.end());
    SafetensorsFile made = lay_out_safetensors(file.path, std::move(tensors), file.metadata);
    headers_.emplace_back(file.path, std::move(made.header));
    made.file.execute = file.execute;
    file = std::move(made.file);
    return {};
  }

  // Refuses a file whose metadata the manifest holds only in part, because it is very long: a header that weft writes
  // would lack the rest.
  Status check_metadata(const File& file, std::vector<PlacedTensor> tensors) const {
    const std::uint64_t kept = lay_out_safetensors(file.path, std::move(tensors), file.metadata).header.size();
    const std::uint64_t had = file.extents.empty() ? 0 : file.extents.front().id.length;
    if (file.metadata.size() < limits::kMetadataEntriesMax && had < kept + limits::kMetadataTextMax) return {};
    return Error{Errc::unsupported, fmt::format("{} of {}: its header has more metadata than is kept with a version; "
                                                "publish the whole file",
                                                file.path, in_.base_name)};
  }

  const InheritInput& in_;
  Manifest out_;
  std::vector<Rewrite> rewritten_;                            // one for each file of out_
  std::map<std::string_view, std::vector<TensorRef>> homes_;  // by tensor name
  std::set<std::string_view> seen_;                           // names of the given tensors
  std::vector<std::pair<std::string, std::string>> headers_;
};

// Refuses scattered tensors: their runs name files and extents by number, and a composed manifest changes the numbers.
Status refuse_scattered(const Manifest& manifest, std::string_view name) {
  for (const File& file : manifest.files)
    for (const Tensor& tensor : file.tensors)
      if (tensor.scattered())
        return Error{Errc::unsupported,
                     fmt::format("{}: tensor \"{}\" of {} lies in several places; publish whole files", name,
                                 printable(tensor.name), file.path)};
  return {};
}

}  // namespace

Result<Inherited> inherit_manifest(const InheritInput& input) {
  WEFT_CHECK(refuse_scattered(input.base, input.base_name));
  WEFT_CHECK(refuse_scattered(input.given, "--inherit"));
  return Composer(input).run();
}

}  // namespace weft
