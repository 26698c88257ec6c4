#include "format/other_files.h"

namespace weft {

Result<const OtherFiles::File*> OtherFiles::find(const std::string& path) {
  const auto [known, fresh] = known_.try_emplace(path);
  if (fresh) {
    const auto source = files_.beside(path);
    if (!source.ok() && source.error().code != Errc::not_found) return source.error();
    if (source.ok()) {
      layout_.others.push_back(path);
      known->second = File{*source, static_cast<std::uint32_t>(layout_.others.size())};
    }
  }
  return known->second ? &*known->second : nullptr;
}

}  // namespace weft
