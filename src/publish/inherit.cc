#include "publish/inherit.h"

#include <algorithm>

#include "os/memory_file.h"
#include "os/sys.h"
#include "reading/open_file.h"

namespace weft {

Result<Inheritance> Inheritance::begin(Store& store, ManifestResolver& resolver, const VersionRow& base, bool add) {
  WEFT_TRY(LoadedVersion loaded, load_version(store, resolver, base));
  return Inheritance(std::move(loaded), add);
}

Result<Inherited> Inheritance::whole(const DraftFiles& given) const {
  std::vector<std::string> places;
  for (const Draft& draft : given.drafts) places.push_back(draft.source.where);
  const std::string name = spec_of(base_.row.model_name, base_.row.number);
  return inherit_manifest({name, base_.tree->manifest(), given.manifest, places, add_});
}

Result<Architecture> Inheritance::architecture(Store& store, const Inherited& whole, const DraftFiles& given) const {
  const auto is_partial = [](const File& file) { return file.format == "safetensors"; };
  const Architecture& known = base_.tree->manifest().architecture;
  if (!known.layers.empty() && whole.headers.empty() && std::ranges::all_of(given.manifest.files, is_partial))
    return known;
  return architecture_of(whole.manifest, [&](const File& file) -> Result<std::string> {
    for (std::size_t i = 0; i < given.drafts.size(); ++i)
      if (given.manifest.files[i].path == file.path && !is_partial(file)) return read_source(given.drafts[i]);
    std::vector<ContentId> ids;
    for (const Extent& extent : file.extents) ids.push_back(extent.id);
    WEFT_TRY(const auto open, open_blobs(store, file.path, "", ids));
    std::string text(static_cast<std::size_t>(open->size()), '\0');
    WEFT_CHECK(open->read(0, std::as_writable_bytes(std::span(text))));
    return text;
  });
}

Status add_headers(Import& import, Inherited& version, Progress& progress) {
  for (const auto& [path, header] : version.headers) {
    WEFT_TRY(const Fd fd, memory_file(path, std::as_bytes(std::span(header))));
    const Range range{0, header.size()};
    WEFT_TRY(const auto extents, import.add(fd.get(), path, std::span(&range, 1), progress));
    auto file = std::ranges::find(version.manifest.files, path, &File::path);
    file->extents.front() = extents.front();
  }
  return {};
}

}  // namespace weft
